//go:build integration

package integration

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// exporter exposes metrics to Prometheus.
type exporter struct {
	*httptest.Server
	mu     sync.Mutex
	values map[string]float64
}

func newExporter(t *testing.T, values map[string]float64) *exporter {
	e := &exporter{values: values}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for site, value := range e.values {
			fmt.Fprintf(w, "rate{site=%q} %v\n", site, value)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *exporter) set(site string, value float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.values[site] = value
}

// prometheusBinary returns an installed Prometheus, or the one that scripts/build-prometheus.sh has built, and fails if
// there is none.
func prometheusBinary(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("prometheus"); err == nil {
		return path
	}
	return testbedBinary(t, "prometheus", "scripts/build-prometheus.sh")
}

// prometheusServer is a real Prometheus.
type prometheusServer struct {
	t       *testing.T
	binary  string
	dir     string
	address string
	cmd     *exec.Cmd
}

var listeningOn = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// startPrometheus starts a Prometheus that scrapes an exporter five times a second.
func startPrometheus(t *testing.T, target string) *prometheusServer {
	t.Helper()
	return startPrometheusWith(t, fmt.Sprintf("global: {scrape_interval: 200ms}\nscrape_configs: [{job_name: test, static_configs: [{targets: [%q]}]}]\n", strings.TrimPrefix(target, "http://")))
}

// startPrometheusWith starts a Prometheus with a configuration.
func startPrometheusWith(t *testing.T, config string) *prometheusServer {
	t.Helper()
	p := &prometheusServer{t: t, binary: prometheusBinary(t), dir: t.TempDir(), address: proxytest.FreeAddress(t)}
	if err := os.WriteFile(filepath.Join(p.dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	p.start()
	return p
}

// start starts it, always at the same address.
func (p *prometheusServer) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.binary, "--config.file="+filepath.Join(p.dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(p.dir, "data"), "--web.listen-address="+p.address, "--enable-feature=exemplar-storage")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if listeningOn.MatchString(lines.Text()) {
			go func() {
				for lines.Scan() { // so that it can continue to write
				}
			}()
			return
		}
	}
	p.t.Fatalf("Prometheus did not start:\n%s", said.String())
}

func (p *prometheusServer) stop() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // it may have exited already
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

func rate(site string) string { return fmt.Sprintf("rate{site=%q}", site) }

func TestDecisionsFollowPrometheus(t *testing.T) {
	t.Parallel()
	sites := newExporter(t, map[string]float64{"a": 80, "b": 60, "c": 90, "e": 90})
	prometheus := startPrometheus(t, sites.URL)
	p := startServer(t, t.TempDir())

	// A provider that accepts connections and never responds must not delay others.
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close()
	slow := prometheusProvider("hanging", "http://"+hanging.Addr().String())
	slow.Spec.Timeout = "5s"
	put(p, slow)
	put(p, metric("hangs", "hanging", "up", api.FailureExclude))
	put(p, cluster("hangs", "hanging", "hangs"))

	put(p, prometheusProvider("prometheus", "http://"+prometheus.address))
	put(p, staticProvider("table", map[string]float64{"half": 50, "low": 20}))
	eventually.True(t, "Prometheus has the metrics", func() bool {
		m := put(p, metric("rate-a", "prometheus", rate("a"), api.FailureExclude))
		return available(m)
	})
	put(p, metric("rate-b", "prometheus", rate("b"), api.FailureExclude))
	put(p, metric("rate-c", "prometheus", rate("c"), api.FailureIgnore))
	put(p, metric("rate-e", "prometheus", rate("e"), api.FailureLastValue))
	put(p, metric("half", "table", "half", api.FailureExclude))
	put(p, metric("low", "table", "low", api.FailureExclude))
	// Two clusters rated by live metrics.
	put(p, cluster("a", "live", "rate-a"))
	put(p, cluster("b", "live", "rate-b"))
	// One cluster of each pair has a live metric that fails in another way.
	put(p, cluster("excluded", "exclude", "rate-b"))
	put(p, cluster("exclude-half", "exclude", "half"))
	put(p, cluster("ignored", "ignore", "rate-c", "low"))
	put(p, cluster("ignore-half", "ignore", "half"))
	put(p, cluster("last", "last_value", "rate-e"))
	put(p, cluster("last-half", "last_value", "half"))
	put(p, cluster("static", "static", "half"))
	for _, group := range []string{"live", "exclude", "ignore", "last_value", "static"} {
		put(p, placement(strings.ReplaceAll(group, "_", "-"), group))
	}
	expect := func(want map[string]string) {
		t.Helper()
		for name, cluster := range want {
			took := eventually.True(t, name+" is at "+cluster, func() bool {
				return slices.Equal(get[*api.Placement](p, placementKey(name)).Status.Clusters, nonempty(cluster))
			})
			t.Logf("%s at %q after %s", name, cluster, took)
		}
	}
	healthy := map[string]string{"live": "a", "exclude": "excluded", "ignore": "ignored", "last-value": "last", "static": "static"}
	expect(healthy)

	t.Run("metric changes", func(t *testing.T) {
		before := p.objects()
		sites.set("a", 40)
		took := eventually.True(t, "the placement has moved", func() bool {
			return slices.Equal(get[*api.Placement](p, placementKey("live")).Status.Clusters, []string{"b"})
		})
		explanation, err := p.client.Explain(context.Background(), placementKey("live"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range explanation.Candidates {
			if c.Cluster == "a" && (c.Selected || *c.Score != 0.4) || c.Cluster == "b" && (!c.Selected || *c.Score != 0.6) {
				t.Errorf("unexpected candidate %+v", c)
			}
		}
		time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // for another reading or two, of which nothing is written
		for key, object := range p.objects() {
			changed := object.Meta().ResourceVersion != before[key].Meta().ResourceVersion
			if should := key == metricKey("rate-a") || key == placementKey("live"); changed != should {
				t.Errorf("%s written: %v, want %v", key, changed, should)
			}
		}
		t.Logf("decided %s after the change in the exporter", took)
		sites.set("a", 80)
		expect(healthy)
	})

	t.Run("Prometheus stops and starts again", func(t *testing.T) {
		static := get[*api.Placement](p, placementKey("static")).Metadata.ResourceVersion
		prometheus.stop()
		for _, name := range []string{"rate-a", "rate-b", "rate-c", "rate-e"} {
			eventually.True(t, "metric "+name+" says why", func() bool {
				c := api.FindCondition(get[*api.Metric](p, metricKey(name)).Status.Conditions, api.ConditionAvailable)
				return c != nil && c.Status == api.ConditionFalse && c.Reason == api.ReasonUnreachableMetricsProvider && strings.Contains(c.Message, "refused")
			})
		}
		// The last good values stay valid for four intervals. Even then, what is not known moves nothing.
		for _, name := range []string{"live", "exclude", "ignore"} {
			eventually.True(t, "placement "+name+" says what cannot be read", func() bool {
				c := api.FindCondition(get[*api.Placement](p, placementKey(name)).Status.Conditions, api.ConditionMetricsUnread)
				return c != nil && c.Status == api.ConditionTrue && c.Reason == api.ReasonUnreachableMetricsProvider
			})
		}
		expect(healthy)
		if last := get[*api.Metric](p, metricKey("rate-e")).Status; last.Value == nil || *last.Value != 90 {
			t.Errorf("last value %+v, want 90", last)
		}
		if now := get[*api.Placement](p, placementKey("static")).Metadata.ResourceVersion; now != static {
			t.Errorf("a placement with another provider was written: %s, %s", static, now)
		}
		prometheus.start()
		for _, name := range []string{"rate-a", "rate-b", "rate-c", "rate-e"} {
			eventually.True(t, "metric "+name+" is available again", func() bool { return available(get[*api.Metric](p, metricKey(name))) })
		}
		for _, name := range []string{"live", "exclude", "ignore"} {
			eventually.True(t, "everything that placement "+name+" needs can be read", func() bool {
				return api.FindCondition(get[*api.Placement](p, placementKey(name)).Status.Conditions, api.ConditionMetricsUnread) == nil
			})
		}
		expect(healthy)
	})
	if available(get[*api.Metric](p, metricKey("hangs"))) {
		t.Error("the metric of a provider that does not respond is available")
	}
}

func available(m *api.Metric) bool {
	c := api.FindCondition(m.Status.Conditions, api.ConditionAvailable)
	return c != nil && c.Status == api.ConditionTrue
}

func nonempty(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

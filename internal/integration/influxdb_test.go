//go:build integration

package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// influxServer is a real InfluxDB 1.8 with Flux and a database "rates", whose user is "krake" with the password "pw".
type influxServer struct {
	t   *testing.T
	url string
}

func startInflux(t *testing.T) *influxServer {
	t.Helper()
	binary := testbedBinary(t, "influxd", "scripts/build-influxdb.sh")
	dir, address := t.TempDir(), proxytest.FreeAddress(t)
	config := fmt.Sprintf("reporting-disabled = true\nbind-address = %q\n[meta]\n  dir = \"%[2]s/meta\"\n[data]\n  dir = \"%[2]s/data\"\n  wal-dir = \"%[2]s/wal\"\n"+
		"[http]\n  bind-address = %[3]q\n  flux-enabled = true\n  auth-enabled = true\n", proxytest.FreeAddress(t), dir, address)
	if err := os.WriteFile(filepath.Join(dir, "influxdb.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "run", "-config", filepath.Join(dir, "influxdb.conf"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have exited already
		_ = cmd.Wait()
	})
	s := &influxServer{t: t, url: "http://" + address}
	eventually.True(t, "InfluxDB responds", func() bool {
		resp, err := http.Get(s.url + "/ping")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return true
	})
	s.query("CREATE USER krake WITH PASSWORD 'pw' WITH ALL PRIVILEGES")
	s.query("CREATE DATABASE rates")
	return s
}

func (s *influxServer) query(text string) {
	s.post("/query", "application/x-www-form-urlencoded", url.Values{"q": {text}}.Encode())
}

// set writes the rate of a site.
func (s *influxServer) set(site string, value float64) {
	s.post("/write?db=rates", "text/plain", fmt.Sprintf("rate,site=%s value=%v", site, value))
}

func (s *influxServer) post(path, kind, body string) {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.SetBasicAuth("krake", "pw")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		s.t.Fatalf("%s: unexpected answer %d %s", path, resp.StatusCode, text)
	}
}

// brokenProviders returns addresses that respond with garbage, a byte a second, without end, and not at all.
func brokenProviders(t *testing.T) map[string]string {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	out := map[string]string{"silent": "http://" + silent.Addr().String()}
	for name, next := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"garbage": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "\x00<html>{[,")
			return false
		},
		"slow": func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.WriteString(w, "[")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return false
			case <-time.After(time.Second):
				return true
			}
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) bool {
			_, err := io.WriteString(w, strings.Repeat("#", 1<<16))
			return err == nil
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the end of the connection is not noticed
			for next(w, r) {
			}
		}))
		t.Cleanup(server.Close)
		out[name] = server.URL
	}
	return out
}

// TestDecisionsFollowInfluxDB checks that data written to InfluxDB moves a placement in time, even while providers of
// every type fail in every way.
func TestDecisionsFollowInfluxDB(t *testing.T) {
	t.Parallel()
	influx := startInflux(t)
	influx.set("a", 80)
	influx.set("b", 60)
	p := startServer(t, t.TempDir())

	provider := func(name, url string) *api.MetricsProvider {
		return &api.MetricsProvider{Metadata: api.Metadata{Name: name}, Spec: api.MetricsProviderSpec{
			Type: api.ProviderInflux, Interval: "1s", Timeout: "900ms",
			Influx: &api.InfluxSpec{URL: url, Token: api.NewSecret("krake:pw"), Org: "any", Bucket: "rates/autogen"},
		}}
	}
	put(p, provider("influx", influx.url))
	for _, site := range []string{"a", "b"} {
		m := put(p, metric("rate-"+site, "influx", fmt.Sprintf("rate.value{site=%q}", site), api.FailureExclude))
		eventually.True(t, "metric "+m.Metadata.Name+" is available", func() bool {
			return available(get[*api.Metric](p, metricKey(m.Metadata.Name)))
		})
		put(p, cluster(site, "live", "rate-"+site))
	}
	put(p, placement("web", "live"))
	at := func(cluster string) func() bool {
		return func() bool {
			return slices.Equal(get[*api.Placement](p, placementKey("web")).Status.Clusters, []string{cluster})
		}
	}
	eventually.True(t, "the placement is at a", at("a"))

	moves := func(when string) {
		t.Helper()
		slowest := time.Duration(0)
		for range 3 {
			influx.set("a", 40)
			slowest = max(slowest, eventually.True(t, when+": the placement has moved to b", at("b")))
			influx.set("a", 80)
			slowest = max(slowest, eventually.True(t, when+": the placement has moved to a", at("a")))
		}
		t.Logf("%s: decided at most %s after the write of a value (interval 1s)", when, slowest)
	}
	moves("alone")
	var broken []string
	for how, url := range brokenProviders(t) {
		kafka := &api.KafkaSpec{URL: url, Table: "t", ComparisonColumn: "k", ValueColumn: "v"}
		for kind, spec := range map[string]*api.MetricsProvider{
			"influx": provider("influx-"+how, url), "prometheus": prometheusProvider("prometheus-"+how, url),
			"kafka": {Metadata: api.Metadata{Name: "kafka-" + how}, Spec: api.MetricsProviderSpec{Type: api.ProviderKafka, Kafka: kafka, Interval: "1s"}},
		} {
			name := kind + "-" + how
			spec.Spec.Timeout = "1s"
			put(p, spec)
			put(p, metric(name, name, "m", api.FailureExclude))
			put(p, cluster(name, "broken", name))
			broken = append(broken, name)
		}
	}
	moves(fmt.Sprintf("beside %d broken providers", len(broken)))
	for _, name := range broken {
		eventually.True(t, "metric "+name+" reports the failure", func() bool {
			c := api.FindCondition(get[*api.Metric](p, metricKey(name)).Status.Conditions, api.ConditionAvailable)
			return c != nil && c.Status == api.ConditionFalse && c.Message != ""
		})
	}
	if p.stderr.Contains("krake:pw") {
		t.Error("the server's log contains the token")
	}
}

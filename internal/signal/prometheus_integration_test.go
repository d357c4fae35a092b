//go:build integration

package signal

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// exporter serves metrics that the test sets.
type exporter struct {
	mu      sync.Mutex
	figures map[string]string
}

func (e *exporter) set(name, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.figures[name] = value
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for name, value := range e.figures {
		fmt.Fprintf(w, "%s %s\n", name, value)
	}
}

// server is a real Prometheus.
type server struct {
	t       *testing.T
	dir     string
	address string
	command *exec.Cmd
}

func newServer(t *testing.T, target string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), address: proxytest.FreeAddress(t)}
	config := fmt.Sprintf("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs: [{job_name: test, static_configs: [{targets: [%q]}]}]\n", target)
	if err := os.WriteFile(filepath.Join(s.dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *server) start() {
	s.t.Helper()
	testbed := os.Getenv("SCHEDULER_TESTBED")
	if testbed == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			s.t.Fatal(err)
		}
		testbed = filepath.Join(home, ".cache", "scheduler-testbed")
	}
	binary := filepath.Join(testbed, "bin", "prometheus")
	if _, err := os.Stat(binary); err != nil {
		s.t.Fatalf("no Prometheus: run scripts/build-prometheus.sh: %v", err)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.command = exec.Command(binary,
		"--config.file="+filepath.Join(s.dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(s.dir, "data"),
		"--web.listen-address="+s.address, "--scrape.discovery-reload-interval=100ms")
	s.command.Stdout, s.command.Stderr = log, log
	if err := s.command.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) stop() {
	if s.command == nil {
		return
	}
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
	s.command = nil
	if s.t.Failed() {
		if log, err := os.ReadFile(filepath.Join(s.dir, "log")); err == nil {
			s.t.Logf("Prometheus:\n%s", log)
		}
	}
}

func (s *server) url() string { return "http://" + s.address }

// eventually waits for the stored value of a metric.
func (b *bench) eventually(name string, value any, reason string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	for {
		message := b.differs(name, value, reason)
		if message == "" {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("did not happen within a minute: %s", message)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (b *bench) message(name string) string {
	m := b.fleet.Snapshot().Get(api.Key{Kind: api.KindMetric, Name: name}).Object.(*api.Metric)
	c := api.FindCondition(m.Status.Conditions, api.ConditionAvailable)
	return c.Message + ": " + c.Detail
}

func TestRealPrometheus(t *testing.T) {
	figures := &exporter{figures: map[string]string{
		"load": "12.5", `heat{zone="b"}`: "2", `heat{zone="a"}`: "1", `heat{zone="c"}`: "3",
		"nothing": "NaN", "endless": "+Inf", "too_big": "1e308", "parts": "30", "whole": "40",
	}}
	target := httptest.NewServer(figures)
	defer target.Close()
	prometheus := newServer(t, strings.TrimPrefix(target.URL, "http://"))
	prometheus.start()

	s, codec := openStore(t)
	b := start(t, s, codec)
	live := func(name, url string) *api.MetricsProvider {
		return &api.MetricsProvider{Metadata: api.Metadata{Name: name}, Spec: api.MetricsProviderSpec{
			Type: api.ProviderPrometheus, Prometheus: &api.PrometheusSpec{URL: url}, Interval: "500ms", Timeout: "2s",
		}}
	}
	b.put(live("prom", prometheus.url()))
	b.put(staticProvider(map[string]float64{"load": 25}))
	b.put(metricOf("fixed", "table", "load"))
	for name, query := range map[string]string{
		"name": "load", "selector": `heat{zone="c"}`, "several": "heat", "computed": "100 * parts / whole # percent",
		"scalar": "scalar(load) + 1", "number": "42", "aggregate": "max(heat)", "joined": "parts or whole",
		"nan": "nothing", "inf": "endless", "big": "too_big", "absent": "no_such_series",
		"unbalanced": "load) or (load", "syntax": "load{", "function": "no_such_function(load)", "range": "load[5m]", "text": `"load"`,
		"many-to-many": "{job=\"test\"} / on(job) {job=\"test\"}",
	} {
		b.put(metricOf(name, "prom", query))
	}
	for name, want := range map[string]float64{
		"name": 12.5, "selector": 3, "several": 1, "computed": 75, "scalar": 13.5, "number": 42, "aggregate": 3, "joined": 30,
	} {
		b.eventually(name, want, api.ReasonAvailable)
	}
	for name, want := range map[string]string{
		"nan": "NaN", "inf": "Inf", "big": "1e+308", "absent": "no result", "unbalanced": "rejects", "syntax": "rejects", "function": "unknown function",
		"range": "range of values", "text": "a string", "many-to-many": "cannot evaluate",
	} {
		b.eventually(name, nil, api.ReasonInvalidMetric)
		if message := b.message(name); !strings.Contains(message, want) {
			t.Errorf("%s: message %q, want %q in it", name, message, want)
		}
	}

	// Unchanged values cause no writes.
	before, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) //nolint:forbidigo // nothing shows that no reading follows
	if after, err := s.Revision(t.Context()); err != nil || after != before {
		t.Errorf("the revision went from %d to %d without a change, %v", before, after, err)
	}

	// When a value changes, only its metric is written.
	figures.set("load", "13")
	b.eventually("name", 13.0, api.ReasonAvailable)
	b.eventually("scalar", 14.0, api.ReasonAvailable)

	// When Prometheus stops, the last values stay, with the reason. Other providers are not affected.
	prometheus.stop()
	b.eventually("name", 13.0, api.ReasonUnreachableMetricsProvider)
	b.eventually("syntax", nil, api.ReasonInvalidMetric)
	b.put(staticProvider(map[string]float64{"load": 26}))
	b.expect("fixed", 26.0, api.ReasonAvailable)

	// After a restart it recovers.
	figures.set("load", "14")
	prometheus.start()
	b.eventually("name", 14.0, api.ReasonAvailable)
	b.eventually("computed", 75.0, api.ReasonAvailable)
}

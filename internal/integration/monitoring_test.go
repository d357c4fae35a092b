//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

const monitoring = "../../deploy/monitoring"

// ask makes a request to Prometheus's API and decodes the data of its response.
func (p *prometheusServer) ask(path string, query url.Values, data any) error {
	response, err := http.Get("http://" + p.address + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", response.Status, answer.Error)
	}
	return nil
}

// alert is a rule as Prometheus has evaluated it.
type alert struct{ Name, State, Health, LastError string }

func (p *prometheusServer) alerts() ([]alert, error) {
	var data struct{ Groups []struct{ Rules []alert } }
	err := p.ask("/api/v1/rules", nil, &data)
	var all []alert
	for _, group := range data.Groups {
		all = append(all, group.Rules...)
	}
	return all, err
}

// Promtool tests the alerts with series that it makes up.
func TestAlertsWithPromtool(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		promtool = testbedBinary(t, "promtool", "scripts/build-prometheus.sh")
	}
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		command := exec.Command(promtool, args...)
		command.Dir = monitoring
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// A real Prometheus with the alerts reads a real server: no alert is active while the server is well, and the right one
// is when it is gone. All queries of the dashboard have an answer.
func TestAlertsAndDashboardOnPrometheus(t *testing.T) {
	t.Parallel()
	rules, err := filepath.Abs(filepath.Join(monitoring, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := startServer(t, t.TempDir(), "--tracing-endpoint", "http://127.0.0.1:1") // every request is recorded, for nobody
	put(p, staticProvider("table", map[string]float64{"half": 50}))
	put(p, metric("half", "table", "half", api.FailureExclude))
	put(p, cluster("a", "shown", "half"))
	put(p, placement("shown", "shown"))
	prometheus := startPrometheusWith(t, fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: scheduler, static_configs: [{targets: [%q]}]}]\n", rules, strings.TrimPrefix(p.url, "http://")))

	eventually.True(t, "all alerts are evaluated", func() bool {
		all, err := prometheus.alerts()
		return err == nil && len(all) > 0 && !slices.ContainsFunc(all, func(a alert) bool { return a.Health == "unknown" })
	})
	answered := func(query string) int {
		var data struct{ Result []any }
		if err := prometheus.ask("/api/v1/query", url.Values{"query": {query}}, &data); err != nil {
			t.Errorf("%s: %v", query, err)
		}
		return len(data.Result)
	}
	eventually.True(t, "the server is scraped", func() bool { return answered(`scheduler_placements == 1`) == 1 })
	all, err := prometheus.alerts()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Health != "ok" || a.State != "inactive" {
			t.Errorf("alert of a server that is well: %+v", a)
		}
	}

	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	data, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$job", "scheduler", "$__rate_interval", "5m")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			results := answered(variables.Replace(target.Expr))
			if panel.Type == "stat" && results != 1 {
				t.Errorf("panel %q has %d values, want 1", panel.Title, results)
			}
		}
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q asks nothing", panel.Title)
		}
	}

	eventually.True(t, "a slow request leads to a trace", func() bool {
		var series []struct {
			Exemplars []struct{ Labels map[string]string }
		}
		err := prometheus.ask("/api/v1/query_exemplars", url.Values{
			"query": {"scheduler_http_request_seconds_bucket"}, "start": {"0"}, "end": {strconv.FormatInt(time.Now().Unix()+60, 10)},
		}, &series)
		return err == nil && len(series) > 0 && len(series[0].Exemplars) > 0 && len(series[0].Exemplars[0].Labels["trace_id"]) == 32
	})

	p.kill()
	eventually.True(t, "the alert of a server that is gone is active", func() bool {
		all, err := prometheus.alerts()
		return err == nil && slices.ContainsFunc(all, func(a alert) bool { return a.Name == "SchedulerDown" && a.State == "pending" })
	})
}

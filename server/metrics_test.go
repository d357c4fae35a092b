package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

const (
	// metricsGuide lists all metrics. The test writes it with -update.
	metricsGuide = "../templates/guides/metrics.md.tmpl"
	// monitoringGuide says what each alert means.
	monitoringGuide = "../templates/guides/monitoring.md.tmpl"
	monitoring      = "../deploy/monitoring"
)

const metricsGuideHead = `---
page_title: "Metrics"
description: "Every metric of the server."
---

# Metrics

The server has these metrics at ` + "`/metrics`" + `, in the format of Prometheus, and the usual ones of Go programs and processes
(` + "`go_…`, `process_…`" + `). See [Monitoring](monitoring) for how to read them, and for alerts. Those marked with * are only on
the server that leads.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
`

// documentedMetric is what the guide says about a metric.
type documentedMetric struct {
	name, kind, labels, help string
	// leader says that only the server that leads has it.
	leader bool
}

var descText = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), unit: "[^"]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// allMetrics returns the metrics of a server that has all parts, by name.
func allMetrics(t *testing.T) map[string]documentedMetric {
	t.Helper()
	c := testConfig(t.TempDir())
	c.WebhookListen, c.AuditLog, c.TracingEndpoint = "127.0.0.1:0", auditOutput, "http://127.0.0.1:1"
	logger, _, err := newLogger(c, &logtest.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	starting := beginStarting(logger)
	defer starting.end()
	s, err := openServer(t.Context(), c, logger, io.Discard, starting)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if s.closeInto(&err); err != nil {
			t.Error(err)
		}
	}()
	found := map[string]documentedMetric{}
	for _, collector := range s.collectors() {
		for _, m := range described(t, collector) {
			found[m.name] = m
		}
	}
	for _, collector := range s.newDuties(t.Context()).collectors() {
		for _, m := range described(t, collector) {
			m.leader = true
			found[m.name] = m
		}
	}
	return found
}

// described returns the metrics of a collector, except those of other programs.
func described(t *testing.T, collector prometheus.Collector) (list []documentedMetric) {
	t.Helper()
	descs := make(chan *prometheus.Desc, 100)
	collector.Describe(descs)
	close(descs)
	for desc := range descs {
		parts := descText.FindStringSubmatch(desc.String())
		if parts == nil {
			t.Fatalf("cannot read %s", desc)
		}
		name, err := strconv.Unquote(parts[1])
		if err != nil {
			t.Fatal(err)
		}
		help, err := strconv.Unquote(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, "scheduler_") {
			continue
		}
		labels := slices.DeleteFunc(strings.Split(parts[4], ","), func(s string) bool { return s == "" })
		if constant, _, ok := strings.Cut(parts[3], "="); ok {
			labels = append(labels, constant)
		}
		list = append(list, documentedMetric{name: name, kind: typeOf(collector), labels: strings.Join(labels, ", "), help: help})
	}
	return list
}

// typeOf returns the type of a collector's metrics. Collectors of our own have only gauges.
func typeOf(collector prometheus.Collector) string {
	switch collector.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec:
		return "histogram"
	}
	if one, ok := collector.(prometheus.Metric); ok {
		var value dto.Metric
		if one.Write(&value) == nil && value.Counter != nil {
			return "counter"
		}
		if value.Histogram != nil {
			return "histogram"
		}
	}
	return "gauge"
}

func TestMetricsGuideListsAllMetrics(t *testing.T) {
	all := allMetrics(t)
	var page bytes.Buffer
	page.WriteString(metricsGuideHead)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		if (m.kind == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s: counters, and only they, end in _total", name, m.kind)
		}
		if !strings.HasSuffix(m.help, ".") {
			t.Errorf("the help of %s is not a sentence: %q", name, m.help)
		}
		mark := ""
		if m.leader {
			mark = "*"
		}
		fmt.Fprintf(&page, "| `%s`%s | %s | %s | %s |\n", name, mark, m.kind, m.labels, m.help)
	}
	if *update {
		if err := os.WriteFile(metricsGuide, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(metricsGuide)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, page.Bytes()) {
		t.Errorf("%s is not up to date: run go test ./server -run %s -update && make generate. It should be\n%s", metricsGuide, t.Name(), &page)
	}

	// Alerts and the dashboard only ask for metrics that exist.
	asked := regexp.MustCompile(`\bscheduler_[a-z_]+\b`)
	for _, name := range []string{"alerts.yaml", "dashboard.json"} {
		data, err := os.ReadFile(filepath.Join(monitoring, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range asked.FindAllString(string(data), -1) {
			m, ok := all[metric]
			if base := strings.TrimSuffix(metric, "_bucket"); !ok && all[base].kind == "histogram" {
				m, ok = all[base], true
			}
			if !ok {
				t.Errorf("%s asks for %s, which does not exist (%+v)", name, metric, m)
			}
		}
	}
}

// Each alert says what is wrong, has a test in which it fires and one in which it does not, and a section in the guide.
func TestAlertsAreDocumentedAndTested(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	var tests struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string `json:"alertname"`
				ExpAlerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	for name, into := range map[string]any{"alerts.yaml": &rules, "alerts_test.yaml": &tests} {
		data, err := os.ReadFile(filepath.Join(monitoring, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	guide, err := os.ReadFile(monitoringGuide)
	if err != nil {
		t.Fatal(err)
	}
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, expected := range test.AlertRuleTest {
			if len(expected.ExpAlerts) > 0 {
				fires[expected.Alertname] = true
			} else {
				rests[expected.Alertname] = true
			}
		}
	}
	alerts := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			alerts++
			if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
				t.Errorf("%s has the severity %q, want critical or warning", rule.Alert, severity)
			}
			if rule.Annotations["summary"] == "" {
				t.Errorf("%s has no summary", rule.Alert)
			}
			if !fires[rule.Alert] || !rests[rule.Alert] {
				t.Errorf("alerts_test.yaml: %s fires in a test: %t, and does not in another: %t", rule.Alert, fires[rule.Alert], rests[rule.Alert])
			}
			if !bytes.Contains(guide, []byte("\n### "+rule.Alert+"\n")) {
				t.Errorf("%s has no section on %s", monitoringGuide, rule.Alert)
			}
			delete(fires, rule.Alert)
		}
	}
	if alerts == 0 {
		t.Error("there are no alerts")
	}
	if sections := bytes.Count(guide, []byte("\n### Scheduler")); sections != alerts {
		t.Errorf("%s has sections on %d alerts, want %d", monitoringGuide, sections, alerts)
	}
	for name := range fires {
		t.Errorf("alerts_test.yaml tests %s, which is not an alert", name)
	}
}

package api

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestValidate violates rules of a valid object, and expects every violation to be reported at
// once, in order, with its path.
func TestValidate(t *testing.T) {
	long := strings.Repeat("a", 64)
	nan, inf := math.NaN(), math.Inf(1)
	cluster := func(change func(c *Cluster)) Object {
		c := &Cluster{Metadata: Metadata{Name: "c1"}}
		c.SetDefaults()
		change(c)
		return c
	}
	metric := func(change func(m *Metric)) Object {
		m := &Metric{Metadata: Metadata{Name: "m"}}
		m.Spec = MetricSpec{Min: new(0.0), Max: new(1.0), MetricsProvider: MetricProviderRef{Name: "p", Metric: "m"}}
		m.SetDefaults()
		change(m)
		return m
	}
	provider := func(change func(p *MetricsProvider)) Object {
		p := &MetricsProvider{Metadata: Metadata{Name: "p"}}
		p.Spec = MetricsProviderSpec{Type: ProviderPrometheus, Prometheus: &PrometheusSpec{URL: "http://prometheus:9090"}}
		p.SetDefaults()
		change(p)
		return p
	}
	placement := func(change func(p *Placement)) Object {
		p := &Placement{Metadata: Metadata{Name: "p"}}
		p.SetDefaults()
		change(p)
		return p
	}
	for _, tt := range []struct {
		name   string
		object Object
		fields []string
	}{
		{"valid cluster", cluster(func(c *Cluster) {
			c.Metadata.Labels = map[string]string{"a": "", "example.com/b_c.d": "X-1_y", "_": "_"}
			c.Spec = ClusterSpec{
				Namespace: "shop", Zones: []string{"a", "b"}, CustomResources: []string{"crontabs.stable.example.com"},
				Metrics:     []MetricRef{{Name: "m", Weight: new(0.0)}, {Name: "m", Namespace: "shop", Weight: new(2.0)}},
				Allocatable: Quantities{"cpu": "1500m", "nvidia.com/gpu": "8"}, Capacity: Quantities{"memory": "64Gi"},
				Health: &HealthSpec{URL: "https://c1/healthz", Interval: "100ms", FailureThreshold: 1, SuccessThreshold: 1},
			}
		}), nil},
		{"names", cluster(func(c *Cluster) {
			c.Metadata = Metadata{Name: "C1", Namespace: "x", Labels: map[string]string{"-a": "b", "a/b/c": "", "ok": long, "z/": "x y"}}
		}), []string{"metadata.name", "metadata.namespace", `metadata.labels["-a"]`, `metadata.labels["a/b/c"]`, `metadata.labels["ok"]`, `metadata.labels["z/"]`, `metadata.labels["z/"]`}},
		{"no name", cluster(func(c *Cluster) { c.Metadata.Name = "" }), []string{"metadata.name"}},
		{"long name", cluster(func(c *Cluster) { c.Metadata.Name = long }), []string{"metadata.name"}},
		{"name ends in a dash", cluster(func(c *Cluster) { c.Metadata.Name = "a-" }), []string{"metadata.name"}},
		{"long prefix", cluster(func(c *Cluster) {
			c.Metadata.Labels = map[string]string{strings.Repeat("a", 254) + "/b": ""}
		}), []string{`metadata.labels["` + strings.Repeat("a", 254) + `/b"]`}},
		{"cluster lists", cluster(func(c *Cluster) {
			c.Spec.Namespace, c.Spec.Zones = "A", []string{"a", "", "a"}
			c.Spec.CustomResources = []string{"crontabs", "a.b", "a.b", "A.b"}
		}), []string{"spec.namespace", "spec.zones[1]", "spec.zones[2]", "spec.custom_resources[0]", "spec.custom_resources[2]", "spec.custom_resources[3]"}},
		{"cluster metrics", cluster(func(c *Cluster) {
			c.Spec.Metrics = []MetricRef{
				{Name: "", Weight: new(1.0)}, {Name: "m", Weight: new(-1.0)}, {Name: "m", Weight: new(1.0)},
				{Name: "n", Namespace: "N", Weight: &nan}, {Name: "o", Weight: &inf}, {Name: "p"},
			}
		}), []string{"spec.metrics[0].name", "spec.metrics[1].weight", "spec.metrics[2].name", "spec.metrics[3].namespace", "spec.metrics[3].weight", "spec.metrics[4].weight"}},
		{"weights with a sum of 0", cluster(func(c *Cluster) {
			c.Spec.Metrics = []MetricRef{{Name: "m", Weight: new(0.0)}, {Name: "n", Weight: new(0.0)}}
		}), []string{"spec.metrics"}},
		{"weights with an infinite sum", cluster(func(c *Cluster) {
			c.Spec.Metrics = []MetricRef{{Name: "m", Weight: new(math.MaxFloat64)}, {Name: "n", Weight: new(math.MaxFloat64)}}
		}), []string{"spec.metrics"}},
		{"amounts", cluster(func(c *Cluster) {
			c.Spec.Capacity = Quantities{"cpu": "one", "memory": "-1"}
			c.Spec.Allocatable = Quantities{"bad name": "1"}
			c.Spec.Allocated = Quantities{"cpu": "-1e30", "gpu": "1e999999999"}
		}), []string{`spec.capacity["cpu"]`, `spec.capacity["memory"]`, `spec.allocatable["bad name"]`, `spec.allocated["cpu"]`, `spec.allocated["gpu"]`}},
		{"health", cluster(func(c *Cluster) {
			c.Spec.Health = &HealthSpec{URL: "ftp://x", Interval: "99ms", FailureThreshold: -1, SuccessThreshold: 0}
		}), []string{"spec.health.url", "spec.health.interval", "spec.health.failure_threshold", "spec.health.success_threshold"}},
		{"health with a password in the address", cluster(func(c *Cluster) {
			c.Spec.Health = &HealthSpec{URL: "http://me:pw@x/", Interval: "1x", FailureThreshold: 1, SuccessThreshold: 1}
		}), []string{"spec.health.url", "spec.health.interval"}},

		{"valid metric", metric(func(m *Metric) {
			m.Metadata.Namespace, m.Spec.AllowedValues, m.Spec.MaxAge = "shop", []float64{0, 0.5, 1}, "0s"
			m.Spec.Direction, m.Spec.OnFailure = Descending, FailureLastValue
		}), nil},
		{"empty metric", metric(func(m *Metric) { m.Spec = MetricSpec{} }), []string{
			"spec.min", "spec.max", "spec.metrics_provider.name", "spec.metrics_provider.metric", "spec.direction", "spec.on_failure",
		}},
		{"max below min", metric(func(m *Metric) { m.Spec.Min = new(2.0) }), []string{"spec.max"}},
		{"max equal to min", metric(func(m *Metric) { m.Spec.Min = new(1.0) }), []string{"spec.max"}},
		{"infinite range", metric(func(m *Metric) { m.Spec.Min, m.Spec.Max = &nan, &inf }), []string{"spec.min", "spec.max"}},
		{"range too wide", metric(func(m *Metric) { m.Spec.Min, m.Spec.Max = new(-math.MaxFloat64), new(math.MaxFloat64) }), []string{"spec.max"}},
		{"metric fields", metric(func(m *Metric) {
			m.Metadata.Namespace = "A"
			m.Spec.AllowedValues = []float64{0, 2, nan}
			m.Spec.MetricsProvider = MetricProviderRef{Name: "P", Metric: strings.Repeat("x", 4097)}
			m.Spec.Direction, m.Spec.OnFailure, m.Spec.MaxAge = "up", "retry", "-1s"
		}), []string{
			"metadata.namespace", "spec.allowed_values[1]", "spec.allowed_values[2]", "spec.metrics_provider.name",
			"spec.metrics_provider.metric", "spec.direction", "spec.on_failure", "spec.max_age",
		}},

		{"valid static provider", provider(func(p *MetricsProvider) {
			p.Spec.Type, p.Spec.Prometheus, p.Spec.Static = ProviderStatic, nil, &StaticSpec{Metrics: map[string]float64{"m": 1}}
		}), nil},
		{"valid headers", provider(func(p *MetricsProvider) {
			p.Spec.Headers = map[string]Secret{"X-Scope-OrgID": NewSecret("1")}
			p.Spec.BearerToken = NewSecret("t")
		}), nil},
		{"block of another type", provider(func(p *MetricsProvider) { p.Spec.Type = ProviderStatic }), []string{"spec.prometheus", "spec.static"}},
		{"both blocks", provider(func(p *MetricsProvider) { p.Spec.Static = &StaticSpec{} }), []string{"spec.static"}},
		{"unknown type", provider(func(p *MetricsProvider) { p.Spec.Type = "graphite" }), []string{"spec.type"}},
		{"provider fields", provider(func(p *MetricsProvider) {
			p.Spec.Prometheus.URL = "prometheus:9090"
			p.Spec.Interval, p.Spec.Timeout, p.Spec.CACert = "10ms", "0s", "not PEM"
			p.Spec.BearerToken = NewSecret("t")
			p.Spec.Headers = map[string]Secret{"authorization": NewSecret("x"), "a b": NewSecret("x"), "X-Split": NewSecret("a\r\nb")}
		}), []string{
			"spec.prometheus.url", "spec.interval", "spec.timeout", "spec.headers",
			`spec.headers["X-Split"]`, `spec.headers["authorization"]`, "spec.ca_cert",
		}},
		{"static values", provider(func(p *MetricsProvider) {
			p.Spec.Type, p.Spec.Prometheus = ProviderStatic, nil
			p.Spec.Static = &StaticSpec{Metrics: map[string]float64{"a.b": nan, "c": inf, "d": 1}}
		}), []string{`spec.static.metrics["a.b"]`, `spec.static.metrics["c"]`}},

		{"valid placement", placement(func(p *Placement) {
			p.Spec.NumberOfClusters = new(int64(0))
			p.Spec.LabelConstraints, p.Spec.MetricConstraints = []string{"a is b", "c not in (d)"}, []string{"load < -0.5"}
			p.Spec.ResourceRequests, p.Spec.Metrics = Quantities{"cpu": "1"}, &MetricsStrategy{Stickiness: new(0.0)}
			p.Spec.RescheduleAfter, p.Spec.MetricConstraintBasis = "0s", BasisWeighted
			p.Spec.ClusterNames, p.Spec.ExcludeClusters = []string{"a", "b", "a"}, []string{"b"}
			p.Spec.KubernetesVersion = ">= 1.33, < 2"
		}), nil},
		{"placement fields", placement(func(p *Placement) {
			p.Metadata.Namespace = "A"
			p.Spec = PlacementSpec{
				NumberOfClusters: new(int64(-1)), ClusterNames: []string{"a", "A"}, ExcludeClusters: []string{""}, KubernetesVersion: "1.33 or so", LabelConstraints: []string{"a is b", "a isb"},
				MetricConstraints: []string{"load <", "load < x"}, MetricConstraintBasis: "net",
				CustomResources: []string{"x"}, ResourceRequests: Quantities{"cpu": "-1"}, Strategy: "random",
				Metrics: &MetricsStrategy{Stickiness: &nan}, RescheduleAfter: "-1s", MinImprovement: inf,
			}
		}), []string{
			"metadata.namespace", "spec.number_of_clusters", "spec.cluster_names[1]", "spec.exclude_clusters[0]", "spec.kubernetes_version", "spec.label_constraints[1]", "spec.metric_constraints[0]",
			"spec.metric_constraints[1]", "spec.metric_constraint_basis", "spec.custom_resources[0]", `spec.resource_requests["cpu"]`,
			"spec.strategy", "spec.metrics.stickiness", "spec.reschedule_after", "spec.min_improvement",
		}},
		{"negative margins", placement(func(p *Placement) {
			p.Spec.Metrics.Stickiness, p.Spec.MinImprovement = new(-0.1), -0.1
		}), []string{"spec.metrics.stickiness", "spec.min_improvement"}},
	} {
		errs := tt.object.Validate()
		if got := paths(errs); !slices.Equal(got, tt.fields) {
			t.Errorf("%s: errors in\n%q, want\n%q\n%v", tt.name, got, tt.fields, errs)
		}
		for _, e := range errs {
			if e.Message == "" || strings.Contains(e.Message, "%!") {
				t.Errorf("%s: unexpected message %q", tt.name, e.Error())
			}
		}
	}
}

func TestHeartbeatValidate(t *testing.T) {
	h := Heartbeat{Capacity: Quantities{"cpu": "x"}, Allocatable: Quantities{"cpu": "1"}, Allocated: Quantities{"cpu": "-1"}}
	if got := paths(h.Validate()); !slices.Equal(got, []string{`capacity["cpu"]`, `allocated["cpu"]`}) {
		t.Errorf("errors in %q", got)
	}
	if errs := (&Heartbeat{}).Validate(); errs != nil {
		t.Errorf("empty heartbeat: %v", errs)
	}
}

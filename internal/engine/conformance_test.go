package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// testdata/krake.json holds what Krake does, or ought to do, where that is about
// deciding. The other groups of its cases have another place:
//
//   - label_constraint, metric_constraint and the comparison itself of
//     metric_constraint_match: internal/constraint.
//   - provider_prometheus, provider_kafka, provider_influx, provider_static,
//     provider_scope: internal/signal.
//   - observer: not expressible. Krake polls the nodes of a cluster every two
//     seconds and takes the cluster out on the first answer; here a probe with
//     thresholds in both directions sets the state (DESIGN 3.1, health).
//   - retry, migration_retry: not expressible. A placement that finds no cluster
//     has no retries to use up: it is decided again when something it depends
//     on changes, and reschedule_after is the only delay (DESIGN 3.2.4).
//   - select_cloud, select_project, auto_create, inherit, cluster_intake, config:
//     kinds that do not exist here yet.
//
// In place of the reference's codes stand the reasons of the metric.
var reasonOfCode = map[int]string{
	91: api.ReasonInvalidMetric,
	92: api.ReasonUnreachableMetricsProvider,
	93: api.ReasonUnknownMetric,
	94: api.ReasonUnknownMetricsProvider,
}

// differences are the cases that are answered otherwise on purpose.
var differences = map[string]string{
	"K172": "a failing metric is a condition of the cluster, MetricsAvailable, beside its state and not in its place (DESIGN 3.1)",
	"K173": "as K172",
}

// notExpressible are the cases that ask for something that does not exist here.
var notExpressible = map[string]string{
	"K214": "a placement has no failed state: one that cannot be decided keeps its last good decision, with a condition (DESIGN 3.2.8)",
}

type conformanceCase struct {
	ID    string `json:"id"`
	Group string `json:"grp"`
	In    struct {
		// metric_constraint_match, normalize
		Expr           string           `json:"expr"`
		Weight         float64          `json:"weight"`
		Raw            json.RawMessage  `json:"raw"`
		Min            float64          `json:"min"`
		Max            float64          `json:"max"`
		AllowedValues  []float64        `json:"allowed_values"`
		ClusterMetrics []string         `json:"cluster_metrics"`
		DefineMetric   *json.RawMessage `json:"define_metric"`
		// score
		Metrics    []struct{ Weight, Value float64 } `json:"metrics"`
		Current    json.RawMessage                   `json:"current"`
		Stickiness *float64                          `json:"stickiness"`
		// select_cluster
		MetricValues    map[string]json.RawMessage            `json:"metric_values"`
		RescheduleAfter float64                               `json:"reschedule_after"`
		Clusters        map[string]map[string]json.RawMessage `json:"clusters"`
		State           json.RawMessage                       `json:"state"`
		Labels          map[string]map[string]string          `json:"labels"`
		Constraints     []string                              `json:"constraints"`
		CustomResources map[string][]string                   `json:"custom_resources"`
		CRConstraints   []string                              `json:"cr_constraints"`
		ScheduledAge    *float64                              `json:"scheduled_age"`
		Deleted         []string                              `json:"deleted"`
		AppNamespace    string                                `json:"app_namespace"`
		// stickiness
		SumWeights  float64  `json:"sum_weights"`
		CurrentMean float64  `json:"current_mean"`
		OtherMean   float64  `json:"other_mean"`
		Tie         []string `json:"tie"`
		// timestamps
		Kct      int64  `json:"kct"`
		Modified int64  `json:"modified"`
		Event    string `json:"event"`
	} `json:"in"`
	Out struct {
		Match           bool                      `json:"match"`
		MatchRaw        bool                      `json:"match_raw"`
		MatchNormalized bool                      `json:"match_normalized"`
		MatchWeighted   bool                      `json:"match_weighted"`
		Value           float64                   `json:"value"`
		Error           string                    `json:"error"`
		Score           float64                   `json:"score"`
		Scores          map[string]float64        `json:"scores"`
		ChooseFrom      []string                  `json:"choose_from"`
		States          map[string]string         `json:"states"`
		MetricsReasons  map[string]map[string]int `json:"metrics_reasons"`
		Current         float64                   `json:"current"`
		Other           float64                   `json:"other"`
		Migrate         bool                      `json:"migrate"`
		Scheduler       string                    `json:"scheduler"`
		Scheduled       json.RawMessage           `json:"scheduled"`
		Triggered       int64                     `json:"kube_controller_triggered"`
	} `json:"out"`
}

func TestConformance(t *testing.T) {
	data, err := os.ReadFile("testdata/krake.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []conformanceCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	run := map[string]func(*testing.T, conformanceCase){
		"metric_constraint_match": conformMetricMatch,
		"normalize":               conformNormalize,
		"score":                   conformScore,
		"select_cluster":          conformSelect,
		"stickiness":              conformStickiness,
		"timestamps":              conformTimestamps,
		"migration":               conformMigration,
	}
	ran := map[string]int{}
	for _, c := range file.Cases {
		if run[c.Group] == nil {
			t.Fatalf("%s: unknown group %q", c.ID, c.Group)
		}
		ran[c.Group]++
		if reason := notExpressible[c.ID]; reason != "" {
			t.Logf("%s: %s", c.ID, reason)
			continue
		}
		t.Run(c.ID, func(t *testing.T) { run[c.Group](t, c) })
	}
	want := map[string]int{
		"metric_constraint_match": 6, "normalize": 8, "score": 9, "select_cluster": 16,
		"stickiness": 7, "timestamps": 6, "migration": 1,
	}
	for group, n := range want {
		if ran[group] != n {
			t.Errorf("ran %d cases of %s, want %d", ran[group], group, n)
		}
	}
}

// near compares to six decimals, as the cases are written.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }

// gauge adds a metric of the provider "p" as a collector would leave it: with the
// value, or with the reason why there is none.
func (w *world) gauge(name string, low, high, value float64) *api.Metric {
	w.providers[api.Key{Kind: api.KindMetricsProvider, Name: "p"}] = &api.MetricsProvider{Metadata: api.Metadata{Name: "p"}}
	m := &api.Metric{Metadata: api.Metadata{Name: name}}
	m.Spec = api.MetricSpec{Min: &low, Max: &high, MetricsProvider: api.MetricProviderRef{Name: "p", Metric: name}}
	m.SetDefaults()
	available := api.Condition{Type: api.ConditionAvailable, Status: api.ConditionTrue, Reason: api.ReasonAvailable}
	if _, err := Normalize(m.Spec, value); err != nil {
		available.Status, available.Reason, available.Message = api.ConditionFalse, api.ReasonInvalidMetric, err.Error()
	} else {
		m.Status.Value, m.Status.ObservedAt = &value, &w.now
	}
	m.Status.Conditions = []api.Condition{available}
	w.metrics[api.KeyOf(m)] = m
	return m
}

// cluster adds a cluster with global metrics by weight.
func (w *world) cluster(name string, weights map[string]float64) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: name, UID: name}}
	for metric, weight := range weights {
		c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: metric, Weight: &weight})
	}
	slices.SortFunc(c.Spec.Metrics, func(a, b api.MetricRef) int { return strings.Compare(a.Name, b.Name) })
	w.clusters[name] = c
	return c
}

// placement is one with the defaults, for one cluster.
func newPlacement(name string) *api.Placement {
	p := &api.Placement{Metadata: api.Metadata{Name: name, Namespace: "default", UID: "uid-" + name, Generation: 1}}
	p.Spec.NumberOfClusters = ptr[int64](1)
	p.SetDefaults()
	return p
}

// on is a decision for clusters, taken some time before the world's moment.
func (w *world) on(age time.Duration, clusters ...string) Present {
	p := Present{Answered: true, ScheduledAt: w.now.Add(-age)}
	for _, name := range clusters {
		p.Decisions = append(p.Decisions, api.Decision{Cluster: name, Since: &p.ScheduledAt})
	}
	return p
}

// decide answers a placement, and gives the names of the chosen clusters.
func (w *world) decide(t *testing.T, p *api.Placement, present Present) ([]string, Outcome) {
	t.Helper()
	if errs := p.Validate(); errs != nil {
		t.Fatal(errs)
	}
	f, q := w.fleet(), compile(t, p)
	out := Decide(f, q, NewView(f, q, Others{}, nil), Others{}, present, w.now)
	var names []string
	for _, c := range out.Choices {
		names = append(names, f.name(c.Row))
	}
	return names, out
}

func conformMetricMatch(t *testing.T, c conformanceCase) {
	w := newWorld()
	if c.In.Raw == nil {
		weights := map[string]float64{}
		for _, name := range c.In.ClusterMetrics {
			w.gauge(name, 0, 10, 1)
			weights[name] = 1
		}
		w.cluster("c1", weights)
	} else {
		var raw float64
		if err := json.Unmarshal(c.In.Raw, &raw); err != nil {
			t.Fatal(err)
		}
		w.gauge("load", c.In.Min, c.In.Max, raw)
		w.cluster("c1", map[string]float64{"load": c.In.Weight})
	}
	for basis, want := range map[api.Basis]bool{
		"": c.Out.Match, api.BasisRaw: c.Out.MatchRaw,
		api.BasisNormalized: c.Out.MatchNormalized, api.BasisWeighted: c.Out.MatchWeighted,
	} {
		p := newPlacement("web")
		p.Spec.MetricConstraints, p.Spec.MetricConstraintBasis = []string{c.In.Expr}, basis
		p.SetDefaults()
		if names, _ := w.decide(t, p, Present{}); (len(names) == 1) != want {
			t.Errorf("%q on basis %q: %t, want %t", c.In.Expr, basis, !want, want)
		}
	}
}

func conformNormalize(t *testing.T, c conformanceCase) {
	if c.In.DefineMetric != nil {
		m := &api.Metric{Metadata: api.Metadata{Name: "m"}}
		if err := json.Unmarshal(*c.In.DefineMetric, &m.Spec); err != nil {
			t.Fatal(err)
		}
		m.Spec.MetricsProvider = api.MetricProviderRef{Name: "p", Metric: "m"}
		m.SetDefaults()
		if errs := m.Validate(); errs == nil {
			t.Error("the metric is valid")
		}
		return
	}
	var raw float64
	if err := json.Unmarshal(c.In.Raw, &raw); err != nil {
		raw = math.NaN() // written as a string
	}
	got, err := Normalize(api.MetricSpec{Min: &c.In.Min, Max: &c.In.Max, AllowedValues: c.In.AllowedValues}, raw)
	if c.Out.Error != "" {
		if err == nil {
			t.Errorf("%v is %v, want %s", raw, got, c.Out.Error)
		}
		return
	}
	if err != nil || !near(got, c.Out.Value) {
		t.Errorf("%v is %v (%v), want %v", raw, got, err, c.Out.Value)
	}
}

func conformScore(t *testing.T, c conformanceCase) {
	w := newWorld()
	weights := map[string]float64{}
	for i, m := range c.In.Metrics {
		name := fmt.Sprintf("m%d", i)
		w.gauge(name, 0, 1, m.Value)
		weights[name] = m.Weight
	}
	w.cluster("c1", weights)
	p := newPlacement("web")
	p.Spec.Metrics.Stickiness = c.In.Stickiness
	present := Present{}
	if string(c.In.Current) == "true" {
		present = w.on(time.Hour, "c1")
	}
	_, out := w.decide(t, p, present)
	if len(out.Choices) != 1 || !near(out.Choices[0].Score, c.Out.Score) {
		t.Errorf("chosen %+v, want a score of %v", out.Choices, c.Out.Score)
	}
}

// metricOf adds a metric as the case writes its value: 0.9, "5 (range 0..10)" or
// "provider missing".
func (w *world) metricOf(t *testing.T, name string, written json.RawMessage) {
	t.Helper()
	var value, low, high float64
	var text string
	switch {
	case json.Unmarshal(written, &value) == nil:
		w.gauge(name, 0, 1, value)
	case json.Unmarshal(written, &text) != nil:
		t.Fatalf("metric %s: %s", name, written)
	case text == "provider missing":
		w.gauge(name, 0, 1, 0.5).Spec.MetricsProvider.Name = "nowhere"
	default:
		amount, bounds, _ := strings.Cut(strings.TrimSuffix(text, ")"), " (range ")
		from, to, ok := strings.Cut(bounds, "..")
		for written, v := range map[string]*float64{amount: &value, from: &low, to: &high} {
			if _, err := fmt.Sscan(written, v); err != nil || !ok {
				t.Fatalf("metric %s: %q: %v", name, text, err)
			}
		}
		w.gauge(name, low, high, value)
	}
}

func conformSelect(t *testing.T, c conformanceCase) {
	w := newWorld()
	for name, value := range c.In.MetricValues {
		w.metricOf(t, name, value)
	}
	for name, properties := range c.In.Clusters {
		cluster := w.cluster(name, nil)
		for property, value := range properties {
			var weight float64
			var text string
			switch {
			case json.Unmarshal(value, &weight) == nil:
				cluster.Spec.Metrics = append(cluster.Spec.Metrics, api.MetricRef{Name: property, Weight: &weight})
			case json.Unmarshal(value, &text) == nil && property == "namespace":
				cluster.Spec.Namespace = text
			case property == "state":
				cluster.Status.State = api.ClusterState(text)
			default:
				t.Fatalf("cluster %s: %s = %s", name, property, value)
			}
		}
	}
	for name, crds := range c.In.CustomResources {
		if w.clusters[name] == nil {
			w.cluster(name, nil)
		}
		w.clusters[name].Spec.CustomResources = crds
	}
	for name, labels := range c.In.Labels {
		if w.clusters[name] == nil {
			w.cluster(name, nil)
		}
		w.clusters[name].Metadata.Labels = labels
	}
	var states map[string]string
	if c.In.State != nil {
		if err := json.Unmarshal(c.In.State, &states); err != nil {
			t.Fatal(err)
		}
	}
	for name, state := range states {
		w.clusters[name].Status.State = api.ClusterState(state)
	}
	for _, cluster := range w.clusters {
		cluster.SetDefaults() // input takes the states in any case
	}
	for _, name := range c.In.Deleted {
		delete(w.clusters, name)
	}
	p := newPlacement("web")
	if c.In.AppNamespace != "" {
		p.Metadata.Namespace = c.In.AppNamespace
	}
	p.Spec.LabelConstraints, p.Spec.CustomResources = c.In.Constraints, c.In.CRConstraints
	if c.In.Stickiness != nil {
		p.Spec.Metrics.Stickiness = c.In.Stickiness
	}
	if c.In.RescheduleAfter != 0 {
		p.Spec.RescheduleAfter = api.Duration(fmt.Sprintf("%gs", c.In.RescheduleAfter))
	}
	present := Present{}
	if c.In.Current != nil {
		var name string
		if err := json.Unmarshal(c.In.Current, &name); err != nil {
			t.Fatal(err)
		}
		age := time.Hour
		if c.In.ScheduledAge != nil {
			age = time.Duration(*c.In.ScheduledAge * float64(time.Second))
		}
		present = w.on(age, name)
	}
	names, _ := w.decide(t, p, present)
	switch {
	case c.Out.Error != "" && len(names) > 0:
		t.Errorf("chosen %q, want %s", names, c.Out.Error)
	case c.Out.Error == "" && (len(names) != 1 || !slices.Contains(c.Out.ChooseFrom, names[0])):
		t.Errorf("chosen %q, want one of %q", names, c.Out.ChooseFrom)
	}
	f := w.fleet()
	for _, candidate := range Explain(f, compile(t, p), nil, Others{}, present, w.now).Render().Candidates {
		want, ok := c.Out.Scores[candidate.Cluster]
		if ok && (candidate.Score == nil || !near(*candidate.Score, want)) {
			t.Errorf("%s scores %v, want %v", candidate.Cluster, candidate.Score, want)
		}
	}
	conformStates(t, c, w, f)
}

// conformStates compares the states, the conditions and the metrics' reasons
// after the pass.
func conformStates(t *testing.T, c conformanceCase, w *world, f *Fleet) {
	for name, want := range c.Out.States {
		if w.clusters[name] == nil {
			continue // deleted
		}
		seen := Observe(f, nil, w.clusters[name])
		state := string(seen.Status.State)
		if want == "FAILING_METRICS" && differences[c.ID] != "" {
			condition := api.FindCondition(seen.Status.Conditions, api.ConditionMetricsAvailable)
			if state != "online" || condition == nil || condition.Status != api.ConditionFalse {
				t.Errorf("%s is %s with %+v, want online with its metrics not available", name, state, condition)
			}
			continue
		}
		if state != strings.ToLower(want) {
			t.Errorf("%s is %s, want %s", name, state, want)
		}
	}
	for name, metrics := range c.Out.MetricsReasons {
		reasons := map[string]string{}
		for _, m := range Observe(f, nil, w.clusters[name]).Status.Metrics {
			if m.Reason != "" {
				reasons[m.Name] = m.Reason
			}
		}
		for metric, code := range metrics {
			if reasons[metric] != reasonOfCode[code] {
				t.Errorf("%s: metric %s has reason %q, want %q", name, metric, reasons[metric], reasonOfCode[code])
			}
		}
		if len(reasons) != len(metrics) {
			t.Errorf("%s: reasons %v, want those of %v", name, reasons, metrics)
		}
	}
}

func conformStickiness(t *testing.T, c conformanceCase) {
	w := newWorld()
	p := newPlacement("web")
	if c.In.Tie != nil {
		for _, name := range c.In.Tie {
			w.cluster(name, nil)
		}
		first, _ := w.decide(t, p, Present{})
		again, _ := w.decide(t, p, Present{})
		if len(first) != 1 || !slices.Equal(first, again) {
			t.Errorf("chosen %q, then %q", first, again)
		}
		return
	}
	weight := c.In.SumWeights
	if weight == 0 {
		weight = 1
	}
	w.gauge("here", 0, 1, c.In.CurrentMean)
	w.gauge("there", 0, 1, c.In.OtherMean)
	w.cluster("current", map[string]float64{"here": weight})
	w.cluster("other", map[string]float64{"there": weight})
	p.Spec.Metrics.Stickiness = c.In.Stickiness
	names, _ := w.decide(t, p, w.on(time.Hour, "current"))
	want := "current"
	if c.Out.Migrate {
		want = "other"
	}
	if !slices.Equal(names, []string{want}) {
		t.Errorf("chosen %q, want %q", names, want)
	}
	if c.Out.Current == 0 && c.Out.Other == 0 {
		return
	}
	for _, candidate := range Explain(w.fleet(), compile(t, p), nil, Others{}, w.on(time.Hour, "current"), w.now).Render().Candidates {
		want := map[string]float64{"current": c.Out.Current, "other": c.Out.Other}[candidate.Cluster]
		if !near(*candidate.Score, want) {
			t.Errorf("%s scores %v, want %v", candidate.Cluster, *candidate.Score, want)
		}
	}
}

// conformTimestamps: in place of the reference's timestamps stand generations. A
// status answers the generation it observed (kct at or after modified), and
// scheduled_at is when the decision last changed.
func conformTimestamps(t *testing.T, c conformanceCase) {
	w := newWorld()
	w.gauge("here", 0, 1, 0.1)
	w.gauge("there", 0, 1, 0.9)
	w.cluster("c1", map[string]float64{"here": 1})
	w.cluster("c2", map[string]float64{"there": 1})
	p := newPlacement("web")
	p.Metadata.Generation = 2
	p.Status = api.PlacementStatus{ObservedGeneration: 2, Clusters: []string{"c1"}}
	age := time.Hour
	switch c.In.Event {
	case "":
		age = time.Second
		if c.In.Kct < c.In.Modified {
			p.Status.ObservedGeneration = 1
		}
	case "re-scheduled, other cluster":
	case "periodic, same cluster, no update":
		w.metrics[metricKey("there")].Status.Value = ptr(0.05)
	case "user update, migration disabled":
		p.Spec.Migration = ptr(false)
		p.Status.ObservedGeneration = 1
	default:
		t.Fatalf("unknown event %q", c.In.Event)
	}
	present := w.on(age, "c1")
	present.Answered = p.Status.ObservedGeneration == p.Metadata.Generation
	p.Status.Decisions, p.Status.ScheduledAt = present.Decisions, &present.ScheduledAt
	names, out := w.decide(t, p, present)
	f, q := w.fleet(), compile(t, p)
	status, _ := NewStatus(f, q, NewView(f, q, Others{}, nil), p, out, w.now, func() string { return "" })
	moved, stays := []string{"c2"}, []string{"c1"}
	want, scheduled := moved, w.now
	switch {
	case c.Out.Scheduler == "requeue after reschedule_after":
		want, scheduled = stays, present.ScheduledAt
		if out.Held != HeldByAge || !out.NextAt.Equal(present.ScheduledAt.Add(time.Minute)) {
			t.Errorf("held by %q until %v, want by age until reschedule_after", out.Held, out.NextAt)
		}
	case c.In.Event == "periodic, same cluster, no update", c.In.Event == "user update, migration disabled":
		want, scheduled = stays, present.ScheduledAt
	case c.Out.Scheduler != "enqueue" && c.In.Event != "re-scheduled, other cluster":
		t.Fatalf("unknown expectation %+v", c.Out)
	}
	if !slices.Equal(names, want) || !slices.Equal(status.Clusters, want) {
		t.Errorf("chosen %q, status %q, want %q", names, status.Clusters, want)
	}
	if !status.ScheduledAt.Equal(scheduled) {
		t.Errorf("scheduled_at %v, want %v", status.ScheduledAt, scheduled)
	}
	if status.ObservedGeneration != 2 {
		t.Errorf("observed_generation %d, want the present one", status.ObservedGeneration)
	}
}

func metricKey(name string) api.Key { return api.Key{Kind: api.KindMetric, Name: name} }

func conformMigration(t *testing.T, _ conformanceCase) {
	w := newWorld()
	w.cluster("c1", nil)
	p := newPlacement("web")
	p.Spec.Migration = ptr(false)
	if names, _ := w.decide(t, p, Present{}); !slices.Equal(names, []string{"c1"}) {
		t.Errorf("chosen %q: without migration the first decision is still made", names)
	}
}

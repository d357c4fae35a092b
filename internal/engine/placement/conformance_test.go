package placement

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// reasonOfCode maps the reference's codes to the reasons of a metric.
var reasonOfCode = map[int]string{
	91: api.ReasonInvalidMetric,
	92: api.ReasonUnreachableMetricsProvider,
	93: api.ReasonUnknownMetric,
	94: api.ReasonUnknownMetricsProvider,
}

// Codes of the reference that are not about a metric.
const noSuitableResource = 50

type metricMatchIn struct {
	Expr           conformance.Field[string]   `json:"expr"`
	Weight         conformance.Field[float64]  `json:"weight"`
	Raw            conformance.Field[*float64] `json:"raw"`
	Min            conformance.Field[float64]  `json:"min"`
	Max            conformance.Field[float64]  `json:"max"`
	ClusterMetrics conformance.Field[[]string] `json:"cluster_metrics"`
}

type metricMatchOut struct {
	Match           bool    `json:"match"`
	Basis           string  `json:"basis"`
	Norm            float64 `json:"norm"`
	Weighted        float64 `json:"weighted"`
	MatchRaw        bool    `json:"match_raw"`
	MatchNormalized bool    `json:"match_normalized"`
	MatchWeighted   bool    `json:"match_weighted"`
}

type normalizeIn struct {
	Raw           conformance.Field[json.RawMessage] `json:"raw"`
	Min           conformance.Field[float64]         `json:"min"`
	Max           conformance.Field[float64]         `json:"max"`
	AllowedValues conformance.Field[[]float64]       `json:"allowed_values"`
	DefineMetric  conformance.Field[*struct {
		Min conformance.Field[float64] `json:"min"`
		Max conformance.Field[float64] `json:"max"`
	}] `json:"define_metric"`
}

type normalizeOut struct {
	Value *float64 `json:"value"`
	Error string   `json:"error"`
	Code  int      `json:"code"`
}

type scoreIn struct {
	Metrics conformance.Field[[]struct {
		Weight conformance.Field[float64] `json:"weight"`
		Value  conformance.Field[float64] `json:"value"`
	}] `json:"metrics"`
	Current    conformance.Field[bool]     `json:"current"`
	Stickiness conformance.Field[*float64] `json:"stickiness"`
}

type scoreOut struct {
	Score float64 `json:"score"`
}

type selectIn struct {
	MetricValues    conformance.Field[map[string]json.RawMessage]            `json:"metric_values"`
	Stickiness      conformance.Field[*float64]                              `json:"stickiness"`
	RescheduleAfter conformance.Field[float64]                               `json:"reschedule_after"`
	Clusters        conformance.Field[map[string]map[string]json.RawMessage] `json:"clusters"`
	State           conformance.Field[map[string]string]                     `json:"state"`
	CustomResources conformance.Field[map[string][]string]                   `json:"custom_resources"`
	CRConstraints   conformance.Field[[]string]                              `json:"cr_constraints"`
	Current         conformance.Field[string]                                `json:"current"`
	ScheduledAge    conformance.Field[*float64]                              `json:"scheduled_age"`
	Deleted         conformance.Field[[]string]                              `json:"deleted"`
	AppNamespace    conformance.Field[string]                                `json:"app_namespace"`
}

type selectOut struct {
	Scores         map[string]float64        `json:"scores"`
	ChooseFrom     []string                  `json:"choose_from"`
	Error          string                    `json:"error"`
	Code           int                       `json:"code"`
	Reason         string                    `json:"reason"`
	States         map[string]string         `json:"states"`
	MetricsReasons map[string]map[string]int `json:"metrics_reasons"`
}

type stickinessIn struct {
	SumWeights  conformance.Field[float64]  `json:"sum_weights"`
	CurrentMean conformance.Field[float64]  `json:"current_mean"`
	OtherMean   conformance.Field[float64]  `json:"other_mean"`
	Stickiness  conformance.Field[*float64] `json:"stickiness"`
	Tie         conformance.Field[[]string] `json:"tie"`
	Current     conformance.Field[*string]  `json:"current"`
	Placement   conformance.Field[string]   `json:"placement"`
}

type stickinessOut struct {
	Current *float64 `json:"current"`
	Other   *float64 `json:"other"`
	Migrate bool     `json:"migrate"`
	Choice  string   `json:"choice"`
}

type timestampsIn struct {
	Kct       conformance.Field[int64]  `json:"kct"`
	Modified  conformance.Field[int64]  `json:"modified"`
	State     conformance.Field[string] `json:"state"`
	Event     conformance.Field[string] `json:"event"`
	Now       conformance.Field[int64]  `json:"now"`
	Scheduled conformance.Field[int64]  `json:"scheduled"`
}

type timestampsOut struct {
	Scheduler   string `json:"scheduler"`
	Controller  string `json:"controller"`
	Scheduled   *int64 `json:"scheduled"`
	ScheduledTo string `json:"scheduled_to"`
	Triggered   *int64 `json:"kube_controller_triggered"`
}

type migrationIn struct {
	Migration   conformance.Field[bool]    `json:"constraints.migration"`
	ScheduledTo conformance.Field[*string] `json:"scheduled_to"`
}

type migrationOut struct {
	Scheduled bool `json:"scheduled"`
}

// TestConformance runs the cases of what Krake does, or should do, in decisions.
func TestConformance(t *testing.T) {
	const failing = "a failing metric is a condition of the cluster, MetricsAvailable, beside its state and not in its place (section 3.1)"
	suite := conformance.Suite{
		Driver: "internal/engine/placement",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"metric_constraint_match": conformance.Player(conformMetricMatch),
			"normalize":               conformance.Player(conformNormalize),
			"score":                   conformance.Player(conformScore),
			"select_cluster":          conformance.Player(conformSelect),
			"stickiness":              conformance.Player(conformStickiness),
			"timestamps":              conformance.Player(conformTimestamps),
			"migration":               conformance.Player(conformMigration),
		},
		Differences: map[string]conformance.Difference{
			"K172": {Instead: `{"states":{"c1":"ONLINE","c2":"ONLINE"}}`, Reason: failing},
			"K173": {Instead: `{"states":{"c1":"ONLINE"}}`, Reason: failing},
		},
		Loose: map[string]string{
			"K*/choose_from +one more": "Krake chooses at random among the best: any of them is right",
		},
	}
	suite.Run(t)
}

// near compares to six decimals, the precision of the cases.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }

// on returns a decision for clusters that is a given time old.
func on(w *enginetest.World, age time.Duration, clusters ...string) Present {
	p := Present{Answered: true, ScheduledAt: w.Now.Add(-age)}
	for _, name := range clusters {
		p.Decisions = append(p.Decisions, api.Decision{Cluster: name, Since: &p.ScheduledAt})
	}
	return p
}

// decide decides a placement and returns the names of the chosen clusters.
func decide(t *testing.T, w *enginetest.World, p *api.Placement, present Present) ([]string, Outcome) {
	t.Helper()
	if errs := p.Validate(); errs != nil {
		t.Fatal(errs)
	}
	f, q := w.Fleet(), enginetest.Compile(t, NewQuery, p)
	out := Decide(f, q, NewView(f, q, ledger.Others{}, nil), ledger.Others{}, present, w.Now)
	var names []string
	for _, c := range out.Choices {
		names = append(names, f.Name(c.Row))
	}
	return names, out
}

func conformMetricMatch(t *conformance.T, in *metricMatchIn, out *metricMatchOut) {
	w := enginetest.NewWorld()
	if in.Raw.Get() == nil {
		weights := map[string]float64{}
		for _, name := range in.ClusterMetrics.Get() {
			w.Gauge(name, 0, 10, 1)
			weights[name] = 1
		}
		w.Cluster("c1", weights)
	} else {
		w.Gauge("load", in.Min.Get(), in.Max.Get(), *in.Raw.Get())
		w.Cluster("c1", map[string]float64{"load": in.Weight.Get()})
		shown := Observe(w.Fleet(), nil, w.Clusters["c1"]).Status.Metrics[0]
		if !near(*shown.Normalized, out.Norm) || !near(*shown.Normalized*shown.Weight, out.Weighted) {
			t.Errorf("the metric is %+v, want %v normalized and %v weighted", shown, out.Norm, out.Weighted)
		}
		if bases := []api.Basis{api.BasisRaw, api.BasisNormalized, api.BasisWeighted}; !slices.Contains(bases, api.Basis(out.Basis)) {
			t.Errorf("unknown basis %q", out.Basis)
		}
	}
	expected := map[api.Basis]bool{
		api.BasisRaw: out.MatchRaw, api.BasisNormalized: out.MatchNormalized, api.BasisWeighted: out.MatchWeighted,
	}
	for basis, want := range map[api.Basis]bool{
		"": out.Match, api.BasisRaw: out.MatchRaw, api.BasisNormalized: out.MatchNormalized, api.BasisWeighted: out.MatchWeighted,
	} {
		p := enginetest.NewPlacement("web")
		p.Spec.MetricConstraints, p.Spec.MetricConstraintBasis = []string{in.Expr.Get()}, basis
		p.SetDefaults()
		if basis == "" && out.Basis != "" && (p.Spec.MetricConstraintBasis != api.Basis(out.Basis) || want != expected[api.Basis(out.Basis)]) {
			t.Errorf("the default basis is %q, want %q", p.Spec.MetricConstraintBasis, out.Basis)
		}
		if names, _ := decide(t.T, w, p, Present{}); (len(names) == 1) != want {
			t.Errorf("%q on basis %q: %t, want %t", in.Expr.Get(), basis, !want, want)
		}
	}
}

func conformNormalize(t *conformance.T, in *normalizeIn, out *normalizeOut) {
	if bounds := in.DefineMetric.Get(); bounds != nil {
		low, high := bounds.Min.Get(), bounds.Max.Get()
		m := &api.Metric{Metadata: api.Metadata{Name: "m"}, Spec: api.MetricSpec{Min: &low, Max: &high}}
		m.Spec.MetricsProvider = api.MetricProviderRef{Name: "p", Metric: "m"}
		m.SetDefaults()
		if errs := m.Validate(); (errs != nil) != (out.Error == "validation") {
			t.Errorf("the metric has errors %v, want %q", errs, out.Error)
		}
		return
	}
	var raw float64
	if err := json.Unmarshal(in.Raw.Get(), &raw); err != nil {
		raw = math.NaN() // written as a string
	}
	low, high := in.Min.Get(), in.Max.Get()
	got, err := columns.Normalize(api.MetricSpec{Min: &low, Max: &high, AllowedValues: in.AllowedValues.Get()}, raw)
	if out.Value != nil {
		if err != nil || !near(got, *out.Value) {
			t.Errorf("%v is %v (%v), want %v", raw, got, err, *out.Value)
		}
		return
	}
	// Every value that cannot be normalized is invalid.
	if err == nil || out.Error != "INVALID_METRIC" || reasonOfCode[out.Code] != api.ReasonInvalidMetric {
		t.Errorf("%v is %v (%v), want %s %d", raw, got, err, out.Error, out.Code)
	}
}

func conformScore(t *conformance.T, in *scoreIn, out *scoreOut) {
	w := enginetest.NewWorld()
	weights := map[string]float64{}
	for i, m := range in.Metrics.Get() {
		name := fmt.Sprintf("m%d", i)
		w.Gauge(name, 0, 1, m.Value.Get())
		weights[name] = m.Weight.Get()
	}
	w.Cluster("c1", weights)
	p := enginetest.NewPlacement("web")
	p.Spec.Metrics.Stickiness = in.Stickiness.Get()
	present := Present{}
	if in.Current.Get() {
		present = on(w, time.Hour, "c1")
	}
	_, outcome := decide(t.T, w, p, present)
	if len(outcome.Choices) != 1 || !near(outcome.Choices[0].Score, out.Score) {
		t.Errorf("chosen %+v, want a score of %v", outcome.Choices, out.Score)
	}
}

// metricOf adds a metric in the notation of the cases: 0.9, "5 (range 0..10)" or "provider missing".
func metricOf(t *testing.T, w *enginetest.World, name string, written json.RawMessage) {
	t.Helper()
	var value, low, high float64
	var text string
	switch {
	case json.Unmarshal(written, &value) == nil:
		w.Gauge(name, 0, 1, value)
	case json.Unmarshal(written, &text) != nil:
		t.Fatalf("metric %s: %s", name, written)
	case text == "provider missing":
		w.Gauge(name, 0, 1, 0.5).Spec.MetricsProvider.Name = "nowhere"
	default:
		amount, bounds, _ := strings.Cut(strings.TrimSuffix(text, ")"), " (range ")
		from, to, ok := strings.Cut(bounds, "..")
		for written, v := range map[string]*float64{amount: &value, from: &low, to: &high} {
			if _, err := fmt.Sscan(written, v); err != nil || !ok {
				t.Fatalf("metric %s: %q: %v", name, text, err)
			}
		}
		w.Gauge(name, low, high, value)
	}
}

func conformSelect(t *conformance.T, in *selectIn, out *selectOut) {
	w := enginetest.NewWorld()
	for name, value := range in.MetricValues.Get() {
		metricOf(t.T, w, name, value)
	}
	for name, properties := range in.Clusters.Get() {
		cluster := w.Cluster(name, nil)
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
	for name, crds := range in.CustomResources.Get() {
		if w.Clusters[name] == nil {
			w.Cluster(name, nil)
		}
		w.Clusters[name].Spec.CustomResources = crds
	}
	for name, state := range in.State.Get() {
		w.Clusters[name].Status.State = api.ClusterState(state)
	}
	for _, cluster := range w.Clusters {
		cluster.SetDefaults() // states are accepted in upper and lower case
	}
	deleted := map[string]*api.Cluster{}
	for _, name := range in.Deleted.Get() {
		deleted[name] = w.Clusters[name]
		delete(w.Clusters, name)
	}
	p := enginetest.NewPlacement("web")
	if in.AppNamespace.Get() != "" {
		p.Metadata.Namespace = in.AppNamespace.Get()
	}
	p.Spec.CustomResources = in.CRConstraints.Get()
	if in.Stickiness.Get() != nil {
		p.Spec.Metrics.Stickiness = in.Stickiness.Get()
	}
	if in.RescheduleAfter.Get() != 0 {
		p.Spec.RescheduleAfter = api.Duration(fmt.Sprintf("%gs", in.RescheduleAfter.Get()))
	}
	present := Present{}
	if name := in.Current.Get(); name != "" {
		age := time.Hour
		if in.ScheduledAge.Get() != nil {
			age = time.Duration(*in.ScheduledAge.Get() * float64(time.Second))
		}
		present = on(w, age, name)
	}
	names, outcome := decide(t.T, w, p, present)
	f := w.Fleet()
	status, _ := NewStatus(f, enginetest.Compile(t.T, NewQuery, p), NewView(f, enginetest.Compile(t.T, NewQuery, p), ledger.Others{}, nil), &p.Metadata, &p.Status, outcome, w.Now, func() string { return "" })
	conformChoice(t, out, names, outcome.kept, &status)
	scores := map[string]float64{}
	for _, candidate := range Explain(f, enginetest.Compile(t.T, NewQuery, p), nil, ledger.Others{}, present, w.Now).Render().Candidates {
		if candidate.Score != nil {
			scores[candidate.Cluster] = math.Round(*candidate.Score*1e6) / 1e6
		}
	}
	if out.Scores != nil && !maps.Equal(scores, out.Scores) {
		t.Errorf("scores %v, want %v", scores, out.Scores)
	}
	conformStates(t, out, w, f, deleted)
}

// conformChoice compares the choice, or the message if nothing is chosen.
func conformChoice(t *conformance.T, out *selectOut, names []string, held KeptBy, status *api.PlacementStatus) {
	if out.Error != "" {
		scheduled := api.FindCondition(status.Conditions, api.ConditionScheduled)
		if len(names) > 0 || scheduled == nil || scheduled.Reason != api.ReasonNoSuitableClusters {
			t.Errorf("chosen %q (%+v), want %s", names, scheduled, out.Error)
		}
		if out.Error != "NO_SUITABLE_RESOURCE" || out.Code != noSuitableResource {
			t.Errorf("unknown error %s %d", out.Error, out.Code)
		}
		return
	}
	if len(names) != 1 || !slices.Contains(out.ChooseFrom, names[0]) {
		t.Errorf("chosen %q, want one of %q", names, out.ChooseFrom)
	}
	if reason := map[KeptBy]string{keptByAge: "recently scheduled"}[held]; out.Reason != reason {
		t.Errorf("held because %q, want %q", reason, out.Reason)
	}
}

// conformStates compares the states, the conditions and the reasons of the metrics after the pass. A deleted cluster
// has no state any more, so its last one is compared.
func conformStates(t *conformance.T, out *selectOut, w *enginetest.World, f *columns.Fleet, deleted map[string]*api.Cluster) {
	states, reasons := map[string]string{}, map[string]map[string]string{}
	for name, c := range deleted {
		states[name] = strings.ToUpper(string(columns.State(c)))
	}
	for name, c := range w.Clusters {
		seen := Observe(f, nil, c)
		states[name] = strings.ToUpper(string(seen.Status.State))
		for _, m := range seen.Status.Metrics {
			if m.Reason != "" {
				if reasons[name] == nil {
					reasons[name] = map[string]string{}
				}
				reasons[name][m.Name] = m.Reason
			}
		}
		condition := api.FindCondition(seen.Status.Conditions, api.ConditionMetricsAvailable)
		if failing := condition != nil && condition.Status == api.ConditionFalse; failing != (reasons[name] != nil) {
			t.Errorf("%s has the condition %+v, but its failing metrics are %v", name, condition, reasons[name])
		}
	}
	if out.States != nil && !maps.Equal(states, out.States) {
		t.Errorf("states %v, want %v", states, out.States)
	}
	if out.MetricsReasons == nil {
		return
	}
	want := map[string]map[string]string{}
	for name, metrics := range out.MetricsReasons {
		want[name] = map[string]string{}
		for metric, code := range metrics {
			want[name][metric] = reasonOfCode[code]
		}
	}
	if !reflect.DeepEqual(reasons, want) {
		t.Errorf("metrics fail because of %v, want %v", reasons, want)
	}
}

func conformStickiness(t *conformance.T, in *stickinessIn, out *stickinessOut) {
	w := enginetest.NewWorld()
	p := enginetest.NewPlacement("web")
	if in.Tie.Get() != nil {
		p.Metadata.Name = in.Placement.Get()
		for _, name := range in.Tie.Get() {
			w.Cluster(name, nil)
		}
		if in.Current.Get() != nil {
			t.Fatalf("a tie with the present cluster %q is not supported", *in.Current.Get())
		}
		first, _ := decide(t.T, w, p, Present{})
		again, _ := decide(t.T, w, p, Present{})
		if len(first) != 1 || !slices.Equal(first, again) || out.Choice != "deterministic for the same inputs" {
			t.Errorf("chosen %q, then %q, want %s", first, again, out.Choice)
		}
		return
	}
	weight := in.SumWeights.Get()
	if weight == 0 {
		weight = 1
	}
	w.Gauge("here", 0, 1, in.CurrentMean.Get())
	w.Gauge("there", 0, 1, in.OtherMean.Get())
	w.Cluster("current", map[string]float64{"here": weight})
	w.Cluster("other", map[string]float64{"there": weight})
	p.Spec.Metrics.Stickiness = in.Stickiness.Get()
	names, _ := decide(t.T, w, p, on(w, time.Hour, "current"))
	want := "current"
	if out.Migrate {
		want = "other"
	}
	if !slices.Equal(names, []string{want}) {
		t.Errorf("chosen %q, want %q", names, want)
	}
	for _, candidate := range Explain(w.Fleet(), enginetest.Compile(t.T, NewQuery, p), nil, ledger.Others{}, on(w, time.Hour, "current"), w.Now).Render().Candidates {
		want := map[string]*float64{"current": out.Current, "other": out.Other}[candidate.Cluster]
		if want != nil && !near(*candidate.Score, *want) {
			t.Errorf("%s scores %v, want %v", candidate.Cluster, *candidate.Score, *want)
		}
	}
}

// conformTimestamps uses generations in place of the reference's timestamps. A status answers the generation that it
// observed (kct at or after modified), and scheduled_at is the time of the last change of the decision.
func conformTimestamps(t *conformance.T, in *timestampsIn, out *timestampsOut) {
	w := enginetest.NewWorld()
	w.Gauge("here", 0, 1, 0.1)
	w.Gauge("there", 0, 1, 0.9)
	w.Cluster("c1", map[string]float64{"here": 1})
	w.Cluster("c2", map[string]float64{"there": 1})
	p := enginetest.NewPlacement("web")
	p.Metadata.Generation = 2
	p.Status = api.PlacementStatus{ObservedGeneration: 2, Clusters: []string{"c1"}}
	if in.Kct.Get() < in.Modified.Get() {
		p.Status.ObservedGeneration = 1
	}
	// A second in the reference is a minute here, so that its times are further apart than reschedule_after.
	moment := func(seconds int64) time.Time { return w.Now.Add(time.Duration(seconds-in.Now.Get()) * time.Minute) }
	scheduled := w.Now.Add(-time.Second)
	if in.Now.Has() {
		scheduled = w.Now.Add(-time.Hour)
	}
	if in.Scheduled.Has() {
		scheduled = moment(in.Scheduled.Get())
	}
	switch in.Event.Get() {
	case "", "re-scheduled, other cluster":
	case "periodic, same cluster, no update":
		w.Metrics[metricKey("there")].Status.Value = new(0.05)
	case "user update, migration disabled":
		p.Spec.Migration = new(false)
	default:
		t.Fatalf("unknown event %q", in.Event.Get())
	}
	if state := in.State.Get(); state != "" && state != "RUNNING" {
		t.Fatalf("state %q is not supported", state)
	}
	present := on(w, w.Now.Sub(scheduled), "c1")
	present.Answered = p.Status.ObservedGeneration == p.Metadata.Generation
	p.Status.Decisions, p.Status.ScheduledAt = present.Decisions, &present.ScheduledAt
	names, outcome := decide(t.T, w, p, present)
	f, q := w.Fleet(), enginetest.Compile(t.T, NewQuery, p)
	v := NewView(f, q, ledger.Others{}, nil)
	explain := func() string { return "" }
	settled, _ := NewStatus(f, q, v, &p.Metadata, &p.Status, outcome, w.Now, explain)
	p.Status.Conditions = settled.Conditions // as after the previous passes
	status, changed := NewStatus(f, q, v, &p.Metadata, &p.Status, outcome, w.Now, explain)
	if !slices.Equal(names, status.Clusters) || status.ObservedGeneration != 2 {
		t.Errorf("chosen %q, status %+v, want the same, observed", names, status)
	}
	moved := slices.Equal(names, []string{"c2"})
	if !moved && !slices.Equal(names, []string{"c1"}) {
		t.Errorf("chosen %q", names)
	}
	if at := map[bool]time.Time{false: scheduled, true: w.Now}[moved]; !status.ScheduledAt.Equal(at) {
		t.Errorf("scheduled_at %v, want %v", status.ScheduledAt, at)
	}
	// A controller acts on a status only if it answers the present spec.
	answered := map[bool]string{true: "accept", false: "reject"}[present.Answered]
	if in.Event.Has() {
		// Watchers see the status when it is written.
		written := in.Kct.Get()
		if changed {
			written = in.Now.Get()
		}
		if out.Triggered == nil || *out.Triggered != written {
			t.Errorf("the status was written at %v, want %v", written, out.Triggered)
		}
		if out.Scheduled != nil && !status.ScheduledAt.Equal(moment(*out.Scheduled)) {
			t.Errorf("scheduled_at %v, want %v", status.ScheduledAt, moment(*out.Scheduled))
		}
		if stays := map[bool]string{false: "unchanged"}[moved]; out.ScheduledTo != "" && out.ScheduledTo != stays {
			t.Errorf("chosen %q, want %s", status.Clusters, out.ScheduledTo)
		}
		return
	}
	decided := "enqueue"
	if !moved && outcome.kept == keptByAge && outcome.NextAt.Equal(present.ScheduledAt.Add(time.Minute)) {
		decided = "requeue after reschedule_after"
	}
	if out.Scheduler != decided || out.Controller != answered {
		t.Errorf("the scheduler has %q, the controller %q, want %+v", decided, answered, out)
	}
}

func metricKey(name string) api.Key { return api.Key{Kind: api.KindMetric, Name: name} }

func conformMigration(t *conformance.T, in *migrationIn, out *migrationOut) {
	w := enginetest.NewWorld()
	w.Cluster("c1", nil)
	p := enginetest.NewPlacement("web")
	p.Spec.Migration = new(in.Migration.Get())
	present := Present{}
	if name := in.ScheduledTo.Get(); name != nil {
		present = on(w, time.Hour, *name)
	}
	if names, _ := decide(t.T, w, p, present); slices.Equal(names, []string{"c1"}) != out.Scheduled {
		t.Errorf("chosen %q, but the first decision must be made without migration, too", names)
	}
}

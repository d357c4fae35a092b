package placement

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

func TestObserve(t *testing.T) {
	w := krakeWorld()
	c := w.Cluster("c1", map[string]float64{"load": 2, "bad": 1})
	c.Spec.Allocatable, c.Spec.Allocated = api.Quantities{"cpu": "4", "memory": "1Gi"}, api.Quantities{"cpu": "1"}
	c.Status.Conditions = []api.Condition{{Type: api.ConditionMetricsAvailable, Status: api.ConditionTrue}, {Type: api.ConditionReady}}
	f := w.Fleet()
	p := enginetest.NewPlacement("web")
	p.Spec.ResourceRequests = api.Quantities{"cpu": "500m"}
	reserved := ledger.NewReservations()
	reserve(t, reserved, f, p, "c1", enginetest.Epoch)

	seen := Observe(f, reserved, c)
	if seen.Status.State != api.StateOnline || seen.Status.Available["cpu"] != "2500m" || seen.Status.Available["memory"] != "1Gi" {
		t.Errorf("state %s, available %v", seen.Status.State, seen.Status.Available)
	}
	metrics := seen.Status.Metrics
	if len(metrics) != 2 || metrics[0].Reason != api.ReasonInvalidMetric || metrics[0].Normalized != nil ||
		*metrics[1].Value != 5 || *metrics[1].Normalized != 0.5 || metrics[1].Weight != 2 || metrics[1].Reason != "" {
		t.Errorf("metrics %+v", metrics)
	}
	condition := api.FindCondition(seen.Status.Conditions, api.ConditionMetricsAvailable)
	if len(seen.Status.Conditions) != 2 || condition.Status != api.ConditionFalse || !strings.Contains(condition.Message, `"bad"`) {
		t.Errorf("conditions %+v", seen.Status.Conditions)
	}
	if c.Status.Metrics != nil || c.Status.Conditions[0].Status != api.ConditionTrue {
		t.Error("the object itself was changed")
	}
	stranger := &api.Cluster{Metadata: api.Metadata{Name: "new"}, Spec: api.ClusterSpec{Health: &api.HealthSpec{}}}
	if got := Observe(f, nil, stranger).Status; got.State != api.StatePending || got.Available != nil {
		t.Errorf("status %+v of a cluster that is not in the fleet yet, want it pending", got)
	}
	if ledger.Available(f, nil, 99) != nil {
		t.Error("a nonexistent row has available resources")
	}
}

func TestNewStatus(t *testing.T) {
	w := krakeWorld()
	w.Cluster("c1", map[string]float64{"ec": 1})
	w.Cluster("c2", map[string]float64{"ge": 1})
	p := enginetest.NewPlacement("web")
	f := w.Fleet()
	step := func(after time.Duration) (bool, api.PlacementStatus) {
		t.Helper()
		q, now := enginetest.Compile(t, NewQuery, p), enginetest.Epoch.Add(after)
		present := Present{Decisions: p.Status.Decisions, Answered: p.Status.ObservedGeneration == p.Metadata.Generation}
		if p.Status.ScheduledAt != nil {
			present.ScheduledAt = *p.Status.ScheduledAt
		}
		e := Explain(f, q, nil, ledger.Others{}, present, now)
		status, changed := NewStatus(f, q, NewView(f, q, ledger.Others{}, nil), &p.Metadata, &p.Status, e.Outcome, now, e.Summary)
		return changed, status
	}
	expect := func(after time.Duration, changed bool, revision int64, reasons []string, clusters ...string) {
		t.Helper()
		got, status := step(after)
		if got != changed || status.DecisionRevision != revision || !slices.Equal(status.Clusters, clusters) ||
			status.ObservedGeneration != p.Metadata.Generation {
			t.Errorf("changed %t: %+v, want changed %t, revision %d, clusters %q", got, status, changed, revision, clusters)
		}
		for i, condition := range []string{api.ConditionScheduled, api.ConditionSatisfied, api.ConditionMisconfigured} {
			c := api.FindCondition(status.Conditions, condition)
			if c == nil || c.Reason != reasons[i] {
				t.Errorf("condition %+v, want reason %s", c, reasons[i])
			}
		}
		p.Status = status
	}
	fine := []string{api.ReasonScheduled, api.ReasonSatisfied, api.ReasonWellConfigured}
	expect(0, true, 1, fine, "c1")
	expect(time.Second, false, 1, fine, "c1")
	if !p.Status.ScheduledAt.Equal(enginetest.Epoch) || !p.Status.Decisions[0].Since.Equal(enginetest.Epoch) {
		t.Errorf("scheduled at %v, want the time of the decision, not of a later evaluation", p.Status.ScheduledAt)
	}

	w.Metrics[metricKey("ec")].Status.Value = new(0.05) // the same decision with another score writes nothing
	f = w.Fleet()
	expect(2*time.Second, false, 1, fine, "c1")
	if p.Status.Decisions[0].Score != 0.9 {
		t.Errorf("score %v, want the one of the decision", p.Status.Decisions[0].Score)
	}
	w.Metrics[metricKey("ge")].Status.Value = new(0.9)
	f = w.Fleet()
	expect(time.Hour, true, 2, fine, "c2")
	if !p.Status.ScheduledAt.Equal(enginetest.Epoch.Add(time.Hour)) {
		t.Errorf("scheduled at %v, want the time of the move", p.Status.ScheduledAt)
	}

	w.Metrics[metricKey("ge")].Status.Value = new(0.8)
	f = w.Fleet()
	p.Metadata.Generation++ // another spec, the same clusters
	expect(2*time.Hour, true, 2, fine, "c2")
	if p.Status.Decisions[0].Score == 0.9 {
		t.Error("the score is still that of the previous spec")
	}
	if !p.Status.ScheduledAt.Equal(enginetest.Epoch.Add(time.Hour)) {
		t.Errorf("scheduled at %v, want no new time: the decision did not change", p.Status.ScheduledAt)
	}
	p.Metadata.Generation++
	p.Spec.NumberOfClusters = new(int64(3))
	expect(2*time.Hour, true, 3, []string{api.ReasonScheduled, api.ReasonTooFewClusters, api.ReasonWellConfigured}, "c2", "c1")
	if !p.Status.Decisions[0].Since.Equal(enginetest.Epoch.Add(time.Hour)) || !p.Status.Decisions[1].Since.Equal(enginetest.Epoch.Add(2*time.Hour)) {
		t.Errorf("decisions %+v, want each cluster to keep its own since", p.Status.Decisions)
	}
	p.Metadata.Generation++
	p.Spec.NumberOfClusters = nil
	expect(2*time.Hour, true, 3, []string{api.ReasonScheduled, api.ReasonAllFitting, api.ReasonWellConfigured}, "c2", "c1")
	p.Metadata.Generation++
	p.Spec.NumberOfClusters = new(int64(0))
	expect(2*time.Hour, true, 4, []string{api.ReasonNoClustersWanted, api.ReasonNoClustersWanted, api.ReasonWellConfigured})
	p.Metadata.Generation++
	p.Spec.NumberOfClusters, p.Spec.MetricConstraints = new(int64(1)), []string{"gohst > 1", "gohst < 9"}
	expect(2*time.Hour, true, 4, []string{api.ReasonNoSuitableClusters, api.ReasonNoSuitableClusters, api.ReasonUnknownMetrics})
	message := api.FindCondition(p.Status.Conditions, api.ConditionScheduled).Message
	if message != `0 of 2 clusters fit: 2 do not match metric constraint "gohst > 1"` {
		t.Errorf("message %q, want the metric constraint as the reason", message)
	}
	if got := api.FindCondition(p.Status.Conditions, api.ConditionMisconfigured).Message; strings.Count(got, "gohst") != 1 {
		t.Errorf("message %q, want the name once", got)
	}
}

// TestFailingMetricsAreNamed checks that a message about clusters rejected for failing metrics names the metrics, the
// most frequent first.
func TestFailingMetricsAreNamed(t *testing.T) {
	w := krakeWorld()
	for name, metric := range map[string]string{"a": "m1", "b": "m3", "c": "m3", "d": "m2"} {
		w.Cluster(name, nil).Spec.Metrics = []api.MetricRef{{Name: metric}, {Name: "m9", Namespace: "shop"}}
	}
	e := Explain(w.Fleet(), enginetest.Compile(t, NewQuery, enginetest.NewPlacement("web")), nil, ledger.Others{}, Present{}, w.Now)
	if got, want := e.Summary(), `0 of 4 clusters fit: 4 have a failing metric ("m3": does not exist; "m1": does not exist and 1 more)`; got != want {
		t.Errorf("summary %s, want %s", got, want)
	}
	want := []api.Rejection{{Filter: "metrics_available", On: "m3", Count: 2}, {Filter: "metrics_available", On: "m1", Count: 1}, {Filter: "metrics_available", On: "m2", Count: 1}}
	if got := e.Rejections(); !slices.Equal(got, want) {
		t.Errorf("rejections %v, want %v", got, want)
	}
}

// The message of an unchanged decision lists the clusters in the order of the status, whatever their scores are now.
// Otherwise it would depend on when the decision was last evaluated.
func TestSummaryKeepsTheOrderOfTheStatus(t *testing.T) {
	w := krakeWorld()
	w.Cluster("c1", map[string]float64{"ge": 1})
	w.Cluster("c4", map[string]float64{"ec": 1})
	p := enginetest.NewPlacement("web")
	p.Spec.NumberOfClusters = new(int64(3))
	present := Present{Decisions: []api.Decision{{Cluster: "c1"}, {Cluster: "c4"}}, Answered: true}
	e := Explain(w.Fleet(), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, present, w.Now)
	if first := w.Fleet().Name(e.Choices[0].Row); first != "c4" {
		t.Fatalf("%s is best, want c4, whose score has risen above c1's", first)
	}
	if got, want := e.Summary(), "c1, c4 chosen, 3 wanted; "; !strings.HasPrefix(got, want) {
		t.Errorf("summary of an unchanged decision is %q, want %q", got, want)
	}
	for name, present := range map[string]Present{
		"another spec":       {Decisions: present.Decisions},
		"a fresh decision":   {Decisions: present.Decisions, Answered: true, Fresh: true},
		"one of them is new": {Decisions: present.Decisions[1:], Answered: true},
	} {
		e := Explain(w.Fleet(), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, present, w.Now)
		if got, want := e.Summary(), "c4, c1 chosen, 3 wanted; "; !strings.HasPrefix(got, want) {
			t.Errorf("%s: summary %q, want %q", name, got, want)
		}
	}
}

// TestSummary checks that the sentence names the chosen clusters, how many fit, and each reason with its count, with
// correct plurals.
func TestSummary(t *testing.T) {
	w := krakeWorld()
	p := enginetest.NewPlacement("web")
	p.Metadata.Namespace = "shop"
	p.Spec.NumberOfClusters = new(int64(5))
	p.Spec.LabelConstraints, p.Spec.MetricConstraints = []string{"location is DE"}, []string{"load > 1"}
	p.Spec.CustomResources, p.Spec.ResourceRequests = []string{"a.example.com"}, api.Quantities{"cpu": "2"}
	fit := func(name string) *api.Cluster {
		c := w.Cluster(name, map[string]float64{"load": 1})
		c.Metadata.Labels = map[string]string{"location": "DE"}
		c.Spec.CustomResources = []string{"a.example.com"}
		c.Spec.Allocatable = api.Quantities{"cpu": "2"}
		return c
	}
	fit("good")
	fit("foreign").Spec.Namespace = "bank"
	down := fit("down")
	down.Status.State = api.StateOffline
	down.Status.Conditions = []api.Condition{{Type: api.ConditionReady, Status: api.ConditionFalse, Message: "no heartbeat for 30s"}}
	fit("paused").Spec.Paused = true
	fit("elsewhere").Metadata.Labels = map[string]string{"location": "SK"}
	fit("nowhere").Metadata.Labels = nil
	fit("plain").Spec.CustomResources = nil
	fit("ailing").Spec.Metrics = []api.MetricRef{{Name: "nop"}}
	fit("idle").Spec.Metrics = nil
	fit("full").Spec.Allocated = api.Quantities{"cpu": "1"}
	fit("silent").Spec.Allocatable = nil
	e := Explain(w.Fleet(), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, Present{}, w.Now)
	want := `good chosen, 5 wanted; 1 of 10 clusters fits: 1 is not online, 1 is paused, ` +
		`2 do not match label constraint "location is DE", 1 lacks custom resource "a.example.com", 1 has a failing metric ("nop": metrics_provider "nowhere" does not exist), ` +
		`1 does not match metric constraint "load > 1", 2 have less than 2 of cpu available`
	if got := e.Summary(); got != want {
		t.Errorf("summary\n%s, want\n%s", got, want)
	}
	reasons := map[string]string{
		"foreign": `belongs to namespace "bank"`, "down": "is offline: no heartbeat for 30s", "paused": "is paused: it takes no new decisions",
		"elsewhere": `label "location" is "SK", wanted "location is DE"`, "nowhere": `label "location" is absent`,
		"plain":  `lacks custom resource "a.example.com"`,
		"ailing": `metric "nop" is not available: UnknownMetricsProvider (metrics_provider "nowhere" does not exist)`,
		"idle":   `metric "load" has no value`, "full": "has 1 of cpu available, 2 requested", "silent": "reports no allocatable cpu",
	}
	for _, c := range e.Render().Candidates {
		if c.Reason != reasons[c.Cluster] {
			t.Errorf("%s: got %q, want %q", c.Cluster, c.Reason, reasons[c.Cluster])
		}
	}
	p.Spec = api.PlacementSpec{}
	p.SetDefaults()
	if got := Explain(w.Fleet(), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, Present{}, w.Now).Summary(); !strings.HasPrefix(got, "good, ") && !strings.Contains(got, "more chosen") {
		t.Errorf("summary %q", got)
	}
	p.Spec.NumberOfClusters = new(int64(0))
	if got := Explain((&columns.Fleet{}), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, Present{}, w.Now).Summary(); got != "no clusters wanted; 0 of 0 clusters fit" {
		t.Errorf("summary %q", got)
	}
}

// TestMargin checks that the decision moves if the challenger gains more than the margin.
func TestMargin(t *testing.T) {
	w := enginetest.NewWorld()
	w.Gauge("here", 0, 1, 0.5)
	there := w.Gauge("there", 0, 1, 0.5)
	w.Cluster("c1", map[string]float64{"here": 1})
	w.Cluster("c2", map[string]float64{"there": 1})
	p := enginetest.NewPlacement("web")
	p.Spec.MinImprovement = 0.1
	present := on(w, time.Hour, "c1")
	margin := Explain(w.Fleet(), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, present, w.Now).Render().Margin
	if margin == nil || margin.From != "c1" || margin.To != "c2" || !near(margin.Margin, 0.6/1.1+0.1-0.5) {
		t.Fatalf("margin %+v", margin)
	}
	for gain, want := range map[float64]string{margin.Margin - 1e-9: "c1", margin.Margin + 1e-9: "c2"} {
		there.Status.Value = new(0.5 + gain)
		if names, _ := decide(t, w, p, present); names[0] != want {
			t.Errorf("with a gain of %v: chosen %q, want %s", gain, names, want)
		}
	}
	young := on(w, time.Second, "c1")
	there.Status.Value = new(1.0)
	e := Explain(w.Fleet(), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, young, w.Now).Render()
	if e.Kept != string(keptByAge) || e.Margin.Margin >= 0 || !e.NextAt.Equal(young.ScheduledAt.Add(time.Minute)) {
		t.Errorf("kept %q until %v with margin %+v, want a negative one", e.Kept, e.NextAt, e.Margin)
	}
	// It was made by another server, whose clock is ahead. It must hold no longer than a new one.
	ahead := Present{Decisions: young.Decisions, Answered: true, ScheduledAt: w.Now.Add(time.Hour)}
	if e := Explain(w.Fleet(), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, ahead, w.Now).Render(); e.Kept != string(keptByAge) || !e.NextAt.Equal(w.Now.Add(time.Minute)) {
		t.Errorf("kept %q until %v, want for a minute", e.Kept, e.NextAt)
	}
	p.Spec.RescheduleAfter = "0s"
	if names, _ := decide(t, w, p, ahead); names[0] != "c2" {
		t.Errorf("chosen %q, want c2: clock differences must not delay a move", names)
	}
}

func TestNewQueryRefuses(t *testing.T) {
	for field, change := range map[string]func(s *api.PlacementSpec){
		"spec.label_constraints[0]":        func(s *api.PlacementSpec) { s.LabelConstraints = []string{"a isb"} },
		"spec.metric_constraints[0]":       func(s *api.PlacementSpec) { s.MetricConstraints = []string{"a <"} },
		`spec.resource_requests["cpu"]`:    func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "x"} },
		`spec.strategy: "dice" is not kno`: func(s *api.PlacementSpec) { s.Strategy = "dice" },
	} {
		p := enginetest.NewPlacement("web")
		change(&p.Spec)
		if _, err := NewQuery(p); err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), `"default/web"`) {
			t.Errorf("NewQuery() error %v, want one about %s of the placement", err, field)
		}
	}
}

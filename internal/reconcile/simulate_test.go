package reconcile

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func raw(texts ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		out[i] = json.RawMessage(text)
	}
	return out
}

// readTable reads static metrics the way a collector does, without conditions.
func readTable(provider *api.MetricsProvider, metric *api.Metric, _ time.Time) (api.MetricStatus, bool) {
	if provider.Spec.Static == nil {
		return api.MetricStatus{}, false
	}
	value, ok := provider.Spec.Static.Metrics[metric.Spec.MetricsProvider.Metric]
	if !ok {
		return api.MetricStatus{}, true
	}
	return api.MetricStatus{Value: &value}, true
}

const staticFleet = `{"kind":"metrics_provider","metadata":{"name":"p"},"spec":{"type":"static","static":{"metrics":{"a":0.9,"b":0.1}}}}`

var staticObjects = raw(staticFleet,
	`{"kind":"metric","metadata":{"name":"a"},"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"a"}}}`,
	`{"kind":"metric","metadata":{"name":"b"},"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"b"}}}`,
	`{"kind":"cluster","metadata":{"name":"c1"},"spec":{"metrics":[{"name":"a","weight":10},{"name":"b","weight":1}]}}`,
	`{"kind":"cluster","metadata":{"name":"c2"},"spec":{"metrics":[{"name":"a","weight":1},{"name":"b","weight":10}]}}`,
)

func TestSimulateFromNothing(t *testing.T) {
	for _, test := range []struct {
		name, placement string
		want            []string
		score           float64
	}{
		{"first decision", `{"kind":"placement","metadata":{"name":"web"},"spec":{"number_of_clusters":1}}`, []string{"c1"}, 0.827273},
		{"recent decision stays", `{"kind":"placement","metadata":{"name":"web"},"spec":{"number_of_clusters":1},
			"status":{"clusters":["c2"],"scheduled_at":"2026-03-01T11:59:30Z"}}`, []string{"c2"}, 0.180180},
		{"old decision moves", `{"kind":"placement","metadata":{"name":"web"},"spec":{"number_of_clusters":1},
			"status":{"clusters":["c2"],"scheduled_at":"2026-03-01T11:59:00Z"}}`, []string{"c1"}, 0.827273},
		{"recent decision for an older spec moves", `{"kind":"placement","metadata":{"name":"web","generation":2},"spec":{"number_of_clusters":1},
			"status":{"observed_generation":1,"decisions":[{"cluster":"c2","score":0.2,"rank":1}],"scheduled_at":"2026-03-01T11:59:30Z"}}`, []string{"c1"}, 0.827273},
		{"migration off", `{"kind":"placement","metadata":{"name":"web"},"spec":{"number_of_clusters":1,"migration":false},
			"status":{"clusters":["c2"],"scheduled_at":"2026-03-01T11:00:00Z"}}`, []string{"c2"}, 0.180180},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := api.Simulation{Base: "empty", Now: &epoch, Objects: append(slices.Clone(staticObjects), raw(test.placement)...)}
			result, err := SimulateFile(t.Context(), request, readTable, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			last := result.Objects[len(result.Objects)-1].(*api.Placement)
			if !slices.Equal(last.Status.Clusters, test.want) {
				t.Errorf("clusters %v, want %v", last.Status.Clusters, test.want)
			}
			// A decision without a score in the request has one in the result.
			if d := last.Status.Decisions[0]; d.Score < test.score-1e-6 || d.Score > test.score+1e-6 {
				t.Errorf("decision %+v, want score %v", d, test.score)
			}
			if len(result.Explanations) != 1 {
				t.Fatalf("%d explanations, want 1", len(result.Explanations))
			}
			first := result.Explanations[0].Candidates[0]
			if first.Cluster != test.want[0] || !first.Selected || *first.Score < test.score-1e-6 || *first.Score > test.score+1e-6 {
				t.Errorf("best candidate %+v with score %v, want score %v", first, *first.Score, test.score)
			}
		})
	}
}

func TestSimulateKeepsAScoreItIsGiven(t *testing.T) {
	request := api.Simulation{Now: &epoch, Objects: append(slices.Clone(staticObjects), raw(`{"kind":"placement","metadata":{"name":"web"},
		"spec":{"number_of_clusters":2},"status":{"decisions":[{"cluster":"c2","score":0.5},{"cluster":"c1"}],"scheduled_at":"2026-03-01T11:59:30Z"}}`)...)}
	result, err := SimulateFile(t.Context(), request, readTable, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	decisions := result.Objects[len(result.Objects)-1].(*api.Placement).Status.Decisions
	if len(decisions) != 2 || decisions[0].Score != 0.5 || decisions[1].Score < 0.8 {
		t.Errorf("decisions %+v, want c2 with 0.5 as given, and c1 with its score", decisions)
	}
}

// A simulation accepts an object as the API returns it: without its secrets.
func TestSimulateObjectsAsTheyAreShown(t *testing.T) {
	y, _ := start(t)
	p := provider()
	p.Spec.Headers = map[string]api.Secret{"X-Key": api.NewSecret("key")}
	y.put(p)
	shown, err := json.Marshal(y.fleet.Snapshot().Get(api.KeyOf(p)).Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"live", "empty"} {
		result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Base: base, Objects: []json.RawMessage{shown}})
		if err != nil {
			t.Errorf("base %s: %s", base, err)
			continue
		}
		if again, _ := json.Marshal(result.Objects[0]); !slices.Equal(again, shown) && base == "live" {
			t.Errorf("base live: result %s, want %s as given", again, shown)
		}
	}
}

// In a simulation, too, new allocated amounts are a capacity report: they include what runs there, and move nothing off
// the cluster.
func TestSimulateACapacityReport(t *testing.T) {
	y, _ := start(t)
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1"}, Spec: api.ClusterSpec{Allocatable: api.Quantities{"cpu": "4"}}}
	y.put(c)
	p := newPlacement("web", 1)
	p.Spec.ResourceRequests = api.Quantities{"cpu": "2"}
	y.put(p)
	for report, available := range map[string]api.Quantity{`"allocated":{"cpu":"3"}`: "1", `"region":"eu"`: "2"} {
		result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Objects: raw(
			`{"kind":"cluster","metadata":{"name":"c1"},"spec":{"allocatable":{"cpu":"4"},` + report + `}}`)})
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Changes) != 0 {
			t.Errorf("the report %s moves %+v", report, result.Changes)
		}
		if got := result.Objects[0].(*api.Cluster).Status.Available["cpu"]; got != available {
			t.Errorf("the report %s leaves %s of cpu available, want %s", report, got, available)
		}
		if got := result.Objects[0].(*api.Cluster).Status; available == "2" && got.ObservedGeneration != 0 {
			t.Errorf("%s: observed_generation is set although nothing was observed: %+v", report, got)
		}
	}
}

func TestSimulateReportsEveryBadObject(t *testing.T) {
	_, err := SimulateFile(t.Context(), api.Simulation{Base: "lve", Objects: raw(
		`{"kind":"placement","metadata":{"name":"Web"},"spec":{"label_constraints":["x"]}}`,
		`{"kind":"nothing"}`,
		`{"kind":"cluster","metadata":{"name":"c"},"spec":{"colour":"red"}}`,
		`{"kind":"cluster","metadata":{"name":"d"},"spec":{}}`,
		`{"kind":"cluster","metadata":{"name":"d"},"spec":{}}`,
	), Delete: []api.Key{{Kind: api.KindCluster, Name: "gone"}}}, nil, epoch)
	var errs api.FieldErrors
	if !errors.As(err, &errs) {
		t.Fatalf("error %v, want field errors", err)
	}
	var fields []string
	for _, e := range errs {
		fields = append(fields, e.Field)
	}
	want := []string{"base", "delete[0]", "objects[0].metadata.name", "objects[0].spec.label_constraints[0]", "objects[1].kind", "objects[2].spec.colour", "objects[4]"}
	if !slices.Equal(fields, want) {
		t.Errorf("fields %q, want %q", fields, want)
	}
}

func TestSimulateOverTheLiveFleet(t *testing.T) {
	y, _ := start(t)
	y.twoClusters()
	y.put(newPlacement("web", 1))
	y.put(newPlacement("both", 2))
	before := y.placement("web").Metadata.ResourceVersion
	result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Delete: []api.Key{{Kind: api.KindCluster, Name: "c1"}}})
	if err != nil {
		t.Fatal(err)
	}
	var moved []string
	for _, c := range result.Changes {
		moved = append(moved, c.Name)
	}
	if !slices.Equal(moved, []string{"both", "web"}) {
		t.Errorf("%v move without c1, want both and web", moved)
	}
	if c := result.Changes[1]; !slices.Equal(c.From, []string{"c1"}) || !slices.Equal(c.To, []string{"c2"}) || c.Message == "" {
		t.Errorf("change of web %+v, want c1 to c2, with a message", c)
	}
	for _, e := range result.Explanations {
		if e.Name == "web" && (len(e.Candidates) != 1 || e.Candidates[0].Current || !e.Candidates[0].Selected) {
			t.Errorf("web is new on c2, but the explanation is %+v", e.Candidates)
		}
	}
	if got := y.placement("web"); got.Metadata.ResourceVersion != before || !slices.Equal(got.Status.Clusters, []string{"c1"}) {
		t.Error("the simulation modified the live placement")
	}
}

// What is simulated was written by nobody, also if the object is given as the API shows it.
func TestSimulatedCausesHaveNoActor(t *testing.T) {
	y, _ := start(t)
	y.twoClusters()
	y.put(newPlacement("web", 1))
	for base, given := range map[string][]json.RawMessage{
		"live":  raw(`{"kind":"cluster","metadata":{"name":"c1","written_by":{"token":"alice"}},"spec":{"taints":[{"key":"disk","effect":"NoSelect"}]}}`),
		"empty": raw(`{"kind":"cluster","metadata":{"name":"c1"}}`, `{"kind":"placement","metadata":{"name":"web","namespace":"shop","written_by":{"token":"alice"}},"spec":{}}`),
	} {
		result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Base: base, Objects: given})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(result.Objects, func(o api.Object) bool { return o.ObjectKind() == api.KindPlacement })
		if i < 0 {
			t.Fatalf("base %s: no placement among %d objects", base, len(result.Objects))
		}
		cause := result.Objects[i].(*api.Placement).Status.Cause
		if cause == nil || cause.Object == nil || cause.Actor != nil {
			t.Errorf("base %s: the cause is %+v, want one without an actor", base, cause)
		}
	}
}

// Replicas whose requests grow are measured again on their clusters, in a simulation as well as after a write.
func TestSimulateReplicasThatBecomeLarger(t *testing.T) {
	for _, test := range []struct {
		name     string
		south    string
		replicas int64
	}{
		{"replicas have to move", "30", 4},
		{"replicas have to move, and more are requested", "30", 5},
		{"not enough room for all replicas", "3", 5},
		{"not enough room for the running replicas", "1", 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			y, _ := start(t)
			y.put(sized("north", "1"))
			y.put(sized("south", test.south))
			y.put(policy("equal", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = &api.ReplicaScheduling{} }))
			y.put(workload("web", 4))
			larger := workload("web", test.replicas, func(w *api.Workload) { w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} })
			given, err := json.Marshal(map[string]any{"kind": api.KindWorkload, "metadata": map[string]any{"namespace": "shop", "name": "web"}, "spec": larger.Spec})
			if err != nil {
				t.Fatal(err)
			}
			result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Objects: []json.RawMessage{given}})
			if err != nil {
				t.Fatal(err)
			}
			said := result.Objects[0].(*api.Workload).Status
			is := y.put(larger).Object.(*api.Workload).Status
			sameSeat := func(a, b api.WorkloadCluster) bool { return a.Name == b.Name && a.Replicas == b.Replicas }
			if !slices.EqualFunc(said.Clusters, is.Clusters, sameSeat) {
				t.Errorf("simulated clusters %+v, want %+v as decided", said.Clusters, is.Clusters)
			}
			was, now := api.FindCondition(said.Conditions, api.ConditionScheduled), api.FindCondition(is.Conditions, api.ConditionScheduled)
			if was == nil || now == nil || was.Status != now.Status || was.Message != now.Message {
				t.Errorf("simulated condition %+v, want %+v as decided", was, now)
			}
		})
	}
}

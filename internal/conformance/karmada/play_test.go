package karmada

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// right returns a completely correct answer to the case of TestEveryDisagreementIsFound.
func right(t *testing.T, request api.Simulation) *api.SimulationResult {
	t.Helper()
	out := &api.SimulationResult{}
	for _, raw := range request.Objects {
		o, err := api.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := o.(*api.Workload); ok {
			if w.Status.ObservedGeneration == 0 {
				out.Changes = []api.Change{{Key: api.KeyOf(w), ToReplicas: map[string]int64{"a": 1, "b": 3}}}
			}
			until := epoch.Add(time.Minute)
			w.Status = api.WorkloadStatus{
				ObservedGeneration: 1, Policy: "default/policy", ObservedAffinity: "group",
				Clusters:          []api.WorkloadCluster{{Name: "a", Replicas: 1}, {Name: "b", Replicas: 3}},
				Evictions:         []api.Eviction{{Cluster: "c", Replicas: 2, Reason: api.EvictedClusterLost, PurgeMode: api.PurgeGracefully, Until: &until}},
				EarlierAffinities: []api.EarlierAffinity{{AffinityName: "first"}},
				Conditions:        []api.Condition{{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: api.ReasonScheduled}},
			}
			at, one, three := until, int64(1), int64(3)
			out.Explanations = []api.Explanation{{
				Kind: api.KindWorkload, Namespace: "default", Name: "workload", Summary: "2 of 3 clusters chosen", NextAt: &at, Policy: "default/policy", ObservedAffinity: "group",
				Affinities: []api.AffinityTried{{AffinityName: "first", Result: api.AffinityNotTried}, {AffinityName: "group", Result: api.AffinityScheduled}},
				Candidates: []api.Candidate{{Cluster: "a", Selected: true, Replicas: &one}, {Cluster: "b", Selected: true, Replicas: &three}, {Cluster: "c", Reason: "is being left"}},
			}}
		}
		out.Objects = append(out.Objects, o)
	}
	return out
}

// TestEveryDisagreementIsFound changes one thing in a correct answer, and checks that the comparison reports it.
func TestEveryDisagreementIsFound(t *testing.T) {
	var c Case
	err := json.Unmarshal([]byte(`{"id":"x","kind":"course","clusters":[{"name":"a","region":"r1"},{"name":"b","region":"r2"},{"name":"c"}],
		"workloads":[{"replicas":4,"is_workload":true}],
		"policies":[{"replica_scheduling":{"type":"Divided"},"cluster_affinities":[{"name":"first","cluster_names":["c"]},{"name":"group"}]}],
		"steps":[{"after":0,"expect":{"workload":{"clusters":{"a":1,"b":3},"affinity":"group","policy":"default/policy","regions":["r1","r2"],
		"evictions":{"c":{"replicas":2,"reason":"ClusterLost","until":60}},"earlier":["first"],"tried":["group"],"next":60}}}]}`), &c)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		spoil   func(w *api.Workload, e *api.Explanation, r *api.SimulationResult)
		message string // the expected report; empty = none
	}{
		{"unchanged", func(*api.Workload, *api.Explanation, *api.SimulationResult) {}, ""},
		{"replicas", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) { w.Status.Clusters[0].Replicas = 2 }, "clusters: got"},
		{"all replicas", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) { w.Status.Clusters[0].Replicas = 2 }, "5 of 4 replicas"},
		{"order", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) {
			w.Status.Clusters[0], w.Status.Clusters[1] = w.Status.Clusters[1], w.Status.Clusters[0]
		}, "by name"},
		{"regions", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) { w.Status.Clusters[0].Replicas = 0 }, "regions: got [r2]"},
		{"affinity", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) { w.Status.ObservedAffinity = "" }, "affinity: got"},
		{"policy", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) { w.Status.Policy = "policy" }, "policy: got policy"},
		{"condition", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) { w.Status.Conditions = nil }, "condition: got [absent ]"},
		{"reason", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) {
			w.Status.Conditions[0].Reason = api.ReasonUnschedulable
		}, "condition: got [True Unschedulable]"},
		{"failover", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) {
			w.Status.Conditions = append(w.Status.Conditions, api.Condition{Type: api.ConditionFailoverHeld, Status: api.ConditionTrue})
		}, "failover held: got true"},
		{"no evictions", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) { w.Status.Evictions = nil }, "evictions: got map[]"},
		{"other evictions", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) {
			w.Status.Evictions[0].PurgeMode = api.PurgeNever
		}, "evictions: got"},
		{"preemptions", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) {
			w.Status.Preemptions = []api.PreemptedBy{{Cluster: "c"}}
		}, "replicas that were taken: got 1"},
		{"earlier groups", func(w *api.Workload, _ *api.Explanation, _ *api.SimulationResult) { w.Status.EarlierAffinities = nil }, "earlier affinities: got"},
		{"no explanation", func(_ *api.Workload, _ *api.Explanation, r *api.SimulationResult) { r.Explanations = nil }, "no explanation"},
		{"no summary", func(_ *api.Workload, e *api.Explanation, _ *api.SimulationResult) { e.Summary = "" }, "no summary"},
		{"explained with another policy", func(_ *api.Workload, e *api.Explanation, _ *api.SimulationResult) { e.Policy = "x" }, `explanation: policy "x"`},
		{"explained with another group", func(_ *api.Workload, e *api.Explanation, _ *api.SimulationResult) { e.ObservedAffinity = "x" }, `explanation: affinity "x"`},
		{"other groups tried", func(_ *api.Workload, e *api.Explanation, _ *api.SimulationResult) {
			e.Affinities[0].Result = api.AffinityNoFit
		}, "tried [\"first\" \"group\"]"},
		{"evaluated again at another time", func(_ *api.Workload, e *api.Explanation, _ *api.SimulationResult) { e.NextAt = nil }, "looked at again"},
		{"other candidates", func(_ *api.Workload, e *api.Explanation, _ *api.SimulationResult) { e.Candidates[1].Selected = false }, "candidates map[a:1] are selected"},
		{"candidates without a reason", func(_ *api.Workload, e *api.Explanation, _ *api.SimulationResult) { e.Candidates[2].Reason = "" }, "c is not chosen, and nothing says why"},
		{"changes", func(_ *api.Workload, _ *api.Explanation, r *api.SimulationResult) { r.Changes = nil }, "changes, and is not listed"},
		{"other changes", func(_ *api.Workload, _ *api.Explanation, r *api.SimulationResult) { r.Changes[0].ToReplicas = nil }, "is listed as changed"},
	} {
		looks := 0
		wrong, err := c.Play(t.Context(), func(_ context.Context, request api.Simulation) (*api.SimulationResult, error) {
			looks++
			result := right(t, request)
			if looks == 1 {
				for _, o := range result.Objects {
					if w, ok := o.(*api.Workload); ok {
						tt.spoil(w, &result.Explanations[0], result)
					}
				}
			}
			return result, nil
		})
		all := strings.Join(wrong, "\n")
		if err != nil || (tt.message == "") != (len(wrong) == 0) || !strings.Contains(all, tt.message) {
			t.Errorf("%s: error %v, found\n%s", tt.name, err, all)
		}
	}
}

// TestUnstableDecisionsAreFound checks that a decision that changes although nothing else has changed is reported.
func TestUnstableDecisionsAreFound(t *testing.T) {
	c := Case{Written: conformance.Written{ID: "x", Kind: Course}, Clusters: []cluster{{Name: "a"}}, Workloads: []workload{{Replicas: 1, IsWorkload: true}}, Steps: one(expectation{})}
	looks := 0
	wrong, err := c.Play(t.Context(), func(_ context.Context, request api.Simulation) (*api.SimulationResult, error) {
		looks++
		result := right(t, request)
		if looks == 2 {
			result.Objects[1].(*api.Workload).Status.DecisionRevision++
		}
		return result, nil
	})
	if err != nil || !strings.Contains(strings.Join(wrong, "\n"), "otherwise at a second look") {
		t.Errorf("found %q, error %v", wrong, err)
	}
}

// TestRefusalsAndFailures checks that rejected objects count as wrong answers, and that a failing simulation is an
// error.
func TestRefusalsAndFailures(t *testing.T) {
	c := casesOf(t, Match)[0]
	broken := errors.New("broken")
	for _, tt := range []struct {
		answer error
		wrong  string
	}{
		{api.FieldErrors{{Field: "objects[0].spec", Message: "is wrong"}}, "refused: objects[0].spec: is wrong"},
		{&api.Problem{Title: "Invalid", Errors: api.FieldErrors{{Field: "spec", Message: "is wrong"}}}, "refused: spec: is wrong"},
		{broken, ""},
	} {
		wrong, err := c.Play(t.Context(), func(context.Context, api.Simulation) (*api.SimulationResult, error) { return nil, tt.answer })
		if tt.wrong == "" && !errors.Is(err, broken) || tt.wrong != "" && (err != nil || len(wrong) != 1 || wrong[0] != tt.wrong) {
			t.Errorf("%v: found %q, error %v", tt.answer, wrong, err)
		}
	}
}

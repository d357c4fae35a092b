package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A cluster that keeps its replicas although it does not fit is marked as such, and counted among those that do not
// fit.
func TestExplanationsCountReplicasThatStayWithoutFitting(t *testing.T) {
	const (
		policy = `{"kind":"propagation_policy","metadata":{"name":"ordered"},"spec":{
			"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],
			"placement":{"cluster_affinities":[
				{"affinity_name":"a","label_selector":{"match_labels":{"group":"a"}}},
				{"affinity_name":"b","label_selector":{"match_labels":{"group":"b"}}}],
			"replica_scheduling":{"weight_preference":{"dynamic_weight":"AvailableReplicas"}}}}}`
		offline = `,"status":{"state":"offline","taints":[{"key":"scheduler/unreachable","effect":"NoSelect","time_added":"2026-03-01T11:59:00Z"}]}`
	)
	cluster := func(name, group, cpu, status string) string {
		return `{"kind":"cluster","metadata":{"name":"` + name + `","labels":{"group":"` + group + `"}},"spec":{"allocatable":{"cpu":"` + cpu + `"}}` + status + `}`
	}
	workload := func(replicas string) string {
		return `{"kind":"workload","metadata":{"name":"web","namespace":"shop"},
			"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":` + replicas + `,"replica_requests":{"cpu":"1"}},
			"status":{"clusters":[{"name":"c1","replicas":3}],"policy":"ordered","observed_affinity":"a","policy_generation":1}}`
	}
	for _, test := range []struct {
		name    string
		objects []string
		reason  string
	}{
		{"it is of another group now, which has too little room",
			[]string{cluster("c1", "b", "4", ""), cluster("c2", "b", "1", ""), cluster("c3", "c", "1", ""), workload("9")},
			`keeps what it has while the workload waits, although it does not fit: label "group" is "b", wanted In (a)`},
		{"failover is held",
			[]string{cluster("c1", "a", "4", offline), cluster("c2", "b", "4", offline), cluster("c3", "b", "4", offline), cluster("c4", "b", "4", offline), workload("3")},
			"although it does not fit: is offline"},
		{"failover is held, and more are wanted",
			[]string{cluster("c1", "a", "4", offline), cluster("c2", "b", "4", offline), cluster("c3", "b", "4", offline), cluster("c4", "b", "4", offline), workload("9")},
			"although it does not fit: is offline"},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := SimulateFile(t.Context(), api.Simulation{Base: "empty", Now: &epoch, Objects: raw(append(test.objects, policy)...)}, readTable, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			e := result.Explanations[0]
			rejected, counted := 0, 0
			for _, c := range e.Candidates {
				if c.Filter != "" {
					rejected++
				}
				if c.Cluster == "c1" && (!c.Selected || !strings.Contains(c.Reason, test.reason)) {
					t.Errorf("c1 keeps its replicas, but the explanation is %+v", c)
				}
			}
			for _, r := range e.Rejections {
				counted += r.Count
			}
			if rejected != counted || e.Feasible != e.Total-rejected {
				t.Errorf("%d candidates rejected, but %d in the rejections, and %d of %d fit: %+v", rejected, counted, e.Feasible, e.Total, e.Candidates)
			}
		})
	}
}

// Clusters from which a workload is being evicted do not count as fitting, and a workload that waits for the eviction
// says so.
func TestExplanationsCountWhatAWorkloadIsLeaving(t *testing.T) {
	objects := raw(
		`{"kind":"cluster","metadata":{"name":"c1"},"spec":{}}`,
		`{"kind":"propagation_policy","metadata":{"name":"any"},"spec":{
			"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],
			"placement":{"replica_scheduling":{}},"failover":{"application":{"toleration":"1m"}}}}`,
		`{"kind":"workload","metadata":{"name":"web","namespace":"shop"},
			"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":3},
			"status":{"clusters":[{"name":"c1","replicas":3}],"policy":"any","policy_generation":1,
				"health":[{"cluster":"c1","status":"unhealthy","since":"2026-03-01T11:00:00Z","reported_at":"2026-03-01T11:00:00Z"}]}}`)
	result, err := SimulateFile(t.Context(), api.Simulation{Base: "empty", Now: &epoch, Objects: objects}, readTable, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	e := result.Explanations[0]
	if c := e.Candidates[0]; e.Feasible != 0 || c.Filter != "evictions" || len(e.Rejections) != 1 || e.Rejections[0] != (api.Rejection{Filter: "evictions", Count: 1}) {
		t.Errorf("c1 is being evicted, but %d clusters fit: %+v, %+v", e.Feasible, c, e.Rejections)
	}
	const leaving = "it is leaving c1, and gets nothing there until then"
	if !strings.Contains(e.Summary, leaving) || !strings.Contains(e.Summary, "0 of 1 cluster fit: 1 is being left") {
		t.Errorf("summary %q, want it to mention the eviction", e.Summary)
	}
	status := result.Objects[2].(*api.Workload).Status
	if c := api.FindCondition(status.Conditions, api.ConditionScheduled); len(status.Evictions) != 1 || c == nil || c.Status != api.ConditionFalse || !strings.Contains(c.Message, leaving) {
		t.Errorf("condition %+v, want Scheduled to be False; evictions %+v", c, status.Evictions)
	}
}

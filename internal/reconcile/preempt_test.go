package reconcile

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// preempting writes a policy under which workloads displace those of lower priority.
func preempting(w *world, p *planner, change ...func(*api.PropagationPolicySpec)) {
	w.write(p, policy("base", append([]func(*api.PropagationPolicySpec){func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = dynamic()
		s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority
	}}, change...)...))
}

// important gives each replica of a workload its CPUs, and the workload its priority.
func important(priority int64, cpu string) func(*api.Workload) {
	return func(w *api.Workload) {
		w.Spec.Priority, w.Spec.ReplicaRequests = priority, api.Quantities{"cpu": api.Quantity(cpu)}
	}
}

// TestTheLowestPriorityIsDisplaced has a choice between two clusters: what is not needed is not touched.
func TestTheLowestPriorityIsDisplaced(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	preempting(w, p)
	w.write(p, sized("a", "4"))
	w.write(p, workload("mid", 4, important(9, "1")))
	p.pass(epoch)
	w.write(p, sized("b", "4"))
	w.write(p, workload("low", 4, important(1, "1")))
	p.pass(epoch)
	mid := p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "mid"}].status
	w.write(p, workload("high", 4, important(10, "1")))
	p.pass(epoch.Add(time.Minute))
	if high, low := replicasOf(p, "high"), replicasOf(p, "low"); !maps.Equal(high, map[string]int64{"b": 4}) || len(low) > 0 {
		t.Errorf("high on %v, low on %v, want high in place of low on b", high, low)
	}
	if now := p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "mid"}].status; !sameBinding(&mid, &now) {
		t.Errorf("mid was touched: %+v, before %+v", now, mid)
	}
	checkBound(t, p, epoch.Add(time.Minute))
}

// TestOnlyWhatIsNeededIsDisplaced takes some replicas of a divided workload, and all of a copy.
func TestOnlyWhatIsNeededIsDisplaced(t *testing.T) {
	for _, tt := range []struct {
		name     string
		divided  bool
		replicas int64
		low      map[string]int64
	}{
		{"one of four", true, 1, map[string]int64{"a": 3}},
		{"three of four", true, 3, map[string]int64{"a": 1}},
		{"all", true, 4, map[string]int64{}},
		{"one copy", false, 1, map[string]int64{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			preempting(w, p, func(s *api.PropagationPolicySpec) {
				if !tt.divided {
					s.Placement.ReplicaScheduling = nil
				}
			})
			w.write(p, sized("a", "4"))
			w.write(p, workload("low", 4, important(1, "1")))
			p.pass(epoch)
			w.write(p, workload("high", tt.replicas, important(2, "1")))
			p.pass(epoch)
			if high, low := replicasOf(p, "high"), replicasOf(p, "low"); high["a"] != tt.replicas || !maps.Equal(low, tt.low) {
				t.Errorf("high on %v, low on %v, want %v", high, low, tt.low)
			}
		})
	}
}

// TestTheYoungestIsDisplaced has two workloads of one priority, of which either would do.
func TestTheYoungestIsDisplaced(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	preempting(w, p)
	w.write(p, sized("a", "4"))
	for i, name := range []string{"b-old", "a-young"} {
		w.write(p, workload(name, 2, important(1, "1")))
		p.pass(epoch.Add(time.Duration(i) * time.Minute))
	}
	w.write(p, workload("high", 2, important(2, "1")))
	p.pass(epoch.Add(time.Hour))
	if old, young := replicasOf(p, "b-old"), replicasOf(p, "a-young"); old["a"] != 2 || len(young) > 0 {
		t.Errorf("old on %v, young on %v, want the young one displaced", old, young)
	}
}

// TestTheYoungestGivesTheMost has two divided workloads of one priority: three replicas must go, two of the young one
// and one of the old, or the other way round.
func TestTheYoungestGivesTheMost(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	preempting(w, p)
	w.write(p, sized("a", "2"))
	w.write(p, sized("b", "4"))
	for i, replicas := range []int64{3, 2} {
		w.write(p, workload([]string{"old", "young"}[i], replicas, important(1, "1")))
		p.pass(epoch.Add(time.Duration(i) * time.Minute))
	}
	if old, young := replicasOf(p, "old"), replicasOf(p, "young"); old["a"] != 1 || young["a"] != 1 {
		t.Fatalf("old on %v, young on %v, want one of each on a", old, young)
	}
	w.write(p, workload("high", 2, important(2, "2")))
	p.pass(epoch.Add(time.Hour))
	if old, young := replicasOf(p, "old"), replicasOf(p, "young"); old["b"] != 2 || len(old) != 1 || len(young) > 0 {
		t.Errorf("old on %v, young on %v, want the young one displaced first", old, young)
	}
}

// TestPreviewOfAPreemptingWorkload checks that the preview shows what the write does, and changes nothing.
func TestPreviewOfAPreemptingWorkload(t *testing.T) {
	y, _ := start(t)
	y.put(sized("a", "4"))
	y.put(policy("base", func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = dynamic()
		s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority
	}))
	y.put(workload("low", 4, important(1, "1")))
	high := workload("high", 2, important(2, "1"))
	high.SetDefaults()
	high.Metadata.UID, high.Metadata.Generation = "uid-high", 1
	status, explanation, err := y.reconciler.PreviewWorkload(t.Context(), high)
	if err != nil || len(status.Clusters) != 1 || status.Clusters[0].Replicas != 2 {
		t.Fatalf("previewed on %+v, %v, want 2 on a", status.Clusters, err)
	}
	if c := api.FindCondition(status.Conditions, api.ConditionScheduled); c == nil || c.Status != api.ConditionTrue {
		t.Errorf("condition %+v, want Scheduled", c)
	}
	if explanation == nil || explanation.Summary == "" {
		t.Errorf("explanation %+v", explanation)
	}
	written := y.put(workload("high", 2, important(2, "1"))).Object.(*api.Workload)
	if !slices.EqualFunc(written.Status.Clusters, status.Clusters, func(a, b api.WorkloadCluster) bool { return a.Name == b.Name && a.Replicas == b.Replicas }) {
		t.Errorf("written to %+v, previewed on %+v", written.Status.Clusters, status.Clusters)
	}
}

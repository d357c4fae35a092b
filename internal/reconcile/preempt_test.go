package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

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

// toll is what a displacement costs: replicas by priority from the highest, then the number of workloads.
func toll(taken, priority map[string]int64) []int64 {
	out := []int64{0, 0, 0}
	for name, n := range taken {
		if n > 0 {
			out[2-priority[name]] += n
			out[2]++
		}
	}
	return out
}

// TestPreemptionIsMinimal compares with trying everything that could be displaced on small fleets.
func TestPreemptionIsMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		preempting(w, p)
		free := map[string]int64{}
		for i := range rapid.IntRange(1, 3).Draw(t, "clusters") {
			name := fmt.Sprint("c", i)
			free[name] = rapid.Int64Range(1, 5).Draw(t, "cpus")
			w.write(p, sized(name, fmt.Sprint(free[name])))
		}
		type unit struct {
			workload, cluster string
			replicas, size    int64
		}
		size, of := map[string]int64{}, map[string]int64{}
		for i := range rapid.IntRange(1, 3).Draw(t, "workloads") {
			name := fmt.Sprint("w", i)
			size[name], of[name] = rapid.Int64Range(1, 2).Draw(t, "size"), rapid.Int64Range(1, 2).Draw(t, "priority")
			w.write(p, workload(name, rapid.Int64Range(1, 3).Draw(t, "replicas"), important(of[name], fmt.Sprint(size[name]))))
			p.pass(epoch.Add(time.Duration(i) * time.Minute))
		}
		var units []unit
		for _, name := range slices.Sorted(maps.Keys(size)) {
			for cluster, n := range replicasOf(p, name) {
				units = append(units, unit{name, cluster, n, size[name]})
				free[cluster] -= n * size[name]
			}
		}
		wanted, needs := rapid.Int64Range(1, 5).Draw(t, "wanted"), rapid.Int64Range(1, 3).Draw(t, "needs")
		var best []int64
		var try func(i int, taken map[string]int64)
		try = func(i int, taken map[string]int64) {
			if i == len(units) {
				var room int64
				for _, cpus := range free {
					room += max(cpus, 0) / needs
				}
				if cost := toll(taken, of); room >= wanted && (best == nil || slices.Compare(cost, best) < 0) {
					best = cost
				}
				return
			}
			u := units[i]
			for n := range u.replicas + 1 {
				taken[u.workload] += n
				free[u.cluster] += n * u.size
				try(i+1, taken)
				taken[u.workload] -= n
				free[u.cluster] -= n * u.size
			}
		}
		try(0, map[string]int64{})
		w.write(p, workload("high", wanted, important(3, fmt.Sprint(needs))))
		p.pass(epoch.Add(time.Hour))
		taken := map[string]int64{}
		for name := range size {
			for _, by := range p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: name}].status.Preemptions {
				if by.Workload == "shop/high" {
					taken[name] += by.Replicas
				}
			}
		}
		got := toll(taken, of)
		if best == nil {
			best = toll(nil, of)
		}
		if !slices.Equal(got, best) {
			t.Fatalf("displaced %v, the least is %v: units %+v, free %v, %d × %d wanted", got, best, units, free, wanted, needs)
		}
		checkBound(t, p, epoch.Add(time.Hour))
	})
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

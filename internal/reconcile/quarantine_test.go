package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// faulty starts a system whose planner calls probe for each object before working on it.
func faulty(t testing.TB, probe func(p *basis, key api.Key)) *system {
	t.Helper()
	y, faultless := start(t)
	y.restart(Options{Store: faultless, Faults: recovery.New(nil), probe: probe})
	return y
}

// faulted returns the message of an object's condition as readers see it, or "".
func (y *system) faulted(key api.Key) string {
	y.t.Helper()
	entry := y.fleet.Snapshot().Get(key)
	if entry == nil {
		return ""
	}
	object := y.reconciler.Observe(entry.Object)
	if policy, ok := object.(*api.PropagationPolicy); ok {
		object = y.reconciler.ObservePolicy(policy)
	}
	if c := api.FindCondition(*api.ConditionsOf(object), api.ConditionFaulted); c != nil {
		return c.Message
	}
	return ""
}

func (y *system) remove(key api.Key) {
	y.t.Helper()
	revision, err := y.store.Commit(y.t.Context(), store.Write{Key: key, Part: store.Spec, Expect: store.Any}, store.Write{Key: key, Part: store.Status, Expect: store.Any})
	if err != nil {
		y.t.Fatal(err)
	}
	y.settle(revision)
}

// fromNothing returns the decisions that a server makes from scratch without one object.
func (y *system) fromNothing(without api.Key) map[api.Key][]string {
	p := newPlanner(discard())
	for _, info := range api.Kinds {
		for entry := range y.fleet.Snapshot().All(info.Kind, "") {
			if api.KeyOf(entry.Object) == without {
				continue
			}
			object := entry.Object.Copy()
			switch o := object.(type) {
			case *api.Placement:
				o.Status = api.PlacementStatus{}
			case *api.Workload:
				o.Status = api.WorkloadStatus{}
			}
			p.put(object, entry.SpecRevision)
		}
	}
	p.pass(time.Now())
	all := map[api.Key][]string{}
	for key, placed := range p.placer.placements {
		all[key] = slices.Sorted(slices.Values(placed.status.Clusters))
	}
	for key, w := range p.bindings.workloads {
		all[key] = w.status.Names()
	}
	return all
}

func (y *system) decided(key api.Key) []string {
	switch o := y.fleet.Snapshot().Get(key).Object.(type) {
	case *api.Placement:
		return slices.Sorted(slices.Values(o.Status.Clusters))
	case *api.Workload:
		return o.Status.Names()
	}
	return nil
}

func key(kind api.Kind, namespace, name string) api.Key {
	return api.Key{Kind: kind, Namespace: namespace, Name: name}
}

// picky returns a placement that requires a label.
func picky(name string) *api.Placement {
	return newPlacement(name, 2, func(s *api.PlacementSpec) { s.LabelConstraints = []string{"zone is a"} })
}

func plainWorkload(name string) *api.Workload {
	return &api.Workload{
		Metadata: api.Metadata{Name: name, Namespace: "shop", Labels: map[string]string{"app": name}},
		Spec:     api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: ptr(int64(4))},
	}
}

func everywhere(name, selects string) *api.PropagationPolicy {
	return &api.PropagationPolicy{
		Metadata: api.Metadata{Name: name, Namespace: "shop"},
		Spec: api.PropagationPolicySpec{
			ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: selects}},
		},
	}
}

// A panic about an object costs only that object its decision, wherever it occurs.
func TestPanicAffectsOnlyOneObject(t *testing.T) {
	has := func(p *basis, cluster string) bool { _, ok := p.fleet.Row(cluster); return ok }
	for name, c := range map[string]struct {
		poison api.Object
		probe  func(p *basis, key api.Key) bool
	}{
		"placement": {newPlacement("poison", 1), func(_ *basis, k api.Key) bool {
			return k == key(api.KindPlacement, "shop", "poison")
		}},
		"placement, while it is decided": {newPlacement("poison", 1), func(p *basis, k api.Key) bool {
			return k == key(api.KindPlacement, "shop", "poison") && has(p, "c1")
		}},
		"workload": {plainWorkload("poison"), func(_ *basis, k api.Key) bool {
			return k == key(api.KindWorkload, "shop", "poison")
		}},
		"policy": {everywhere("poison", "elsewhere"), func(_ *basis, k api.Key) bool {
			return k == key(api.KindPropagationPolicy, "shop", "poison")
		}},
		"a metric": {metric("poison", 1), func(_ *basis, k api.Key) bool { return k.Kind == api.KindMetric && k.Name == "poison" }},
		"cluster that cannot be put into the fleet": {cluster("poison", map[string]string{"zone": "a"}), func(_ *basis, k api.Key) bool {
			return k == key(api.KindCluster, "", "poison")
		}},
		"cluster on which a filter panics": {cluster("poison", map[string]string{"zone": "a"}), func(p *basis, k api.Key) bool {
			return isDecided(k.Kind) && has(p, "poison")
		}},
		"cluster on which a filter of some objects panics": {cluster("poison", map[string]string{"zone": "a"}), func(p *basis, k api.Key) bool {
			return strings.HasPrefix(k.Name, "picky") && has(p, "poison")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			hits := 0
			y := faulty(t, func(p *basis, k api.Key) {
				if c.probe(p, k) {
					mu.Lock()
					hits++
					mu.Unlock()
					panic("poison\nof " + k.Name)
				}
			})
			y.put(provider())
			y.put(metric("m1", 1))
			for _, name := range []string{"c1", "c2", "c3", "c4"} {
				y.put(cluster(name, map[string]string{"zone": map[string]string{"c1": "a", "c2": "a", "c3": "b", "c4": "b"}[name]}))
			}
			y.put(everywhere("all", ""))
			for _, name := range []string{"web", "shop"} {
				y.put(newPlacement(name, 1))
				y.put(plainWorkload(name))
			}
			y.put(picky("picky1"))
			y.put(picky("picky2"))
			poison := api.KeyOf(c.poison)
			y.put(c.poison)
			// Later objects are decided as usual.
			y.put(newPlacement("later", -1))
			y.put(picky("picky3"))
			y.put(plainWorkload("later"))
			mu.Lock()
			if hits == 0 {
				t.Error("no panic occurred")
			}
			mu.Unlock()
			for other, want := range y.fromNothing(poison) {
				if got := y.decided(other); !slices.Equal(got, want) {
					t.Errorf("%s is on %v, want %v as without the poison", other, got, want)
				}
				if message := y.faulted(other); message != "" {
					t.Errorf("%s has the fault %s", other, message)
				}
			}
			if message := y.faulted(poison); !strings.Contains(message, "a fault of the server: poison of ") {
				t.Errorf("condition of the poison %q, want a fault of the server", message)
			}
			if n := countOf(y.reconciler.metrics.faulted); n != 1 {
				t.Errorf("faults are counted for %d kinds, want 1", n)
			}
			if isDecided(poison.Kind) {
				if x, err := y.reconciler.Explain(poison); err != nil || !strings.Contains(x.Summary, "fault of the server") {
					t.Errorf("explanation %+v, %v, want a fault of the server", x, err)
				}
			}
			if _, err := y.reconciler.Simulate(t.Context(), api.Simulation{}); err != nil {
				t.Error(err)
			}
			// It is tried again when it changes, and only then.
			mu.Lock()
			before := hits
			mu.Unlock()
			y.put(c.poison)
			mu.Lock()
			if hits == before {
				t.Error("the poison was not tried again after its change")
			}
			mu.Unlock()
			if y.faulted(poison) == "" {
				t.Error("the changed poison has no condition")
			}
			y.remove(poison)
			if n := countOf(y.reconciler.metrics.faulted); n != 0 {
				t.Errorf("faults are counted for %d kinds after the poison was deleted, want none", n)
			}
			y.put(newPlacement("last", 1))
			for other, want := range y.fromNothing(api.Key{}) {
				if got := y.decided(other); !slices.Equal(got, want) {
					t.Errorf("%s is on %v afterwards, want %v", other, got, want)
				}
			}
		})
	}
}

// An excluded object is included again once it no longer panics and something has changed.
func TestRecoveredObjectsAreIncludedAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	broken := true
	y := faulty(t, func(_ *basis, k api.Key) {
		mu.Lock()
		defer mu.Unlock()
		if broken && k == key(api.KindPlacement, "shop", "poison") {
			panic("poison")
		}
	})
	y.put(cluster("c1", nil))
	y.put(newPlacement("poison", 1))
	if y.faulted(key(api.KindPlacement, "shop", "poison")) == "" {
		t.Fatal("the poison has no condition")
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	y.put(cluster("c2", nil))
	eventually.True(t, "the placement is decided", func() bool { return len(y.placement("poison").Status.Clusters) == 1 })
	if message := y.faulted(key(api.KindPlacement, "shop", "poison")); message != "" {
		t.Error(message)
	}
}

// After random panics in a random history, every decision equals one made from scratch.
func TestPanicsAtRandom(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 13))
			var mu sync.Mutex
			countdown, injected, checked := -1, 0, 0
			y := faulty(t, func(p *basis, _ api.Key) {
				mu.Lock()
				defer mu.Unlock()
				if countdown--; countdown == 0 {
					injected++
					panic("at random")
				}
			})
			y.put(provider())
			for step := range 60 {
				mu.Lock()
				countdown = random.IntN(12)
				mu.Unlock()
				name := fmt.Sprintf("n%d", random.IntN(6))
				switch random.IntN(8) {
				case 0, 1:
					c := cluster(name, map[string]string{"zone": string(rune('a' + random.IntN(2)))})
					c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(fmt.Sprint(random.IntN(8)))}
					c.Spec.Capacity = c.Spec.Allocatable
					y.put(c)
				case 2:
					y.put(picky(name))
				case 3:
					y.put(newPlacement(name, int64(random.IntN(3)), func(s *api.PlacementSpec) {
						s.ResourceRequests = api.Quantities{"cpu": "1"}
					}))
				case 4:
					w := plainWorkload(name)
					w.Spec.ReplicaRequests = api.Quantities{"cpu": "1"}
					y.put(w)
				case 5:
					y.put(everywhere(name, ""))
				default:
					for _, kind := range []api.Kind{api.KindCluster, api.KindPlacement, api.KindWorkload} {
						namespace := "shop"
						if kind == api.KindCluster {
							namespace = ""
						}
						if k := key(kind, namespace, name); random.IntN(2) == 0 && y.fleet.Snapshot().Get(k) != nil {
							y.remove(k)
						}
					}
				}
				mu.Lock()
				countdown = -1
				mu.Unlock()
				y.put(metric("m", float64(step)))
				y.look(func(p *planner) {
					for entry := range y.fleet.Snapshot().All(api.KindPlacement, "") {
						k := api.KeyOf(entry.Object)
						if _, known := p.placer.placements[k]; known == y.reconciler.loop.quarantine.has(k) {
							t.Errorf("step %d: %s is in the planner: %v, want the opposite", step, k, known)
						}
					}
					if !heldBack(p) { // decisions that depend on an excluded object wait for it
						checked++
						checkFresh(t, p)
					}
				})
			}
			if injected < 10 || checked < 10 {
				t.Errorf("only %d panics and %d checks of fresh decisions", injected, checked)
			}
			// Objects that were excluded by chance are included again.
			last := 0.0
			eventually.True(t, "no object is excluded", func() bool {
				last++
				y.put(metric("m", last))
				return countOf(y.reconciler.metrics.faulted) == 0
			})
			y.look(func(p *planner) { checkFresh(t, p) })
		})
	}
}

// look calls a function with the planner between two passes.
func (y *system) look(at func(p *planner)) {
	y.t.Helper()
	err := y.reconciler.tell(y.t.Context(), "look", func(p *planner, _ time.Time) error {
		at(p)
		return nil
	})
	if err != nil {
		y.t.Error(err)
	}
}

// heldBack reports whether decisions wait for excluded objects.
func heldBack(p *planner) bool {
	return p.lost != nil && p.lost.waiting.Len() > 0
}

func checkFresh(t *testing.T, p *planner) {
	t.Helper()
	checkSettled(t, p, time.Now())
	for _, w := range p.bindings.workloads {
		checkIndexes(t, p, w)
		if w.p != nil {
			checkFreshLook(t, p, w, time.Now())
		}
	}
}

// A cluster that starts to panic is not deleted: its placements stay, later ones go elsewhere, and everything is back
// to normal when the panics end.
func TestDecisionsOnAPanickingClusterStay(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	broken := false
	y := faulty(t, func(p *basis, k api.Key) {
		mu.Lock()
		defer mu.Unlock()
		if _, in := p.fleet.Row("c1"); broken && (k == key(api.KindCluster, "", "c1") || isDecided(k.Kind) && in) {
			panic("poison")
		}
	})
	y.put(cluster("c1", map[string]string{"zone": "a"}))
	y.put(picky("before"))
	y.put(everywhere("all", ""))
	y.put(plainWorkload("before"))
	y.put(cluster("c2", map[string]string{"zone": "a"}))
	y.put(newPlacement("elsewhere", 1, func(s *api.PlacementSpec) { s.LabelConstraints = []string{"zone is b"} }))
	placedOn, boundTo := y.decided(key(api.KindPlacement, "shop", "before")), y.decided(key(api.KindWorkload, "shop", "before"))
	if !slices.Contains(placedOn, "c1") || !slices.Contains(boundTo, "c1") {
		t.Fatalf("nothing uses the cluster: placements %v, workloads %v", placedOn, boundTo)
	}
	mu.Lock()
	broken = true
	mu.Unlock()
	y.put(cluster("c1", map[string]string{"zone": "a", "new": "label"}))
	y.put(cluster("c3", map[string]string{"zone": "b"}))
	y.put(picky("after"))
	if y.faulted(key(api.KindCluster, "", "c1")) == "" {
		t.Error("the cluster has no condition")
	}
	for k, want := range map[api.Key][]string{
		key(api.KindPlacement, "shop", "before"):    placedOn,
		key(api.KindWorkload, "shop", "before"):     boundTo,
		key(api.KindPlacement, "shop", "after"):     {"c2"},
		key(api.KindPlacement, "shop", "elsewhere"): {"c3"},
	} {
		if got := y.decided(k); !slices.Equal(got, want) {
			t.Errorf("%s is on %v, want %v", k, got, want)
		}
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	y.put(cluster("c1", map[string]string{"zone": "a", "new": "other"}))
	eventually.True(t, "the later placement has both clusters", func() bool {
		return slices.Equal(y.decided(key(api.KindPlacement, "shop", "after")), []string{"c1", "c2"})
	})
}

// An excluded object keeps its reservations, so that nothing else uses its capacity.
func TestExcludedObjectsKeepTheirReservations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held  api.Object
		where func(y *system) []string
	}{
		"placement": {
			newPlacement("held", 1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "3"} }),
			func(y *system) []string { return y.placement("held").Status.Clusters },
		},
		"workload": {
			func() api.Object {
				w := plainWorkload("held")
				w.Spec.ReplicaRequests, w.Spec.Replicas = api.Quantities{"cpu": "3"}, ptr(int64(1))
				return w
			}(),
			func(y *system) []string { return y.decided(key(api.KindWorkload, "shop", "held")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			held := api.KeyOf(c.held)
			y := faulty(t, func(_ *basis, k api.Key) {
				if broken.Load() && k == held {
					panic("poison")
				}
			})
			only := cluster("c1", nil)
			only.Spec.Allocatable = api.Quantities{"cpu": "4"}
			y.put(only)
			y.put(everywhere("all", ""))
			y.put(c.held)
			had := c.where(y)
			if len(had) != 1 {
				t.Fatalf("on %v, want one cluster", had)
			}
			broken.Store(true)
			y.put(c.held) // a new version, which panics
			if y.faulted(held) == "" {
				t.Fatal("the held object has no condition")
			}
			asks := func(name string) []string {
				y.put(newPlacement(name, 1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "2"} }))
				return y.placement(name).Status.Clusters
			}
			if got := asks("other"); len(got) > 0 {
				t.Errorf("another object took its room on %v", got)
			}
			result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Objects: raw(
				`{"kind":"placement","metadata":{"name":"imagined","namespace":"shop"},"spec":{"number_of_clusters":1,"resource_requests":{"cpu":"2"}}}`)})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := result.Objects[0].(*api.Placement); len(got.Status.Clusters) > 0 {
				t.Errorf("in a simulation, another object took its room on %v", got.Status.Clusters)
			}
			y.remove(held)
			eventually.True(t, "its room is free after its deletion", func() bool { return len(y.placement("other").Status.Clusters) == 1 })
		})
	}
}

// Changes in what readers see of an excluded object are announced, and nothing else.
func TestExclusionIsAnnounced(t *testing.T) {
	var poisonous atomic.Bool
	poison := key(api.KindPlacement, "shop", "poison")
	y := faulty(t, func(_ *basis, k api.Key) {
		if k == poison && poisonous.Load() {
			panic("over poison")
		}
	})
	next := func() []api.Key {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
		defer cancel()
		keys, err := y.reconciler.NextUnstored(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	y.put(newPlacement("well", 1))
	poisonous.Store(true)
	y.put(newPlacement("poison", 1))
	if keys := next(); !slices.Equal(keys, []api.Key{poison}) || y.faulted(poison) == "" {
		t.Errorf("keys %v announced, want the poison with a fault; it has %q", keys, y.faulted(poison))
	}
	poisonous.Store(false)
	y.put(newPlacement("poison", 2))
	if keys := next(); !slices.Equal(keys, []api.Key{poison}) || y.faulted(poison) != "" {
		t.Errorf("keys %v announced, want the poison without a fault; it has %q", keys, y.faulted(poison))
	}
}

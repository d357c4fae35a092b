package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// displaceable are the replicas of one workload on one cluster, each with a number of CPUs.
type displaceable struct {
	victim         *workloadBinding
	cluster        string
	replicas, size int64
	whole          bool // all go, or none
}

// displacementOracle determines by trying everything what a workload must displace to have all its replicas.
type displacementOracle struct {
	size, wanted int64
	free         map[string]int64 // CPUs of each cluster, with those that the workload itself has
	units        []displaceable   // by priority from the highest, then by age from the oldest
}

// newDisplacementOracle looks at what is decided before the workload is written.
func newDisplacementOracle(p *planner, by *api.Workload) *displacementOracle {
	o := &displacementOracle{size: cpusOf(by), wanted: *by.Spec.Replicas, free: map[string]int64{}}
	for row := range p.fleet.Slots() {
		if c := p.fleet.Cluster(row); c != nil {
			milli, _ := c.Spec.Allocatable["cpu"].Milli()
			o.free[c.Metadata.Name] = milli.Units()
		}
	}
	for key, w := range p.bindings.workloads {
		for _, c := range w.status.Clusters {
			if key == api.KeyOf(by) {
				continue
			}
			o.free[c.Name] -= c.Replicas * cpusOf(w.object)
			if w.object.Spec.Priority < by.Spec.Priority && c.Replicas > 0 {
				o.units = append(o.units, displaceable{w, c.Name, c.Replicas, cpusOf(w.object), w.object.Spec.Kind == "StatefulSet"})
			}
		}
	}
	slices.SortFunc(o.units, func(x, y displaceable) int {
		return cmp.Or(
			cmp.Compare(y.victim.object.Spec.Priority, x.victim.object.Spec.Priority),
			x.victim.status.ScheduledAt.Compare(*y.victim.status.ScheduledAt),
			x.victim.key().Compare(y.victim.key()),
			cmp.Compare(x.cluster, y.cluster),
		)
	})
	return o
}

func cpusOf(w *api.Workload) int64 {
	milli, _ := w.Spec.ReplicaRequests["cpu"].Milli()
	return milli.Units()
}

// cost orders what may be displaced, as replicas by workload: by the replicas of each priority from the highest, then
// by workloads, then by age, such that the youngest give.
func (o *displacementOracle) cost(taken map[string]int64) []int64 {
	var levels, each []int64
	var workloads, priority int64
	seen := map[string]bool{}
	for _, u := range o.units {
		path := u.victim.key().Path()
		if seen[path] {
			continue
		}
		seen[path] = true
		if of := u.victim.object.Spec.Priority; levels == nil || of != priority {
			levels, priority = append(levels, 0), of
		}
		levels[len(levels)-1] += taken[path]
		each = append(each, taken[path])
		if taken[path] > 0 {
			workloads++
		}
	}
	return slices.Concat(levels, []int64{workloads}, each)
}

// least returns what must be displaced at least, nothing if all of it would not be enough.
func (o *displacementOracle) least() map[string]int64 {
	var best map[string]int64
	taken := map[string]int64{}
	var try func(i int)
	try = func(i int) {
		if i == len(o.units) {
			var room int64
			for _, cpus := range o.free {
				room += max(cpus, 0) / o.size
			}
			if room >= o.wanted && (best == nil || slices.Compare(o.cost(taken), o.cost(best)) < 0) {
				best = maps.Clone(taken)
			}
			return
		}
		u := o.units[i]
		for n := int64(0); n <= u.replicas; n++ {
			if u.whole && n > 0 && n < u.replicas {
				continue
			}
			taken[u.victim.key().Path()] += n
			o.free[u.cluster] += n * u.size
			try(i + 1)
			taken[u.victim.key().Path()] -= n
			o.free[u.cluster] -= n * u.size
		}
	}
	try(0)
	return best
}

// ways is the number of ways to displace.
func (o *displacementOracle) ways() int64 {
	n := int64(1)
	for _, u := range o.units {
		if u.whole {
			n *= 2
		} else {
			n *= u.replicas + 1
		}
	}
	return n
}

// TestDisplacementIsMinimal compares with trying everything, over random sequences of clusters and workloads that come,
// grow, shrink and go. Workloads that nobody displaces, and that wait for nothing, are not touched.
func TestDisplacementIsMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p, now := newWorld(), newPlanner(discard()), epoch
		preempting(w, p)
		w.write(p, policy("copies", func(s *api.PropagationPolicySpec) { s.ResourceSelectors[0].Kind = "StatefulSet" }))
		pass := func() {
			now = now.Add(time.Minute)
			p.pass(now)
		}
		drawCluster := func(t *rapid.T) {
			w.write(p, sized(drawName(t, "c", 3), fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "cpus"))))
			pass()
		}
		for range 3 {
			drawCluster(t)
		}
		existing := func(t *rapid.T) (*api.Workload, bool) {
			object, ok := w.objects[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: drawName(t, "w", 6)}].(*api.Workload)
			return object, ok
		}
		// arrive writes a workload, and compares what it displaces.
		arrive := func(t *rapid.T, by *api.Workload) {
			oracle := newDisplacementOracle(p, by)
			if oracle.ways() > maxDisplacements {
				t.Skip("more ways than are compared")
			}
			least := oracle.least()
			before := map[api.Key]api.WorkloadStatus{}
			for key, other := range p.bindings.workloads {
				before[key] = other.status
			}
			w.write(p, by)
			pass()
			taken := map[string]int64{}
			for key, was := range before {
				other := p.bindings.workloads[key]
				// Copies go wherever there is room, also to what is left over of what was displaced.
				touched := key == api.KeyOf(by) || was.LostReplicas > 0 || other.object.Spec.Kind == "StatefulSet"
				for _, c := range was.Conditions {
					touched = touched || c.Type == api.ConditionScheduled && c.Status != api.ConditionTrue
				}
				for _, preempted := range other.status.Preemptions {
					if preempted.At.Equal(now) {
						touched = true
						if preempted.Workload == api.KeyOf(by).Path() {
							taken[key.Path()] += preempted.Replicas
						}
					}
				}
				if !touched && !sameBinding(&was, &other.status) {
					t.Fatalf("%s was touched: %+v, before %+v", key, other.status, was)
				}
			}
			if got, want := oracle.cost(taken), oracle.cost(least); !slices.Equal(got, want) {
				t.Fatalf("displaced %v, the least is %v: units %+v, free %v, %d × %d wanted, it is on %+v",
					taken, least, oracle.units, oracle.free, oracle.wanted, oracle.size, p.bindings.workloads[api.KeyOf(by)].status)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"cluster": drawCluster,
			"no cluster": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindCluster, Name: drawName(t, "c", 3)})
				pass()
			},
			"arrives": func(t *rapid.T) {
				name := drawName(t, "w", 6)
				if _, exists := w.objects[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: name}]; exists {
					t.Skip("it is there")
				}
				arrive(t, workload(name, rapid.Int64Range(1, 4).Draw(t, "replicas"),
					important(rapid.Int64Range(1, 4).Draw(t, "priority"), fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "size")))))
			},
			"copies": func(t *rapid.T) {
				w.write(p, workload(drawName(t, "s", 2), rapid.Int64Range(1, 3).Draw(t, "replicas"),
					important(rapid.Int64Range(1, 3).Draw(t, "priority"), "1"), func(x *api.Workload) { x.Spec.Kind = "StatefulSet" }))
				pass()
			},
			"grows": func(t *rapid.T) {
				object, ok := existing(t)
				if !ok {
					t.Skip("it is not there")
				}
				grown := *object
				grown.Spec.Replicas = ptr(*object.Spec.Replicas + rapid.Int64Range(1, 2).Draw(t, "more"))
				arrive(t, &grown)
			},
			"shrinks": func(t *rapid.T) {
				if object, ok := existing(t); ok {
					shrunk := *object
					shrunk.Spec.Replicas = ptr(max(*object.Spec.Replicas-rapid.Int64Range(1, 2).Draw(t, "less"), 0))
					w.write(p, &shrunk)
					pass()
				}
			},
			"goes": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: drawName(t, "w", 6)})
				pass()
			},
			"": func(t *rapid.T) { checkBound(t, p, now) },
		})
	})
}

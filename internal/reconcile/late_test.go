package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// expensive returns an expression that costs almost as much as is allowed for a cluster with sixteen labels. It
// is true for all but one. The number distinguishes it from others.
func expensive(number int, except string) string {
	return fmt.Sprintf(`cluster.metadata.labels.all(a, cluster.metadata.labels.all(b, cluster.metadata.labels.all(c, cluster.metadata.labels.all(d, a != "%d" || b != c || d != a || c == d)))) && cluster.metadata.name != %q`, number, except)
}

func labelled(name string) *api.Cluster {
	labels := map[string]string{"cluster": name}
	for i := range 15 {
		labels[fmt.Sprintf("k%02d", i)] = "x"
	}
	return cluster(name, labels)
}

func withExpression(text string) func(*api.PlacementSpec) {
	return func(s *api.PlacementSpec) { s.Predicates = []api.Predicate{{CEL: []string{text}}} }
}

func placementKey(namespace, name string) api.Key {
	return api.Key{Kind: api.KindPlacement, Namespace: namespace, Name: name}
}

func pendingOf(p *planner, key api.Key) *api.Condition {
	return api.FindCondition(p.placer.placements[key].status.Conditions, api.ConditionExpressionsPending)
}

// TestExpensiveExpressionsCostOthersNothing checks that placements of other namespaces are decided while an expression
// that costs several budgets is evaluated, also those that come later and those with cheap expressions.
func TestExpensiveExpressionsCostOthersNothing(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	for i := range 24 {
		w.write(p, labelled(fmt.Sprintf("c%02d", i)))
	}
	p.pass(epoch)
	for i := range 3 {
		greedy := newPlacement(fmt.Sprint("greedy", i), 2, withExpression(expensive(i, "c07")))
		w.write(p, greedy)
	}
	add := func(name string, change ...func(*api.PlacementSpec)) api.Key {
		other := newPlacement(name, 1, change...)
		other.Metadata.Namespace = "other"
		w.write(p, other)
		return api.KeyOf(other)
	}
	check := func(writes []write, key api.Key) {
		t.Helper()
		for _, d := range writes {
			if d.key() == key && len(p.placer.placements[key].status.Clusters) == 1 && pendingOf(p, key) == nil {
				return
			}
		}
		t.Fatalf("%s was not decided in the pass: %+v", key, p.placer.placements[key].status)
	}
	plain, cheap := add("plain"), add("cheap", withExpression(`cluster.metadata.labels.exists(l, l == "k01")`))
	passes := 0
	for at := epoch; ; at = p.nextAt() {
		later := plain
		if passes == 1 {
			later = add("later", withExpression(`cluster.metadata.labels.exists(l, l == "k02")`))
		}
		before := p.placer.late.spent["shop"]
		writes := p.pass(at)
		// What was written before the pass has a budget of its own; the last evaluation may exceed it.
		if cost := p.placer.late.spent["shop"] - before; cost > 2*passBudget+1_000_000 {
			t.Fatalf("expressions cost %d in pass %d, the budget is %d", cost, passes+1, passBudget)
		}
		if passes++; passes > 200 {
			t.Fatal("the expressions are never evaluated for all clusters")
		}
		switch passes {
		case 1:
			check(writes, plain)
			check(writes, cheap)
		case 2:
			check(writes, later)
		}
		late := 0
		for i := range 3 {
			key := placementKey("shop", fmt.Sprint("greedy", i))
			status := p.placer.placements[key].status
			c := pendingOf(p, key)
			if c == nil {
				if len(status.Clusters) != 2 {
					t.Fatalf("%s has %v", key, status.Clusters)
				}
				continue
			}
			late++
			if c.Status != api.ConditionTrue || !strings.Contains(c.Message, "take too long") || len(status.Clusters) != 0 {
				t.Fatalf("%s: %+v", key, status)
			}
		}
		if late == 0 {
			break
		}
		if at := p.nextAt(); at.IsZero() || at.After(epoch) {
			t.Fatalf("%d placements are late, but the next pass is at %v", late, at)
		}
	}
	if passes < 3 {
		t.Fatalf("three expensive expressions needed only %d passes", passes)
	}
	checkSettled(t, p, epoch)
}

// TestLatePlacementsKeepTheirDecision checks that a placement whose expression must be evaluated again for too many
// clusters keeps its decision with a condition, and is then decided with the changes.
func TestLatePlacementsKeepTheirDecision(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	for i := range 30 {
		w.write(p, labelled(fmt.Sprintf("c%02d", i)))
	}
	w.write(p, newPlacement("greedy", 1, withExpression(expensive(0, "none")), func(s *api.PlacementSpec) { s.ClusterNames = []string{"c01", "c02"} }))
	key := placementKey("shop", "greedy")
	drain(t, p, epoch)
	if c := pendingOf(p, key); c != nil {
		t.Fatalf("two clusters are within a budget: %+v", c)
	}
	w.write(p, newPlacement("greedy", 1, withExpression(expensive(0, "none"))))
	drain(t, p, epoch)
	was := p.placer.placements[key].status.Clusters[0]
	for i := range 30 {
		c := labelled(fmt.Sprintf("c%02d", i))
		if c.Metadata.Labels["k00"] = "y"; c.Metadata.Name == was {
			c.Metadata.Labels = nil
			c.Spec.Namespace = "elsewhere" // the cluster no longer fits
		}
		w.write(p, c)
	}
	p.pass(epoch)
	status := p.placer.placements[key].status
	if c := pendingOf(p, key); c == nil || len(status.Clusters) != 1 || status.Clusters[0] != was {
		t.Fatalf("the decision does not wait for the expression: %+v", status)
	}
	drain(t, p, epoch)
	status = p.placer.placements[key].status
	if c := pendingOf(p, key); c != nil || len(status.Clusters) != 1 || status.Clusters[0] == was {
		t.Fatalf("the decision was not made: %+v", status)
	}
	checkSettled(t, p, epoch)
}

// TestExpensivePreviewsEnd checks that previews and explanations of a placement whose expressions cost more than a
// reader may spend say so, and that each request continues where the last one ended.
func TestExpensivePreviewsEnd(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	const clusters = 150
	for i := range clusters {
		w.write(p, labelled(fmt.Sprintf("c%03d", i)))
	}
	p.pass(epoch)
	s := p.snapshot(nil)
	asked := newPlacement("asked", 1, withExpression(expensive(77, "none")))
	asked.SetDefaults()
	_, _, err := s.previewPlacement(asked, epoch)
	if fields, ok := errors.AsType[api.FieldErrors](err); !ok || !strings.Contains(fields[0].Message, "take too long to be evaluated for all 150 clusters") {
		t.Fatalf("the preview was not ended: %v", err)
	}
	previewed, _, err := s.previewPlacement(asked, epoch)
	if err != nil || len(previewed.Status.Clusters) != 1 {
		t.Fatalf("the repeated preview did not continue: %v", err)
	}
}

// drain makes passes until nothing is late.
func drain(t interface{ Fatalf(string, ...any) }, p *planner, now time.Time) {
	for range 10_000 {
		if p.pass(now); len(p.placer.late.of) == 0 {
			return
		}
	}
	t.Fatalf("%d classes stay late", len(p.placer.late.of))
}

// TestExpressionsThatShareABudgetAreAllEvaluated has placements with two expressions, of which the first spends
// the whole budget of an attempt on clusters that it has evaluated before, unless it remembers them.
func TestExpressionsThatShareABudgetAreAllEvaluated(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	p.placer.late.budget, p.placer.late.left = attempts, attempts // one evaluation in each attempt
	for i := range 5 {
		w.write(p, cluster(fmt.Sprint("c", i), map[string]string{"a": "1"}))
	}
	loop := func(label string) string {
		return fmt.Sprintf(`cluster.metadata.labels.exists(l, l == "two-%s") || cluster.metadata.name != "%s"`, label, label)
	}
	w.write(p, newPlacement("both", 1, func(s *api.PlacementSpec) {
		s.Predicates = []api.Predicate{{CEL: []string{loop("first"), loop("second")}}}
	}))
	w.write(p, newPlacement("either", 1, func(s *api.PlacementSpec) {
		s.Predicates = []api.Predicate{{CEL: []string{"!(" + loop("third") + ")"}}, {CEL: []string{loop("fourth")}}}
	}))
	drain(t, p, epoch)
	for _, name := range []string{"both", "either"} {
		if clusters := p.placer.placements[placementKey("shop", name)].status.Clusters; len(clusters) != 1 {
			t.Errorf("%s has %v, want a cluster", name, clusters)
		}
	}
	checkSettled(t, p, epoch)
}

// TestBudgetDoesNotChangeDecisions checks that a planner with a tiny budget decides in the end like one with an
// unlimited budget: one that always waits until nothing is late in everything, and one that only does so at the end
// in everything that does not depend on what was decided before.
func TestBudgetDoesNotChangeDecisions(t *testing.T) {
	late, draws := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		draws++
		w, unlimited, tiny, behind := newWorld(), newPlanner(discard()), newPlanner(discard()), newPlanner(discard())
		unlimited.placer.late.budget, unlimited.placer.late.left = 1<<62, 1<<62
		for _, p := range []*planner{tiny, behind} {
			p.placer.late.budget, p.placer.late.left = attempts, 0 // one evaluation in each attempt
		}
		put := func(object api.Object) {
			w.write(unlimited, object)
			tiny.put(object, w.revision)
			behind.put(object, w.revision)
		}
		put(provider())
		put(metric("m", 0.5))
		expressions := []string{
			`cluster.metadata.labels.exists(l, l == "a")`, `cluster.metadata.labels.all(l, cluster.metadata.labels[l] != "2")`,
			`cluster.metadata.labels.exists(l, l == "b") || cluster.metric("m") > 0.4`,
			`managedCluster.spec.taints.all(t, t.key != "k") && cluster.metadata.name != "c1"`, `cluster.metadata.name != "c2"`,
		}
		for i := range expressions { // others have no results to remember
			expressions[i] = fmt.Sprintf("(%s) && cluster.metadata.name != \"other-%d\"", expressions[i], draws)
		}
		now := epoch
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(1, 6).Draw(t, "writes") {
				switch rapid.IntRange(0, 5).Draw(t, "what") {
				case 0, 1, 2:
					labels := map[string]string{}
					for _, l := range []string{"a", "b"} {
						if v := rapid.IntRange(0, 3).Draw(t, l); v > 0 {
							labels[l] = fmt.Sprint(v)
						}
					}
					c := cluster(fmt.Sprint("c", rapid.IntRange(0, 6).Draw(t, "cluster")), labels)
					if rapid.Bool().Draw(t, "has the metric") {
						c.Spec.Metrics = []api.MetricRef{{Name: "m", Weight: ptr(1.0)}}
					}
					if rapid.Bool().Draw(t, "tainted") {
						c.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelect}}
					}
					put(c)
				case 3:
					put(metric("m", rapid.Float64Range(0, 1).Draw(t, "value")))
				case 4:
					key := api.Key{Kind: api.KindCluster, Name: fmt.Sprint("c", rapid.IntRange(0, 6).Draw(t, "gone"))}
					if w.objects[key] != nil {
						w.remove(unlimited, key)
						tiny.remove(key)
						behind.remove(key)
					}
				default:
					name := fmt.Sprint("p", rapid.IntRange(0, 3).Draw(t, "placement"))
					put(newPlacement(name, rapid.SampledFrom([]int64{-1, 1, 2}).Draw(t, "wanted"), func(s *api.PlacementSpec) {
						for range rapid.IntRange(1, 2).Draw(t, "predicates") {
							several := rapid.SliceOfN(rapid.SampledFrom(expressions), 1, 2).Draw(t, "expressions")
							s.Predicates = append(s.Predicates, api.Predicate{CEL: several})
						}
						if rapid.Bool().Draw(t, "tolerates") {
							s.Tolerations = []api.Toleration{{Key: "k", Operator: api.TolerationExists}}
						}
					}))
				}
			}
			now = now.Add(time.Second)
			tiny.pass(now) // the others remember its results
			late += len(tiny.placer.late.of)
			drain(t, tiny, now)
			behind.pass(now)
			unlimited.pass(now)
			compareDecisions(t, unlimited, tiny, false)
		}
		drain(t, behind, now)
		compareDecisions(t, unlimited, behind, true)
		checkSettled(t, tiny, now)
		checkSettled(t, behind, now)
	})
	if late == 0 {
		t.Fatal("nothing was ever late")
	}
}

// compareDecisions checks that two planners have decided the same; only for placements that want every cluster if all.
func compareDecisions(t *rapid.T, want, got *planner, all bool) {
	for key, placed := range want.placer.placements {
		a, b := placed.status, got.placer.placements[key].status
		if all && placed.object.Spec.NumberOfClusters != nil {
			continue
		}
		sameOnes := len(a.Clusters) == len(b.Clusters)
		for _, name := range a.Clusters {
			sameOnes = sameOnes && strings.Contains(fmt.Sprint(b.Clusters), name)
		}
		if !sameOnes || !all && fmt.Sprint(a.Clusters) != fmt.Sprint(b.Clusters) || pendingOf(got, key) != nil {
			t.Fatalf("%s: decided %v with an unlimited budget, %v (%+v) without", key, a.Clusters, b.Clusters, b.Conditions)
		}
	}
}

// TestLatePlacementsNeedNoOtherEvent checks that a reconciler writes that a placement is late, and then its decision,
// although nothing else changes.
func TestLatePlacementsNeedNoOtherEvent(t *testing.T) {
	y, store := start(t)
	for i := range 24 {
		y.put(labelled(fmt.Sprintf("c%02d", i)))
	}
	y.put(newPlacement("greedy", 1, withExpression(expensive(7, "none"))))
	eventually.True(t, "the placement is decided", func() bool {
		greedy := y.placement("greedy")
		return len(greedy.Status.Clusters) == 1 && api.FindCondition(greedy.Status.Conditions, api.ConditionExpressionsPending) == nil
	})
	n := 0
	for _, keys := range store.written() {
		if slices.Contains(keys, placementKey("shop", "greedy")) {
			n++
		}
	}
	if n != 2 {
		t.Fatalf("the status was written %d times, want 2: late, and decided", n)
	}
}

// BenchmarkBesideExpensiveExpressions decides a placement in the pass in which a new expression of another namespace would
// cost several seconds over the fleet. Target: as long as the budget of a pass, whatever the size of the fleet.
func BenchmarkBesideExpensiveExpressions(b *testing.B) {
	for _, clusters := range []int{300, 10_000} {
		b.Run(fmt.Sprint("clusters=", clusters), func(b *testing.B) {
			w, p := newWorld(), newPlanner(discard())
			for i := range clusters {
				w.write(p, labelled(fmt.Sprintf("c%05d", i)))
			}
			p.pass(epoch)
			n := 0
			b.ReportAllocs()
			var used time.Duration
			for b.Loop() {
				b.StopTimer()
				w.write(p, newPlacement("greedy", 2, withExpression(expensive(n, "c00007"))))
				waiting := newPlacement(fmt.Sprint("waiting", n), 1)
				waiting.Metadata.Namespace = "other"
				w.write(p, waiting)
				n++
				b.StartTimer()
				begin := cputime.Used(b)
				p.pass(epoch)
				used += cputime.Used(b) - begin
				if chosen := p.placer.placements[api.KeyOf(waiting)].status.Clusters; len(chosen) != 1 {
					b.Fatalf("%s has %v", waiting.Metadata.Name, chosen)
				}
				b.StopTimer()
				w.remove(p, placementKey("shop", "greedy"))
				p.pass(epoch)
				b.StartTimer()
			}
			b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
		})
	}
}

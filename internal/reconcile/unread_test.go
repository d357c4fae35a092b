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

// unreachable returns a metric whose provider does not answer any more, and whose last value is too old.
func unreachable(name string) *api.Metric {
	m := metric(name, 0)
	m.Status.Value = nil
	m.Status.Conditions = []api.Condition{{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonUnreachableMetricsProvider}}
	return m
}

// TestWorkloadsStayWhileMetricsCannotBeRead checks that a workload keeps its clusters and replicas while a metric of one
// cannot be read, that a condition says which and since when, and that it goes when the metric is read again.
func TestWorkloadsStayWhileMetricsCannotBeRead(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.writeMeasured(p, 0.5, 0.5)
	w.write(p, policy("all", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
	w.write(p, workload("web", 4))
	w.stored(p, p.pass(epoch))
	want := map[string]int64{"c1": 2, "c2": 2}
	check := func(at time.Duration, since time.Duration) {
		t.Helper()
		w.stored(p, p.pass(epoch.Add(at)))
		checkBound(t, p, epoch.Add(at))
		if got := replicasOf(p, "web"); !maps.Equal(got, want) {
			t.Fatalf("after %s it runs on %v, want %v", at, got, want)
		}
		status := p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}].status
		unread := api.FindCondition(status.Conditions, api.ConditionMetricsUnread)
		switch {
		case since < 0 && unread != nil:
			t.Fatalf("after %s it has the condition %+v, want none", at, unread)
		case since >= 0 && (unread == nil || unread.Status != api.ConditionTrue || !unread.LastTransitionAt.Equal(epoch.Add(since)) ||
			unread.Message != `metric "m1" cannot be read; clusters that were chosen with it stay until it can be`):
			t.Fatalf("after %s it has the condition %+v, want one that says since when m1 cannot be read", at, unread)
		}
	}
	check(0, -1)
	w.write(p, unreachable("m1"))
	check(10*time.Second, 10*time.Second)
	w.write(p, unreachable("m2"))
	check(20*time.Second, 10*time.Second)
	w.write(p, metric("m2", 0.1))
	check(30*time.Second, 10*time.Second)
	w.write(p, metric("m1", 0.9))
	check(40*time.Second, -1)
}

// outages are the ways in which a metric comes to have no usable value.
var outages = map[string]func(m *api.Metric){
	"unreachable": func(m *api.Metric) {
		m.Status = api.MetricStatus{Value: m.Status.Value, ObservedAt: ptr(epoch.Add(-time.Hour)), Conditions: []api.Condition{
			{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonUnreachableMetricsProvider},
		}}
	},
	"invalid": func(m *api.Metric) {
		m.Status.Conditions = []api.Condition{{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonInvalidMetric}}
	},
	"out of range": func(m *api.Metric) { m.Status.Value = ptr(7.0) },
	"pending":      func(m *api.Metric) { m.Status = api.MetricStatus{} },
}

// held returns where everything is that is decided: replicas by decision and cluster or project, 1 without replicas.
func (w *world) held() map[api.Key]map[string]int64 {
	out := map[api.Key]map[string]int64{}
	for key, object := range w.objects {
		on := map[string]int64{}
		switch o := object.(type) {
		case *api.Placement:
			for _, name := range o.Status.Clusters {
				on[name] = 1
			}
		case *api.Workload:
			for _, c := range o.Status.Clusters {
				on[c.Name] = max(c.Replicas, 1)
			}
		case *api.MagnumCluster:
			if o.Status.Project != "" {
				on[o.Status.Project] = 1
			}
		default:
			continue
		}
		out[key] = on
	}
	return out
}

// TestNothingMovesBecauseItIsNotKnown has metrics come and go, in every way in which they can, while the fleet changes.
// In no pass does a decision lose more than it would lose if all metrics could be read.
func TestNothingMovesBecauseItIsNotKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		now := epoch
		values := map[string]float64{} // that metrics have, whether they can be read or not
		number := func(of string, n int) string { return fmt.Sprint(of, rapid.IntRange(0, n-1).Draw(t, of)) }
		labels := func() map[string]string {
			return map[string]string{"zone": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")}
		}
		refs := func() []api.MetricRef {
			var out []api.MetricRef
			for _, name := range []string{"m0", "m1", "m2"} {
				if rapid.Bool().Draw(t, "lists "+name) {
					out = append(out, api.MetricRef{Name: name, Weight: ptr(float64(rapid.IntRange(1, 3).Draw(t, "weight")))})
				}
			}
			return out
		}
		write := func(name string, broken func(*api.Metric)) {
			m := metric(name, values[name])
			if broken != nil {
				broken(m)
			}
			w.write(p, m)
		}
		changeCluster := func() {
			c := cluster(number("c", 5), labels(), refs()...)
			c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(fmt.Sprint(rapid.IntRange(1, 8).Draw(t, "cpu")))}
			if rapid.IntRange(0, 5).Draw(t, "tainted") == 0 {
				c.Spec.Taints = []api.Taint{{Key: "k", Effect: rapid.SampledFrom([]api.TaintEffect{api.EffectNoSelect, api.EffectNoSelectIfNew}).Draw(t, "effect")}}
			}
			w.write(p, c)
			w.write(p, newScore(c.Metadata.Name, int64(rapid.IntRange(-10, 10).Draw(t, "score")*10), time.Time{}))
		}
		values["m0"], values["m1"], values["m2"] = 0.2, 0.5, 0.8
		w.write(p, provider())
		for name := range values {
			write(name, nil)
		}
		for range 5 {
			changeCluster()
		}
		for i := range 3 {
			w.write(p, project(fmt.Sprint("project", i), labels(), refs()...))
		}
		for i := range 4 {
			w.write(p, newPlacement(fmt.Sprint("web", i), int64(rapid.IntRange(-1, 3).Draw(t, "wanted")), drawUnreadable(t)))
		}
		w.write(p, policy("all", func(s *api.PropagationPolicySpec) { s.Placement = drawPolicy(t).Spec.Placement }))
		for i := range 2 {
			w.write(p, workload(fmt.Sprint("app", i), int64(rapid.IntRange(-1, 6).Draw(t, "replicas"))))
			m := magnum(fmt.Sprint("k", i), labels())
			if rapid.Bool().Draw(t, "constrained") {
				m.Spec.MetricConstraints = []string{"m0 > 0.3"}
			}
			w.write(p, m)
		}
		w.stored(p, p.pass(now))
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Minute)
			before := w.held()
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				switch rapid.IntRange(0, 6).Draw(t, "change") {
				case 0:
					changeCluster()
				case 1:
					values[number("m", 3)] = rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.75, 1}).Draw(t, "value")
				case 2:
					w.write(p, project(number("project", 3), labels(), refs()...))
				case 3: // another generation, which is decided at once
					if web, ok := w.objects[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: number("web", 4)}].Copy().(*api.Placement); ok {
						web.Metadata.Labels = labels()
						w.write(p, web)
					}
				}
			}
			known := newPlanner(discard())
			for _, name := range slices.Sorted(maps.Keys(values)) {
				how := rapid.SampledFrom(append(slices.Sorted(maps.Keys(outages)), "read", "read", "read")).Draw(t, name)
				write(name, outages[how])
			}
			for key, object := range w.objects {
				if m, ok := object.(*api.Metric); ok {
					well := *m
					well.Status = metric(m.Metadata.Name, values[m.Metadata.Name]).Status
					object = &well
				}
				known.put(object, w.specs[key])
			}
			known.pass(now)
			would := (&world{objects: w.afterPass(known)}).held()
			w.stored(p, p.pass(now))
			is := w.held()
			for key, on := range before {
				lost, allowed := losses(on, is[key]), losses(on, would[key])
				if key.Kind == api.KindWorkload && allowed > 0 {
					continue // what replaces the one depends on what is known of the others
				}
				if lost > allowed {
					t.Fatalf("%s has left %d places, and would have left %d if everything could be read: it had %v, and has %v instead of %v", key, lost, allowed, on, is[key], would[key])
				}
			}
		}
	})
}

// losses counts the places where less is held than before.
func losses(was, is map[string]int64) (n int) {
	for place, held := range was {
		if is[place] < held {
			n++
		}
	}
	return n
}

// drawUnreadable draws what a placement asks for in terms of metrics. It compares no candidates with each other, as
// spread constraints and scores on a common scale do: a candidate that cannot be read is not there for them.
func drawUnreadable(t *rapid.T) func(s *api.PlacementSpec) {
	return func(s *api.PlacementSpec) {
		switch rapid.IntRange(0, 3).Draw(t, "requires") {
		case 0:
			s.MetricConstraints = []string{"m0 > 0.1"}
		case 1:
			s.Predicates = []api.Predicate{{CEL: []string{`cluster.metric("m1") > 0.1`}}}
		case 2:
			s.Predicates = []api.Predicate{{CEL: []string{`cluster.metric("m1") > 0.3 || cluster.metric("m2") > 0.3`}}, {LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}}}
		}
		if rapid.Bool().Draw(t, "prioritizers") {
			s.Strategy, s.RescheduleAfter = api.StrategyPrioritizers, ""
			s.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: api.ModeExact}
			for _, c := range []api.PrioritizerConfig{{Type: api.PrioritizerAddon, ResourceName: "s", ScoreName: "a"}, {Type: api.PrioritizerMetric, Name: "m0"}, {Type: api.PrioritizerMetric, Name: "m1"}} {
				if rapid.Bool().Draw(t, "by "+c.Name+c.ScoreName) {
					s.PrioritizerPolicy.Configurations = append(s.PrioritizerPolicy.Configurations, c)
				}
			}
		}
	}
}

// TestAHostStaysWhileNoneCanBeChosen checks that a Magnum cluster keeps its project if it is to be chosen again while the
// metric that it is chosen by cannot be read, and is chosen again if it is known that it does not fit.
func TestAHostStaysWhileNoneCanBeChosen(t *testing.T) {
	for name, c := range map[string]struct {
		metric func(m *api.Metric)
		want   string
	}{
		"read":         {func(*api.Metric) {}, "north"},
		"unreachable":  {outages["unreachable"], "north"},
		"out of range": {outages["out of range"], "north"},
		"too low":      {func(m *api.Metric) { m.Status.Value = ptr(0.1) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			w.write(p, provider())
			w.write(p, metric("m", 0.9))
			w.write(p, project("north", nil, api.MetricRef{Name: "m"}))
			m := magnum("web", nil)
			m.Spec.MetricConstraints = []string{"m > 0.5"}
			w.write(p, m)
			w.stored(p, p.pass(epoch))
			key := api.KeyOf(m)
			changed := metric("m", 0.9)
			c.metric(changed)
			w.write(p, changed)
			again, ok := w.objects[key].Copy().(*api.MagnumCluster)
			if !ok || again.Status.Project != "north" {
				t.Fatalf("at first it is %+v, want it in north", w.objects[key])
			}
			again.Metadata.RescheduleRequests++
			w.objects[key] = again
			p.put(again, w.specs[key])
			w.stored(p, p.pass(epoch.Add(time.Minute)))
			got := guestOf[*api.MagnumCluster](t, p.projects, key).Status
			if got.Project != c.want || got.ObservedRescheduleRequests != 1 {
				t.Errorf("in project %q with %d requests answered, want %q", got.Project, got.ObservedRescheduleRequests, c.want)
			}
			if again := p.pass(epoch.Add(2 * time.Minute)); len(again) > 0 {
				t.Errorf("a pass without a change writes %s", again[0].key())
			}
		})
	}
}

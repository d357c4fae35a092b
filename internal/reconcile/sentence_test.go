package reconcile

import (
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestReasonsOfSharedViews checks placements that share a view of the fleet. Each gets the reasons why clusters do not
// fit in its own words and order, at first and after changes.
func TestReasonsOfSharedViews(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cluster("c1", map[string]string{"location": "FR"}))
	asks := map[string][]string{"is": {"location is DE"}, "equals": {"location = DE"}, "first": {"location is DE", "tier is gold"}, "second": {"tier is gold", "location is DE"}}
	for name, constraints := range asks {
		x := &api.Placement{Metadata: api.Metadata{Name: name, Namespace: "shop"}}
		x.Spec.LabelConstraints = constraints
		w.write(p, x)
	}
	for _, group := range []string{"here", "there"} {
		w.write(p, policy(group, func(s *api.PropagationPolicySpec) {
			s.Placement.ClusterAffinities = []api.AffinityTerm{{AffinityName: group, ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"c9"}}}}
			s.ResourceSelectors[0].Name = group
		}))
		w.write(p, workload(group, 1))
	}
	told := func(kind api.Kind, name string) string {
		key := api.Key{Kind: kind, Namespace: "shop", Name: name}
		if x, ok := p.placer.placements[key]; ok {
			return api.FindCondition(x.status.Conditions, api.ConditionScheduled).Message
		}
		return api.FindCondition(p.bindings.workloads[key].status.Conditions, api.ConditionScheduled).Message
	}
	for clusters := 1; clusters <= 3; clusters++ {
		p.pass(epoch)
		for name, constraints := range asks {
			message := told(api.KindPlacement, name)
			if want := `match label constraint "` + constraints[0] + `"`; !strings.Contains(message, want) {
				t.Errorf("%d clusters: message of placement %s is %q, want it to contain %q", clusters, name, message, want)
			}
		}
		for _, group := range []string{"here", "there"} {
			if message, want := told(api.KindWorkload, group), `not in affinity group "`+group+`"`; !strings.Contains(message, want) {
				t.Errorf("%d clusters: message of workload %s is %q, want it to contain %q", clusters, group, message, want)
			}
		}
		w.write(p, cluster("c"+string(rune('1'+clusters)), map[string]string{"location": "IT"}))
	}
	if n := len(p.placer.classes.of); n != 2 {
		t.Errorf("%d classes, want 2", n)
	}
}

// TestFailingMetricIsNamed checks that the message of a placement that waits for a failing metric changes when the
// metric fails for another reason, even if nothing else does.
func TestFailingMetricIsNamed(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, cluster("c1", nil, api.MetricRef{Name: "m"}))
	w.write(p, newPlacement("web", 1, func(*api.PlacementSpec) {}))
	for _, cause := range []string{"connection refused", "no such host"} {
		m := metric("m", 0)
		m.Status.Value = nil
		m.Status.Conditions = []api.Condition{{
			Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonUnreachableMetricsProvider, Message: cause,
		}}
		w.write(p, m)
		if written := p.pass(epoch); !slices.ContainsFunc(written, func(w write) bool {
			x, ok := w.result().(*api.Placement)
			return ok && strings.Contains(api.FindCondition(x.Status.Conditions, api.ConditionScheduled).Message, cause)
		}) {
			t.Errorf("no message contains %q in %d decisions", cause, len(written))
		}
	}
}

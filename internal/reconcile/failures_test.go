package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestFailureIsFoundAgainLater checks that a workload that fits nowhere is told why at the time of its decision, and not
// why one with the same requirements did not fit before a toleration expired.
func TestFailureIsFoundAgainLater(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	tainted := cluster("c1", map[string]string{"tier": "a"})
	tainted.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelect}}
	tainted.Status.Taints = []api.ClusterTaint{{Key: "k", Effect: api.EffectNoSelect, TimeAdded: ptr(epoch)}}
	w.write(p, tainted)
	w.write(p, policy("p", func(s *api.PropagationPolicySpec) {
		s.Placement.ClusterTolerations = []api.Toleration{{Key: "k", Operator: api.TolerationExists, TolerationSeconds: ptr[int64](100)}}
		s.Placement.SpreadConstraints = []api.GroupConstraint{{SpreadByLabel: "tier", MinGroups: ptr[int64](2)}}
	}))
	for _, test := range []struct {
		workload string
		after    time.Duration
		want     string
	}{
		{"first", 0, "candidates are in 1"},
		{"second", 100 * time.Second, "1 has a taint that is not tolerated"},
	} {
		w.write(p, workload(test.workload, 1))
		p.pass(epoch.Add(test.after))
		key := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: test.workload}
		scheduled := api.FindCondition(p.bindings.workloads[key].status.Conditions, api.ConditionScheduled)
		if !strings.Contains(scheduled.Message, test.want) {
			t.Errorf("%s: %s, want %q", test.workload, scheduled.Message, test.want)
		}
		w.remove(p, key)
	}
}

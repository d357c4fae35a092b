package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestHeldDecisions checks that a table says which decisions may not move.
func TestHeldDecisions(t *testing.T) {
	held := []api.Condition{{Type: api.ConditionMoveHeld, Status: api.ConditionTrue, Reason: api.ReasonHeldByFreeze}}
	for name, test := range map[string]struct {
		object api.Object
		want   string
	}{
		"placement":          {&api.Placement{Kind: api.KindPlacement}, ""},
		"placement, held":    {&api.Placement{Kind: api.KindPlacement, Status: api.PlacementStatus{Conditions: held}}, "HeldByFreeze"},
		"workload":           {&api.Workload{Kind: api.KindWorkload}, ""},
		"workload, held":     {&api.Workload{Kind: api.KindWorkload, Status: api.WorkloadStatus{Conditions: held}}, "HeldByFreeze"},
		"placement, not any": {&api.Placement{Kind: api.KindPlacement, Status: api.PlacementStatus{Conditions: []api.Condition{{Type: api.ConditionSatisfied, Status: api.ConditionTrue}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			list := columns[test.object.ObjectKind()]
			i := slices.IndexFunc(list, func(c column) bool { return c.header == "HELD" && !c.wide })
			if i < 0 {
				t.Fatal("there is no such column")
			}
			if got := list[i].value(test.object, time.Time{}); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

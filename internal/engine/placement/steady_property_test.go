package placement

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// TestNegativeSteadyIsNoSteady: a decision that answers its spec goes where it
// would go without a negative weight of steady, whatever else counts (rule 4). The scores that are shown have it.
func TestNegativeSteadyIsNoSteady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, x := rollPrioritized(t)
		x.present.Answered, x.present.Fresh = true, false
		if d.Chance(3) {
			x.placement.Spec.SpreadConstraints = []api.SpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: enginetest.Pick(d, api.DoNotSchedule, api.ScheduleAnyway), MaxSkew: new(int64(1))}}
		}
		policy := x.placement.Spec.PrioritizerPolicy
		chosen := func(weight int64) ([]string, Outcome) {
			p := *x.placement
			p.Spec.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: policy.Mode, Configurations: append(slices.Clip(policy.Configurations),
				api.PrioritizerConfig{Type: api.PrioritizerBuiltin, Name: api.PrioritizerSteady, Weight: &weight})}
			p.SetDefaults()
			x.query = enginetest.Compile(t, NewQuery, &p)
			out := x.decide()
			names := make([]string, len(out.Choices))
			for i, c := range out.Choices {
				names[i] = x.fleet.Name(c.Row)
			}
			slices.Sort(names)
			return names, out
		}
		without, _ := chosen(0)
		weight := enginetest.Pick[int64](d, -1, -3, -10)
		with, out := chosen(weight)
		if !slices.Equal(with, without) {
			t.Fatalf("%s\nsteady %d: chosen %v, want %v as without it", x, weight, with, without)
		}
		for _, c := range out.Choices {
			current := slices.ContainsFunc(x.present.Decisions, func(d api.Decision) bool { return d.Cluster == x.fleet.Name(c.Row) })
			view := NewView(x.fleet, x.query, x.others, nil)
			pass := view.decision(x.fleet, x.query, x.others, presentRows(x.fleet, x.present))
			pass.present(presentRows(x.fleet, x.present), x.present, view)
			if want := x.query.scoring.Score(&pass.Rating, c.Row, current); c.Score != want {
				t.Fatalf("%s\n%s shows score %v, want %v", x, x.fleet.Name(c.Row), c.Score, want)
			}
		}
	})
}

// TestNegativeSteadyWithBalance covers a present cluster that is the best by total, while another is the best by its
// own score.
func TestNegativeSteadyWithBalance(t *testing.T) {
	w := rated(map[string]int64{"a": 50, "b": 60})
	p := byScore("web", 1, api.ModeAdditive, api.PrioritizerConfig{Name: api.PrioritizerSteady, Weight: new(int64(-10))})
	f, present := w.Fleet(), settledOn("a")
	load := ledger.NewLoad()
	load.Sync(f, columns.Delta{Rows: liveRows(f)})
	load.Add(f, "a")
	load.Add(f, "b")
	q := enginetest.Compile(t, NewQuery, p)
	view := NewView(f, q, ledger.Others{Load: load}, nil)
	if out := Decide(f, q, view, ledger.Others{Load: load}, present, f.Now()); !out.Same {
		t.Errorf("outcome %+v, want it unchanged", answerOf(f, out))
	}
	present.Answered = false
	if out := Decide(f, q, view, ledger.Others{Load: load}, present, f.Now()); out.Same {
		t.Errorf("outcome %+v, want a move after a change of the spec", answerOf(f, out))
	}
}

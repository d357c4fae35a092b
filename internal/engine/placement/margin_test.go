package placement

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// TestMarginIsExact checks that a challenger that gains exactly the margin is not chosen, and that one that gains more
// takes the place of the cluster that the margin names.
func TestMarginIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := map[string]int64{}
		names := []string{"c1", "c2", "c3", "c4", "c5", "c6"}
		for _, name := range names {
			scores[name] = rapid.Int64Range(-9, 9).Draw(t, "score of "+name)
		}
		p := byScore("web", rapid.Int64Range(1, 3).Draw(t, "wanted"), rapid.SampledFrom([]api.PrioritizerMode{api.ModeExact, api.ModeAdditive}).Draw(t, "mode"))
		p.Spec.PrioritizerPolicy.Configurations = append(p.Spec.PrioritizerPolicy.Configurations,
			api.PrioritizerConfig{Name: api.PrioritizerSteady, Weight: new(int64(0))})
		p.Spec.MinImprovement = rapid.SampledFrom([]float64{0, 4}).Draw(t, "min_improvement")
		q, err := NewQuery(p)
		if err != nil {
			t.Fatal(err)
		}
		load := ledger.NewLoad()
		f := rated(scores).Fleet()
		load.Sync(f, columns.Delta{Rows: []int{0, 1, 2, 3, 4, 5}})
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t, "others' decisions") {
			load.Add(f, name)
		}
		// The load includes the placement's own decision.
		others := ledger.Others{Load: load}
		present := settledOn(chosenBy(f, q, others, Present{})...)
		for _, d := range present.Decisions {
			load.Add(f, d.Cluster)
		}
		margin := Explain(f, q, nil, others, present, f.Now()).Render().Margin
		if margin == nil {
			t.Fatalf("no margin for %v", present.Decisions)
		}
		if scores[margin.To]+int64(margin.Margin) >= api.MaxScore {
			return // no score can be that high
		}
		raised := func(by int64) map[string]bool {
			moved := map[string]int64{}
			for name, score := range scores {
				moved[name] = score
			}
			moved[margin.To] += by
			chosen := map[string]bool{}
			for _, name := range chosenBy(rated(moved).Fleet(), q, others, present) {
				chosen[name] = true
			}
			return chosen
		}
		if chosen := raised(int64(margin.Margin)); chosen[margin.To] || !chosen[margin.From] {
			t.Fatalf("a gain equal to the margin %+v changes the decision to %v", *margin, chosen)
		}
		if chosen := raised(int64(margin.Margin) + 1); !chosen[margin.To] || chosen[margin.From] {
			t.Fatalf("a gain above the margin %+v results in %v, want the other cluster", *margin, chosen)
		}
	})
}

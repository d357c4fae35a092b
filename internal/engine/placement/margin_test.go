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

// TestMarginOfAMove decides placements whose clusters are "a", or "a" and "b", and looks at the scores by which one was left.
func TestMarginOfAMove(t *testing.T) {
	improved := func(s *api.PlacementSpec) { s.MinImprovement = 5 }
	for name, c := range map[string]struct {
		scores  map[string]int64
		wanted  int64
		on      []string
		present func(*Present)
		spec    func(*api.PlacementSpec)
		want    *api.DecisionMargin
	}{
		"better":                   {scores: map[string]int64{"a": 10, "b": 20}, on: []string{"a"}, want: &api.DecisionMargin{From: "a", To: "b", Old: 10, New: 20, Needed: 10}},
		"better by enough":         {scores: map[string]int64{"a": 10, "b": 16}, on: []string{"a"}, spec: improved, want: &api.DecisionMargin{From: "a", To: "b", Old: 10, New: 16, Needed: 15}},
		"not by enough":            {scores: map[string]int64{"a": 10, "b": 15}, on: []string{"a"}, spec: improved},
		"first decision":           {scores: map[string]int64{"a": 10, "b": 20}},
		"nothing is better":        {scores: map[string]int64{"a": 20, "b": 10}, on: []string{"a"}},
		"its cluster does not fit": {scores: map[string]int64{"a": 10, "b": 20}, on: []string{"a"}, spec: func(s *api.PlacementSpec) { s.ExcludeClusters = []string{"a"} }},
		"fewer clusters":           {scores: map[string]int64{"a": 10, "b": 20}, on: []string{"a", "b"}},
		"one more cluster":         {scores: map[string]int64{"a": 10, "b": 20, "c": 30}, on: []string{"a"}, wanted: 2, want: &api.DecisionMargin{From: "a", To: "b", Old: 10, New: 20, Needed: 10}},
		"a fresh decision": {
			scores: map[string]int64{"a": 10, "b": 12}, on: []string{"a"}, spec: improved, present: func(p *Present) { p.Fresh = true },
			want: &api.DecisionMargin{From: "a", To: "b", Old: 10, New: 12, Needed: 10},
		},
		"two of two": {
			scores: map[string]int64{"a": 10, "b": 15, "c": 30, "d": 20}, on: []string{"a", "b"}, wanted: 2,
			want: &api.DecisionMargin{From: "b", To: "d", Old: 15, New: 20, Needed: 15},
		},
		"too young": {scores: map[string]int64{"a": 10, "b": 20}, on: []string{"a"}, spec: func(s *api.PlacementSpec) { s.RescheduleAfter = "2h" }},
	} {
		t.Run(name, func(t *testing.T) {
			w := rated(c.scores)
			p := byScore("web", max(c.wanted, 1), api.ModeExact)
			if c.spec != nil {
				c.spec(&p.Spec)
			}
			present := settledOn(c.on...)
			if c.present != nil {
				c.present(&present)
			}
			_, out := decide(t, w, p, present)
			if (out.lostBy == nil) != (c.want == nil) || c.want != nil && *out.lostBy != *c.want {
				t.Errorf("margin %+v, want %+v", out.lostBy, c.want)
			}
		})
	}
}

// TestMarginOfAnyMove checks that a margin is about a cluster that was left and one that was gained, and that the new
// score is above what was needed.
func TestMarginOfAnyMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		p, present := rollPlacement(d, w)
		f, q := w.Fleet(), enginetest.Compile(t, NewQuery, p)
		out := Decide(f, q, NewView(f, q, ledger.Others{}, nil), ledger.Others{}, present, w.Now)
		m := out.lostBy
		if m == nil {
			return
		}
		had := func(name string) bool {
			return slices.ContainsFunc(present.Decisions, func(d api.Decision) bool { return d.Cluster == name })
		}
		has := func(name string) bool {
			return slices.ContainsFunc(out.Choices, func(c Choice) bool { return f.Name(c.Row) == name })
		}
		if !had(m.From) || has(m.From) || had(m.To) || !has(m.To) || out.Same {
			t.Fatalf("the margin %+v of a move from %v to %v", *m, present.Decisions, out.Choices)
		}
		if m.New <= m.Needed {
			t.Fatalf("the margin %+v is none", *m)
		}
	})
}

package score_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// odd is a prioritizer unlike the built-in ones: it scores by name, depends on the square of the number of other
// decisions, and prefers to stay.
type odd struct{ score.Builtin }

func (odd) Reads() columns.Aspects { return columns.Chosen }

func (odd) Rate(r *score.Rating, _, row int) float64 { return float64(r.Fleet.NameHashes()[row] % 40) }

func (odd) Mind(r *score.Rating, _, row int) float64 {
	count := float64(r.Seen.At(row))
	return -count * count
}

func (odd) Bounds(r *score.Rating) (least, most float64) {
	high, low := float64(r.Seen.High), float64(r.Seen.Low)
	return -high * high, -low * low
}

func (o odd) Most(r *score.Rating, row int) (float64, bool) { return o.Mind(r, 0, row), true }

func (odd) Stay() float64 { return 7 }

// TestAddedPrioritizer checks that a prioritizer added to the list decides by its formula, alone and together with
// others, whatever it reads.
func TestAddedPrioritizer(t *testing.T) {
	defer score.AddBuiltin(odd{score.NewBuiltin("odd")})()
	d := enginetest.FixedDice(6)
	sights := enginetest.RollSights(d, 8)
	moved := 0
	for range 300 {
		policy := &api.PrioritizerPolicy{Mode: api.ModeExact}
		if d.Chance(2) {
			policy = enginetest.RollPrioritizers(d)
		}
		policy.Configurations = append(policy.Configurations, api.PrioritizerConfig{Name: "odd", Weight: new(enginetest.Pick[int64](d, -2, 1, 3))})
		p := enginetest.NewPlacement("web")
		p.Spec.NumberOfClusters, p.Spec.Strategy, p.Spec.PrioritizerPolicy = new(enginetest.Pick[int64](d, 1, 3, 9)), api.StrategyPrioritizers, policy
		q, err := placement.NewQuery(p)
		if err != nil {
			t.Fatal(err)
		}
		by, err := score.Compile(p.Metadata.Namespace, &p.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if !q.Minds() {
			t.Fatal("Minds() = false, want true: the score depends on other decisions")
		}
		s := enginetest.Pick(d, sights...)
		v := placement.NewView(s.Fleet, q, s.Others, nil)
		var present placement.Present // a decision to be made from scratch
		for _, row := range s.Present {
			present.Decisions = append(present.Decisions, api.Decision{Cluster: s.Fleet.Name(row)})
		}
		out := placement.Decide(s.Fleet, q, v, s.Others, present, s.Fleet.Now())
		if !out.Same {
			moved++
		}
		r := score.RatingOf(s, by)
		r.Ranking = nil // rated from scratch
		var fit []int
		for row := range s.Fleet.Slots() {
			if s.Fleet.Live().Has(row) && placement.Admits(s.Fleet, q, s.Others.Reserved, row, slices.Contains(s.Present, row)) {
				fit = append(fit, row)
			}
		}
		if q.Relative() {
			continue // the comparison depends on the admitted clusters: TestPrioritizersMatchOracle
		}
		rate := func(row int) float64 { return by.Score(r, row, slices.Contains(s.Present, row)) }
		slices.SortStableFunc(fit, func(x, y int) int { return cmp.Compare(rate(y), rate(x)) })
		want := min(q.Wanted, len(fit))
		if len(out.Choices) != want {
			t.Fatalf("%d clusters chosen of %d that fit, with %d wanted", len(out.Choices), len(fit), q.Wanted)
		}
		for i, c := range out.Choices {
			if c.Score != rate(fit[i]) || c.Score != rate(c.Row) {
				t.Fatalf("choice %d is %s with score %v; its score is %v, and the best one left has %v", i, s.Fleet.Name(c.Row), c.Score, rate(c.Row), rate(fit[i]))
			}
		}
	}
	if moved < 100 {
		t.Errorf("only %d decisions differ from the present one", moved)
	}
}

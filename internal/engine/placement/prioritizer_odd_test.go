package placement

import (
	"cmp"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// odd is a prioritizer like none that there is: it rates by name, minds the square of
// what others decided, and wants to stay.
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

// TestAPrioritizerIsOneLine: one that is added to the list decides as its formula
// says, alone and beside others, whatever it looks at.
func TestAPrioritizerIsOneLine(t *testing.T) {
	before := score.Builtins
	score.Builtins = append(slices.Clone(before), odd{score.Builtin{Kind: "odd"}})
	defer func() { score.Builtins = before }()
	d := enginetest.FixedDice(6)
	sights := lawSights(d, 8)
	moved := 0
	for range 300 {
		policy := &api.PrioritizerPolicy{Mode: api.ModeExact}
		if d.Chance(2) {
			policy = enginetest.RollPrioritizers(d)
		}
		policy.Configurations = append(policy.Configurations, api.PrioritizerConfig{Name: "odd", Weight: ptr(enginetest.Pick[int64](d, -2, 1, 3))})
		p := enginetest.NewPlacement("web")
		p.Spec.NumberOfClusters, p.Spec.Strategy, p.Spec.PrioritizerPolicy = ptr(enginetest.Pick[int64](d, 1, 3, 9)), api.StrategyPrioritizers, policy
		q := compile(t, p)
		if !q.Minds() {
			t.Fatal("what others decide counts, and nobody knows")
		}
		s := enginetest.Pick(d, sights...)
		v := NewView(s.fleet, q, s.others, nil)
		var present Present // one that has to be decided anew
		for _, row := range s.present {
			present.Decisions = append(present.Decisions, api.Decision{Cluster: s.fleet.Name(row)})
		}
		out := Decide(s.fleet, q, v, s.others, present, s.fleet.Now())
		if !out.Same {
			moved++
		}
		r := s.rating(q)
		r.Ranking = nil // rated anew
		var fit []int
		for row := range s.fleet.Slots() {
			if s.fleet.Live().Has(row) && Admits(s.fleet, q, s.others.Reserved, row, slices.Contains(s.present, row)) {
				fit = append(fit, row)
			}
		}
		if q.Relative() {
			continue // what is compared depends on who is admitted: TestPrioritizersMatchOracle
		}
		score := func(row int) float64 { return q.scoring.Score(r, row, slices.Contains(s.present, row)) }
		slices.SortStableFunc(fit, func(x, y int) int { return cmp.Compare(score(y), score(x)) })
		want := min(q.Wanted, len(fit))
		if len(out.Choices) != want {
			t.Fatalf("%d are chosen of %d that fit, %d wanted", len(out.Choices), len(fit), q.Wanted)
		}
		for i, c := range out.Choices {
			if c.Score != score(fit[i]) || c.Score != score(c.Row) {
				t.Fatalf("number %d is %s with %v; it has %v, and the best that is left %v", i, s.fleet.Name(c.Row), c.Score, score(c.Row), score(fit[i]))
			}
		}
	}
	if moved < 100 {
		t.Errorf("only %d decisions differ from the present one", moved)
	}
}

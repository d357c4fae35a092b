package score

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// TestListsAgree checks that the list contains exactly the prioritizers and strategies that users can name.
func TestListsAgree(t *testing.T) {
	var names []string
	for _, b := range builtins {
		names = append(names, b.Name())
	}
	if !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(api.BuiltinPrioritizers))) {
		t.Errorf("built-in prioritizers %q, want those of the API: %q", names, api.BuiltinPrioritizers)
	}
	for strategy := range strategies {
		p := enginetest.NewPlacement("web")
		p.Spec.Strategy, p.Spec.Metrics = strategy, nil
		p.SetDefaults()
		if err := p.Validate(); err != nil {
			t.Errorf("the API rejects strategy %q: %v", strategy, err)
		}
	}
}

// rareFirst is a strategy that declares nothing about itself, so that only its name distinguishes it.
type rareFirst struct{ *weightedMean }

func (rareFirst) Own(r *Rating, row int, _ bool) float64 { return -r.Fleet.MeanScores()[row] }

func (s rareFirst) Score(r *Rating, row int, current bool) float64 {
	return s.Own(r, row, current)
}

func (rareFirst) Parts(*Rating, int, bool) []api.ScorePart { return nil }

func (rareFirst) RankKey(k key.Writer) { k.Sequence("", 0, nil) }

func (s rareFirst) Base(r *Rating, row int) float64 { return s.Own(r, row, false) }

func (rareFirst) Cover(*Rating, []span, int) {}

// rolled draws a way to score clusters.
func rolled(t *testing.T, d enginetest.Dice) *Scoring {
	t.Helper()
	by, err := Compile(enginetest.Pick(d, "shop", "bank"), &enginetest.RollScoring(d).Spec)
	if err != nil {
		t.Fatal(err)
	}
	return by
}

// lookAt rates a fleet, ignoring reservations.
func lookAt(f *columns.Fleet, by *Scoring) *Rating {
	return &Rating{Evaluation: filter.NewEvaluation(f, nil, &enginetest.Owner), By: by}
}

// rating rates the clusters that a query sees.
func rating(s enginetest.Sight, by *Scoring) *Rating {
	r := &Rating{Evaluation: filter.NewEvaluation(s.Fleet, s.Others.Reserved, &enginetest.Owner), By: by}
	if by.Ranks != nil {
		r.Use(NewRanking(lookAt(s.Fleet, by), s.Fleet.Live()), s.Fleet.Live())
	}
	r.See(s.Others.Load, s.Present)
	r.MeasureLeft(s.Fleet.Live(), s.Present)
	return r
}

// ratings returns everything that a scorer declares about itself, and its scores of clusters outside the decision.
func ratings(by *Scoring, sights []enginetest.Sight) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v ", by.Traits)
	for i := range sights {
		r := rating(sights[i], by)
		fmt.Fprint(&b, r.MostOfOthers())
		for row := range r.Fleet.Slots() {
			fmt.Fprint(&b, by.Own(r, row, false), by.Score(r, row, false), " ")
			for _, part := range by.Parts(r, row, false) {
				fmt.Fprint(&b, part.Name, part.Value, part.Weight, part.Share, part.Reason, part.ExpiredAt)
				if part.Raw != nil {
					fmt.Fprint(&b, *part.Raw)
				}
			}
			if by.Perishes != nil {
				fmt.Fprint(&b, by.Perishes.Until(r.Fleet, row))
			}
		}
	}
	return b.String()
}

// TestEqualScorersRateEqually checks the law that the classes of scores rely on: scorers with the same key declare the
// same and give the same scores, and those with the same RankKey give the same ranking. Every part of every key is
// needed.
func TestEqualScorersRateEqually(t *testing.T) {
	d := enginetest.FixedDice(4)
	sights := enginetest.RollSights(d, 4)
	scorings := []*Scoring{newScoring("rare", rareFirst{})}
	for range 400 {
		scorings = append(scorings, rolled(t, d))
	}
	var ranked []*Scoring
	for _, by := range scorings {
		if by.Ranks != nil && !by.Relative() {
			ranked = append(ranked, by)
		}
	}
	needed := map[string]bool{}
	for _, law := range []struct {
		name  string
		list  []*Scoring
		write func(by *Scoring, k key.Writer)
		says  func(by *Scoring) string
	}{
		{"Key", scorings, (*Scoring).Key, func(by *Scoring) string { return ratings(by, sights) }},
		{"RankKey", ranked, (*Scoring).RankKey, func(by *Scoring) string {
			var b strings.Builder
			for i := range sights {
				r := NewRanking(lookAt(sights[i].Fleet, by), sights[i].Fleet.Live())
				fmt.Fprint(&b, r.Order, r.Score)
			}
			return b.String()
		}},
	} {
		parts := map[string]bool{}
		without := func(leaveOut string) func(by *Scoring) string {
			return func(by *Scoring) string {
				text, has := enginetest.KeyWithout(leaveOut, false, func(k key.Writer) { law.write(by, k) })
				maps.Copy(parts, has)
				return text
			}
		}
		says := enginetest.Remembered(law.says)
		if x, y, found := enginetest.Disagree(law.list, without("-"), says); found {
			t.Errorf("%s: two scorers with the same key differ:\n%+v\n%+v", law.name, x.scorer, y.scorer)
		}
		delete(parts, "")
		if len(parts) < 5 {
			t.Errorf("%s: only the parts %v occurred", law.name, parts)
		}
		for part := range maps.Clone(parts) {
			if _, _, found := enginetest.Disagree(law.list, without(part), says); found {
				needed[part] = true
			} else if !needed[part] { // the previous key contains this part
				t.Errorf("%s: no case needs %q in the key", law.name, part)
			}
		}
	}
}

// sortOf names the type of a scorer with one term.
func sortOf(by *Scoring) string {
	s, ok := by.scorer.(*prioritizers)
	if !ok {
		return fmt.Sprintf("%T", by.scorer)
	}
	name := ""
	for term := range s.all {
		name += fmt.Sprintf("%T ", term.prioritizer)
	}
	return name
}

// TestScorersDeclareTheirReads checks that a score changes only with what the scorer declares to read, and that every
// declaration is needed: for each there is a change that no other would have reported. Decisions of other placements
// affect only scorers that declare it, other candidates only scorers that compare them, and time alone only at the
// declared time.
func TestScorersDeclareTheirReads(t *testing.T) {
	d := enginetest.FixedDice(5)
	var scorings []*Scoring
	for range 150 {
		by := rolled(t, d)
		s, several := by.scorer.(*prioritizers)
		if !several || len(s.decided)+len(s.terms) == 1 {
			scorings = append(scorings, by)
		}
	}
	type witness struct {
		sort   string
		aspect columns.Aspects
	}
	seen, compares := map[witness]bool{}, map[string]bool{}
	note := func(by *Scoring, heard func(columns.Aspects) bool, what string) {
		t.Helper()
		reads := by.Traits.Reads
		if !heard(reads) {
			t.Fatalf("%s: changes with %s, but does not declare that it reads it", sortOf(by), what)
		}
		for aspect := range enginetest.EachAspect(reads) {
			if !heard(reads &^ aspect) {
				seen[witness{sortOf(by), aspect}] = true
			}
		}
	}
	own := func(by *Scoring, r *Rating, row int) [2]float64 {
		return [2]float64{by.Own(r, row, false), by.Own(r, row, true)}
	}
	// unshown returns a declaration of a query for which no change has mattered yet.
	unshown := func(by *Scoring) string {
		for aspect := range enginetest.EachAspect(by.Traits.Reads) {
			if !seen[witness{sortOf(by), aspect}] {
				return fmt.Sprintf("%s says that it reads aspect %b", sortOf(by), aspect)
			}
		}
		if by.Relative() && !compares[sortOf(by)] {
			return sortOf(by) + " says that it compares candidates"
		}
		return ""
	}
	// Rare cases take more worlds.
	done := func() bool {
		return !slices.ContainsFunc(scorings, func(by *Scoring) bool { return unshown(by) != "" })
	}
	for n := 0; n < 30 || n < 200 && !done(); n++ {
		w := enginetest.RollLawWorld(d)
		f := w.Fleet()
		for range 40 {
			changes := enginetest.RollLawStep(d, w)
			w.Apply(changes, w.Now)
			g, delta := f.With(changes, w.Now)
			for range 20 {
				by := enginetest.Pick(d, scorings...)
				before, after := rating(enginetest.Sight{Fleet: f}, by), rating(enginetest.Sight{Fleet: g}, by)
				for row := range f.Slots() {
					if row >= g.Slots() || !f.Live().Has(row) || !g.Live().Has(row) || own(by, before, row) == own(by, after, row) {
						continue
					}
					note(by, func(reads columns.Aspects) bool {
						return delta.Fleet.Any(reads) || slices.ContainsFunc(delta.Rows, func(at int) bool {
							return (at == row || by.Relative()) && delta.ConcernsRow(at, reads)
						})
					}, "something of the fleet")
				}
			}
			f = g
		}
		// Change only one aspect of the other decisions.
		rows := make([]int, f.Slots())
		for row := range rows {
			rows[row] = row
		}
		load, reserved := ledger.NewLoad(), ledger.NewReservations()
		load.Sync(f, columns.Delta{Rows: rows})
		for row := range f.Slots() {
			if d.Chance(2) {
				load.Add(f, f.Name(row))
			}
			if d.Chance(2) {
				reserved.Hold(f, api.Key{Name: "other"}, ledger.Needs{{Resource: "cpu", Text: "1", Milli: amount.Unit}, {Resource: "memory", Text: "1", Milli: amount.Unit}}, f.Name(row), enginetest.Epoch)
			}
		}
		for aspect, others := range map[columns.Aspects]ledger.Others{columns.Chosen: {Load: load}, columns.Reserved: {Reserved: reserved}} {
			for _, by := range scorings {
				before, after := rating(enginetest.Sight{Fleet: f}, by), rating(enginetest.Sight{Fleet: f, Others: others}, by)
				for row := range f.Slots() {
					if own(by, before, row) != own(by, after, row) {
						t.Fatalf("%s: its own score changes with other decisions", sortOf(by))
					}
					is := by.Score(after, row, false)
					if by.Score(before, row, false) != is {
						note(by, func(reads columns.Aspects) bool { return reads.Any(aspect) }, "what others decide")
						if !by.Traits.Minds {
							t.Fatalf("%s: the score depends on other decisions, but Minds is not set", sortOf(by))
						}
					}
					if most := by.Own(after, row, false) + after.MostOfOthers(); is > most {
						t.Fatalf("%s: other decisions add %v, want at most %v", sortOf(by), is, most)
					}
					if by.Minds == nil {
						continue
					}
					if most, ok := by.Minds.AtMost(after, row, by.Own(after, row, false)); ok && most < is {
						t.Fatalf("%s: score %v with other decisions, want at most %v", sortOf(by), is, most)
					}
				}
			}
		}
		// Remove candidates, and let only time pass.
		few := columns.NewBitmap(f.Slots())
		for row := range f.Slots() {
			few.Assign(row, f.Live().Has(row) && !d.Chance(3))
		}
		g, delta := f.With(columns.Changes{}, f.Now().Add(time.Duration(30+d(90))*time.Second))
		for _, by := range scorings {
			if by.Ranks == nil {
				continue
			}
			all, some, later := NewRanking(lookAt(f, by), f.Live()), NewRanking(lookAt(f, by), few), NewRanking(lookAt(g, by), g.Live())
			few.Each(func(row int) {
				if all.Score[row] != some.Score[row] {
					compares[sortOf(by)] = true
					if !by.Relative() {
						t.Fatalf("%s: a candidate changes the score of another, but Relative() = false", sortOf(by))
					}
				}
			})
			for _, row := range delta.Rows {
				if all.Score[row] == later.Score[row] || !by.Traits.Reads.Any(columns.ScoreValues) {
					continue
				}
				if until := by.Perishes.Until(f, row); until.IsZero() || until.After(g.Now()) {
					t.Fatalf("%s: the score changed with time, but Until() = %v", sortOf(by), until)
				}
			}
		}
	}
	for _, by := range scorings {
		if what := unshown(by); what != "" {
			t.Errorf("%s, but no case needs it", what)
		}
	}
}

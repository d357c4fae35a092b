package score

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// TestListsAgree: every prioritizer and every strategy that a user may name is in its
// list, and no other.
func TestListsAgree(t *testing.T) {
	var names []string
	for _, b := range builtins {
		names = append(names, b.Name())
	}
	if !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(api.BuiltinPrioritizers))) {
		t.Errorf("the built-in prioritizers are %q, users may name %q", names, api.BuiltinPrioritizers)
	}
	for strategy := range strategies {
		p := enginetest.NewPlacement("web")
		p.Spec.Strategy, p.Spec.Metrics = strategy, nil
		p.SetDefaults()
		if err := p.Validate(); err != nil {
			t.Errorf("nobody may name strategy %q: %v", strategy, err)
		}
	}
}

// rareFirst is a strategy that has nothing to say for itself, so that only its name
// tells it from another.
type rareFirst struct{ *weightedMean }

func (rareFirst) Own(r *Rating, row int, _ bool) float64 { return -r.Fleet.MeanScores()[row] }

func (s rareFirst) Score(r *Rating, row int, current bool) float64 {
	return s.Own(r, row, current)
}

func (rareFirst) Parts(*Rating, int, bool) []api.ScorePart { return nil }

func (rareFirst) RankKey(k key.Writer) { k.Sequence("", 0, nil) }

func (s rareFirst) Base(r *Rating, row int) float64 { return s.Own(r, row, false) }

func (rareFirst) Cover(*Rating, []span, int) {}

// rolled is a drawn way to rate clusters.
func rolled(t *testing.T, d enginetest.Dice) *Scoring {
	t.Helper()
	by, err := Compile(&enginetest.RollScoring(d).Spec)
	if err != nil {
		t.Fatal(err)
	}
	return by
}

// lookAt is a look at a fleet, whatever is reserved.
func lookAt(f *columns.Fleet, by *Scoring) *Rating {
	return &Rating{Look: filter.LookAt(f, nil, &enginetest.Owner), By: by}
}

// rating is how clusters are rated by who sees them.
func rating(s enginetest.Sight, by *Scoring) *Rating {
	r := &Rating{Look: filter.LookAt(s.Fleet, s.Others.Reserved, &enginetest.Owner), By: by}
	if by.Ranks != nil {
		r.Use(NewRanking(lookAt(s.Fleet, by), s.Fleet.Live()), s.Fleet.Live())
	}
	r.See(s.Others.Load, s.Present)
	r.MeasureLeft(s.Fleet.Live(), s.Present)
	return r
}

// ratings is all that a scorer says of itself, and of clusters outside of the decision.
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

// TestEqualScorersRateEqually is the law that the classes of scores rest on: scorers
// of one key say the same of themselves and rate alike, and those of one RankKey have
// one ranking. And every part of every key is needed.
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
			t.Errorf("%s: two scorers of one key differ:\n%+v\n%+v", law.name, x.scorer, y.scorer)
		}
		delete(parts, "")
		if len(parts) < 5 {
			t.Errorf("%s: only the parts %v were seen", law.name, parts)
		}
		for part := range maps.Clone(parts) {
			if _, _, found := enginetest.Disagree(law.list, without(part), says); found {
				needed[part] = true
			} else if !needed[part] { // by the key before, of which this is a part
				t.Errorf("%s: nothing is missed where %q is left out", law.name, part)
			}
		}
	}
}

// sortOf names what a scorer of one term is.
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

// TestScorersDeclareTheirReads: a score changes only with what the scorer says that it
// reads, and of everything that it reads there is a change that nothing else would
// have told of. What others decide changes no score by its own, and only that of a
// scorer that minds; another candidate changes only that of one that compares them;
// and time alone only at the moment that was told.
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
			t.Fatalf("%s: it changes with %s, and does not say that it reads that", sortOf(by), what)
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
	// unshown is what a query says of itself, and nothing shows yet.
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
	// What is rare needs more worlds in one draw of the dice than in another.
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
		// One aspect of what others decided alone.
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
				reserved.Hold(f, api.Key{Name: "other"}, ledger.Needs{{Resource: "cpu", Text: "1", Milli: 1000}, {Resource: "memory", Text: "1", Milli: 1000}}, f.Name(row), enginetest.Epoch)
			}
		}
		for aspect, others := range map[columns.Aspects]ledger.Others{columns.Chosen: {Load: load}, columns.Reserved: {Reserved: reserved}} {
			for _, by := range scorings {
				before, after := rating(enginetest.Sight{Fleet: f}, by), rating(enginetest.Sight{Fleet: f, Others: others}, by)
				for row := range f.Slots() {
					if own(by, before, row) != own(by, after, row) {
						t.Fatalf("%s: what others decide changes its own score", sortOf(by))
					}
					is := by.Score(after, row, false)
					if by.Score(before, row, false) != is {
						note(by, func(reads columns.Aspects) bool { return reads.Any(aspect) }, "what others decide")
						if !by.Traits.Minds {
							t.Fatalf("%s: what others decide counts, and it does not say so", sortOf(by))
						}
					}
					if most := by.Own(after, row, false) + after.MostOfOthers(); is > most {
						t.Fatalf("%s: others add %v, at most %v", sortOf(by), is, most)
					}
					if by.Minds == nil {
						continue
					}
					if most, ok := by.Minds.AtMost(after, row, by.Own(after, row, false)); ok && most < is {
						t.Fatalf("%s: others make it %v, at most %v", sortOf(by), is, most)
					}
				}
			}
		}
		// Fewer candidates, and time alone.
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
						t.Fatalf("%s: a candidate changes the score of another, and it does not say so", sortOf(by))
					}
				}
			})
			for _, row := range delta.Rows {
				if all.Score[row] == later.Score[row] || !by.Traits.Reads.Any(columns.ScoreValues) {
					continue
				}
				if until := by.Perishes.Until(f, row); until.IsZero() || until.After(g.Now()) {
					t.Fatalf("%s: a score changes by time alone, and was to do so at %v", sortOf(by), until)
				}
			}
		}
	}
	for _, by := range scorings {
		if what := unshown(by); what != "" {
			t.Errorf("%s, and nothing shows it", what)
		}
	}
}

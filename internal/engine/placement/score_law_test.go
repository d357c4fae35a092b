package placement

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
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// TestListsAgree: every prioritizer and every strategy that a user may name is in its
// list, and no other.
func TestListsAgree(t *testing.T) {
	var names []string
	for _, b := range score.Builtins {
		names = append(names, b.Name())
	}
	if !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(api.BuiltinPrioritizers))) {
		t.Errorf("the built-in prioritizers are %q, users may name %q", names, api.BuiltinPrioritizers)
	}
	for strategy := range score.Strategies {
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
type rareFirst struct{ *score.WeightedMean }

func (rareFirst) Own(r *score.Rating, row int, _ bool) float64 { return -r.Fleet.MeanScores()[row] }

func (s rareFirst) Score(r *score.Rating, row int, current bool) float64 {
	return s.Own(r, row, current)
}

func (rareFirst) Parts(*score.Rating, int, bool) []api.ScorePart { return nil }

func (rareFirst) RankKey(k *filter.Key) { k.Sequence("", 0, nil) }

func (s rareFirst) Base(r *score.Rating, row int) float64 { return s.Own(r, row, false) }

func (rareFirst) Cover(*score.Rating, []score.Span, int) {}

// lawSight is a fleet as a placement sees it that is to be decided.
type lawSight struct {
	fleet   *columns.Fleet
	others  ledger.Others
	present []int
}

func lawSights(d enginetest.Dice, n int) []lawSight {
	var out []lawSight
	for _, look := range lawLooks(d, n) {
		s := lawSight{fleet: look.Fleet, others: ledger.Others{Reserved: look.Reserved, Load: ledger.NewLoad()}}
		rows := make([]int, s.fleet.Slots())
		for row := range rows {
			rows[row] = row
			for range d(3) {
				s.others.Load.Add(s.fleet, s.fleet.Name(row))
			}
			if d.Chance(4) {
				s.present = append(s.present, row)
				s.others.Load.Add(s.fleet, s.fleet.Name(row))
			}
		}
		s.others.Load.Sync(s.fleet, columns.Delta{Rows: rows})
		out = append(out, s)
	}
	return out
}

// rating is how a query rates the clusters that it sees.
func (s *lawSight) rating(q *Query) *score.Rating {
	v := &View{Mask: s.fleet.Live()}
	if q.Ranked() {
		v.Ranking = NewRanking(s.fleet, q, v.Mask)
	}
	p := v.decision(s.fleet, q, s.others, s.present)
	p.MeasureLeft(v.Mask, s.present)
	return &p.Rating
}

// ratings is all that a scorer says of itself, and of clusters outside of the decision.
func ratings(q *Query, sights []lawSight) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v ", q.scoring.Traits)
	for i := range sights {
		r := sights[i].rating(q)
		fmt.Fprint(&b, r.MostOfOthers())
		for row := range r.Fleet.Slots() {
			fmt.Fprint(&b, q.scoring.Own(r, row, false), q.scoring.Score(r, row, false), " ")
			for _, part := range q.scoring.Parts(r, row, false) {
				fmt.Fprint(&b, part.Name, part.Value, part.Weight, part.Share, part.Reason, part.ExpiredAt)
				if part.Raw != nil {
					fmt.Fprint(&b, *part.Raw)
				}
			}
			if by := q.scoring.Perishes; by != nil {
				fmt.Fprint(&b, by.Until(r.Fleet, row))
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
	sights := lawSights(d, 4)
	queries := []*Query{{strategy: "rare", scoring: score.NewScoring(rareFirst{})}}
	for range 400 {
		queries = append(queries, compile(t, enginetest.RollScoring(d)))
	}
	var ranked []*Query
	for _, q := range queries {
		if q.Ranked() && !q.Relative() {
			ranked = append(ranked, q)
		}
	}
	needed := map[string]bool{}
	for _, law := range []struct {
		name  string
		list  []*Query
		write func(q *Query, k *filter.Key)
		says  func(q *Query) string
	}{
		{"Key", queries, (*Query).writeScoring, func(q *Query) string { return ratings(q, sights) }},
		{"RankKey", ranked, (*Query).writeRankKey, func(q *Query) string {
			var b strings.Builder
			for i := range sights {
				r := NewRanking(sights[i].fleet, q, sights[i].fleet.Live())
				fmt.Fprint(&b, r.Order, r.Score)
			}
			return b.String()
		}},
	} {
		parts := map[string]bool{}
		key := func(leaveOut string) func(q *Query) string {
			return func(q *Query) string {
				k := filter.NewKey(false)
				k.LeaveOut = func(part string) bool {
					parts[part] = true
					return part == leaveOut
				}
				law.write(q, &k)
				return k.String()
			}
		}
		says := enginetest.Remembered(law.says)
		if x, y, found := enginetest.Disagree(law.list, key("-"), says); found {
			t.Errorf("%s: two scorers of one key differ:\n%+v\n%+v", law.name, x.scoring.Scorer, y.scoring.Scorer)
		}
		delete(parts, "")
		if len(parts) < 5 {
			t.Errorf("%s: only the parts %v were seen", law.name, parts)
		}
		for part := range maps.Clone(parts) {
			if _, _, found := enginetest.Disagree(law.list, key(part), says); found {
				needed[part] = true
			} else if !needed[part] { // by the key before, of which this is a part
				t.Errorf("%s: nothing is missed where %q is left out", law.name, part)
			}
		}
	}
}

// sortOf names what a scorer of one term is.
func sortOf(q *Query) string {
	s, ok := q.scoring.Scorer.(*score.Prioritizers)
	if !ok {
		return fmt.Sprintf("%T", q.scoring.Scorer)
	}
	name := ""
	for term := range s.All {
		name += fmt.Sprintf("%T ", term.Prioritizer)
	}
	return name
}

// TestScorersReadWhatTheySay: a score changes only with what the scorer says that it
// reads, and of everything that it reads there is a change that nothing else would
// have told of. What others decide changes no score by its own, and only that of a
// scorer that minds; another candidate changes only that of one that compares them;
// and time alone only at the moment that was told.
func TestScorersReadWhatTheySay(t *testing.T) {
	d := enginetest.FixedDice(5)
	var queries []*Query
	for range 150 {
		q := compile(t, enginetest.RollScoring(d))
		s, several := q.scoring.Scorer.(*score.Prioritizers)
		if !several || len(s.Decided)+len(s.Terms) == 1 {
			queries = append(queries, q)
		}
	}
	type witness struct {
		sort   string
		aspect columns.Aspects
	}
	seen, compares := map[witness]bool{}, map[string]bool{}
	note := func(q *Query, heard func(columns.Aspects) bool, what string) {
		t.Helper()
		reads := q.ScoreReads()
		if !heard(reads) {
			t.Fatalf("%s: it changes with %s, and does not say that it reads that", sortOf(q), what)
		}
		for left := reads; left != 0; left &= left - 1 {
			if aspect := left &^ (left - 1); !heard(reads &^ aspect) {
				seen[witness{sortOf(q), aspect}] = true
			}
		}
	}
	own := func(q *Query, r *score.Rating, row int) [2]float64 {
		return [2]float64{q.scoring.Own(r, row, false), q.scoring.Own(r, row, true)}
	}
	// unshown is what a query says of itself, and nothing shows yet.
	unshown := func(q *Query) string {
		for left := q.ScoreReads(); left != 0; left &= left - 1 {
			if aspect := left &^ (left - 1); !seen[witness{sortOf(q), aspect}] {
				return fmt.Sprintf("%s says that it reads aspect %b", sortOf(q), aspect)
			}
		}
		if q.Relative() && !compares[sortOf(q)] {
			return sortOf(q) + " says that it compares candidates"
		}
		return ""
	}
	// What is rare needs more worlds in one draw of the dice than in another.
	done := func() bool {
		return !slices.ContainsFunc(queries, func(q *Query) bool { return unshown(q) != "" })
	}
	for n := 0; n < 30 || n < 200 && !done(); n++ {
		w := enginetest.RollLawWorld(d)
		f := w.Fleet()
		for range 40 {
			changes := enginetest.RollLawStep(d, w)
			w.Apply(changes, w.Now)
			g, delta := f.With(changes, w.Now)
			for range 20 {
				q := enginetest.Pick(d, queries...)
				before, after := (&lawSight{fleet: f}).rating(q), (&lawSight{fleet: g}).rating(q)
				for row := range f.Slots() {
					if row >= g.Slots() || !f.Live().Has(row) || !g.Live().Has(row) || own(q, before, row) == own(q, after, row) {
						continue
					}
					note(q, func(reads columns.Aspects) bool {
						return delta.Fleet.Any(reads) || slices.ContainsFunc(delta.Rows, func(at int) bool {
							return (at == row || q.Relative()) && delta.ConcernsRow(at, reads)
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
			for _, q := range queries {
				before, after := (&lawSight{fleet: f}).rating(q), (&lawSight{fleet: f, others: others}).rating(q)
				for row := range f.Slots() {
					if own(q, before, row) != own(q, after, row) {
						t.Fatalf("%s: what others decide changes its own score", sortOf(q))
					}
					is := q.scoring.Score(after, row, false)
					if q.scoring.Score(before, row, false) != is {
						note(q, func(reads columns.Aspects) bool { return reads.Any(aspect) }, "what others decide")
						if !q.Minds() {
							t.Fatalf("%s: what others decide counts, and it does not say so", sortOf(q))
						}
					}
					if most := q.scoring.Own(after, row, false) + after.MostOfOthers(); is > most {
						t.Fatalf("%s: others add %v, at most %v", sortOf(q), is, most)
					}
					if total, ok := TotalOf(f, q, &View{Mask: f.Live(), Ranking: after.Ranking}, others, row); ok && total.Score < is {
						t.Fatalf("%s: others make it %v, at most %v", sortOf(q), is, total.Score)
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
		for _, q := range queries {
			if !q.Ranked() {
				continue
			}
			all, some, later := NewRanking(f, q, f.Live()), NewRanking(f, q, few), NewRanking(g, q, g.Live())
			few.Each(func(row int) {
				if all.Score[row] != some.Score[row] {
					compares[sortOf(q)] = true
					if !q.Relative() {
						t.Fatalf("%s: a candidate changes the score of another, and it does not say so", sortOf(q))
					}
				}
			})
			for _, row := range delta.Rows {
				if all.Score[row] == later.Score[row] || !q.UsesScores() {
					continue
				}
				if until := q.scoring.Perishes.Until(f, row); until.IsZero() || until.After(g.Now()) {
					t.Fatalf("%s: a score changes by time alone, and was to do so at %v", sortOf(q), until)
				}
			}
		}
	}
	for _, q := range queries {
		if what := unshown(q); what != "" {
			t.Errorf("%s, and nothing shows it", what)
		}
	}
}

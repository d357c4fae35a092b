package placement

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// rollPlacement draws a placement with its present decision.
func rollPlacement(d enginetest.Dice, w *enginetest.World) (*api.Placement, Present) {
	p := enginetest.RollPlacement(d)
	present := rollPresent(d, w)
	if n := len(present.Decisions); n > 0 && d.Chance(3) {
		// Only scores can keep the clusters, and as many are requested as before.
		s := &p.Spec
		s.NumberOfClusters, s.LabelConstraints, s.MetricConstraints = new(int64(n)), nil, nil
		s.Migration, present.Answered = new(true), false
	}
	return p, present
}

func rollPresent(d enginetest.Dice, w *enginetest.World) Present {
	var now Present
	names := append(w.Names(), "gone")
	for range enginetest.Pick(d, 0, 1, 1, 2, 3, 12) {
		name := enginetest.Pick(d, names...)
		if !slices.ContainsFunc(now.Decisions, func(x api.Decision) bool { return x.Cluster == name }) {
			now.Decisions = append(now.Decisions, api.Decision{Cluster: name, Since: new(enginetest.Epoch)})
		}
	}
	now.ScheduledAt = w.Now.Add(-time.Duration(enginetest.Pick(d, 0, 29, 30, 59, 60, 90)) * time.Second)
	now.Answered = !d.Chance(3)
	now.Fresh = d.Chance(5)
	return now
}

// reserve reserves a placement's requests on a cluster.
func reserve(t rapid.TB, reserved *ledger.Reservations, f *columns.Fleet, p *api.Placement, cluster string, since time.Time) {
	q := enginetest.Compile(t, NewQuery, p)
	reserved.Hold(f, q.Key, q.Requests(), cluster, since)
}

// rollHolds draws reservations of other placements, and some of p itself on its present clusters, in the ledger and in
// the oracle's form.
func rollHolds(t rapid.TB, d enginetest.Dice, w *enginetest.World, f *columns.Fleet, p *api.Placement, present Present) (*ledger.Reservations, []oracleHold) {
	reserved := ledger.NewReservations()
	var holds []oracleHold
	hold := func(p *api.Placement, cluster string) {
		since := enginetest.Epoch.Add(time.Duration(d(5)-2) * 30 * time.Second)
		reserve(t, reserved, f, p, cluster, since)
		holds = append(holds, oracleHold{api.KeyOf(p), cluster, p.Spec.ResourceRequests, since})
	}
	for i := range d(6) {
		other := &api.Placement{Metadata: api.Metadata{Name: fmt.Sprintf("other%d", i), Namespace: "shop"}}
		other.Spec.ResourceRequests = api.Quantities{"cpu": enginetest.Pick[api.Quantity](d, "100m", "1")}
		other.SetDefaults()
		if names := w.Names(); len(names) > 0 {
			hold(other, enginetest.Pick(d, names...))
		}
	}
	for _, x := range present.Decisions {
		if !d.Chance(3) {
			hold(p, x.Cluster)
		}
	}
	return reserved, holds
}

// answerOf converts an outcome to the oracle's form.
func answerOf(f *columns.Fleet, out Outcome) answer {
	a := answer{same: out.Same, held: out.kept, nextAt: out.NextAt}
	for _, c := range out.Choices {
		a.seats = append(a.seats, seat{f.Name(c.Row), c.Score})
	}
	return a
}

func sameAnswer(a, b answer) bool {
	return a.same == b.same && a.held == b.held && a.nextAt.Equal(b.nextAt) && slices.Equal(a.seats, b.seats)
}

func rendered(t rapid.TB, e *Explained) string {
	t.Helper()
	text, err := json.Marshal(e.Render())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEngineAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		f := w.Fleet()
		p, present := rollPlacement(d, w)
		q := enginetest.Compile(t, NewQuery, p)
		reserved, holds := rollHolds(t, d, w, f, p, present)
		o := oracle{w, holds}

		want := o.decide(p, present)
		others := ledger.Others{Reserved: reserved}
		out := Decide(f, q, NewView(f, q, others, nil), others, present, w.Now)
		if got := answerOf(f, out); !sameAnswer(got, want) {
			t.Fatalf("decided %+v, want %+v", got, want)
		}
		if got, want := f.NextAt(), o.nextAt(); !got.Equal(want) {
			t.Fatalf("NextAt %v, want %v", got, want)
		}

		explained := Explain(f, q, nil, ledger.Others{Reserved: reserved}, present, w.Now)
		if !reflect.DeepEqual(explained.Outcome, out) {
			t.Fatalf("explained %+v, decided %+v", explained.Outcome, out)
		}
		e := explained.Render()
		fit := 0
		for _, c := range e.Candidates {
			filter, on := o.rejects(p, w.Clusters[c.Cluster], c.Current)
			if filter == "" {
				fit++
			} else if c.Reason == "" {
				t.Fatalf("%s is rejected by %s without a reason", c.Cluster, filter)
			}
			if c.Filter != filter {
				t.Fatalf("%s: rejected by %q (%s), want %q on %q", c.Cluster, c.Filter, c.Reason, filter, on)
			}
			if want := slices.ContainsFunc(want.seats, func(s seat) bool { return s.cluster == c.Cluster }); c.Selected != want {
				t.Fatalf("%s: selected is %t, want %t", c.Cluster, c.Selected, want)
			}
		}
		if len(e.Candidates) != len(w.Clusters) || e.Total != len(w.Clusters) || e.Feasible != fit {
			t.Fatalf("%d candidates, total %d, feasible %d; want %d, of which %d fit",
				len(e.Candidates), e.Total, e.Feasible, len(w.Clusters), fit)
		}
		rejected := 0
		for _, r := range e.Rejections {
			rejected += r.Count
		}
		if rejected != len(w.Clusters)-fit {
			t.Fatalf("%d rejections, but %d of %d clusters fit", rejected, fit, len(w.Clusters))
		}
		checkScores(t, e)
	})
}

// checkScores checks that the parts of a score add up, and that the ranks follow the order.
func checkScores(t *rapid.T, e *api.Explanation) {
	for i, c := range e.Candidates {
		if c.Filter != "" {
			if c.Rank != 0 || c.Score != nil {
				t.Fatalf("%s is rejected and has rank %d, score %v", c.Cluster, c.Rank, c.Score)
			}
			continue
		}
		if c.Rank != int64(i+1) {
			t.Fatalf("candidate %d has rank %d", i, c.Rank)
		}
		sum := 0.0
		for _, part := range c.Scores {
			sum += part.Share
		}
		if d := sum - *c.Score; d > 1e-9 || d < -1e-9 {
			t.Fatalf("%s: the shares %+v add up to %v, score %v", c.Cluster, c.Scores, sum, *c.Score)
		}
	}
}

// TestRowOrderDoesNotMatter checks that decision and explanation are the same if clusters are added in another order,
// with other clusters added and removed in between.
func TestRowOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		p, present := rollPlacement(d, w)
		q := enginetest.Compile(t, NewQuery, p)
		sameFleet(t, w.Shuffled(d), w.Fleet(), q, present, w.Now)
	})
}

// sameFleet compares two fleets by name.
func sameFleet(t *rapid.T, f, g *columns.Fleet, q *Query, present Present, now time.Time) {
	t.Helper()
	if f.Len() != g.Len() || !f.NextAt().Equal(g.NextAt()) {
		t.Fatalf("%d clusters until %v, want %d until %v", f.Len(), f.NextAt(), g.Len(), g.NextAt())
	}
	a, b := Explain(f, q, nil, ledger.Others{}, present, now), Explain(g, q, nil, ledger.Others{}, present, now)
	if x, y := rendered(t, a), rendered(t, b); x != y {
		t.Fatalf("the explanations differ: %s", firstDifference(x, y))
	}
	for _, row := range g.Index() {
		x, y := Observe(f, nil, g.Cluster(row)), Observe(g, nil, g.Cluster(row))
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("observed %+v, want %+v", x, y)
		}
	}
	if q.unknownMetrics(f) != nil || q.unknownMetrics(g) != nil {
		if x, y := q.unknownMetrics(f), q.unknownMetrics(g); !slices.Equal(x, y) {
			t.Fatalf("unknown metrics %q, want %q", x, y)
		}
	}
}

// moment is an earlier fleet with a result that it gave.
type moment struct {
	fleet   *columns.Fleet
	query   *Query
	present Present
	now     time.Time
	said    string
	delta   columns.Delta
}

// TestIncremental checks that a fleet after any sequence of changes equals one built from scratch, that earlier
// versions do not change, and that rows that a delta does not list are unchanged.
func TestIncremental(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		large := rapid.IntRange(0, 4).Draw(t, "large") == 0
		d := enginetest.Rolling(t, large)
		n := 12
		if large {
			n = 400 // sets switch between lists and bitmaps
		}
		w := enginetest.NewWorld()
		f := &columns.Fleet{}
		reserved := ledger.NewReservations()
		var holds []oracleHold
		var past []moment
		for step := range 8 {
			changes, now := enginetest.RollChange(d, w, n)
			if large && step%3 == 0 {
				for range d(300) {
					name := fmt.Sprintf("c%03d", d(n))
					changes.Clusters[name] = nil
					if step%6 == 0 {
						changes.Clusters[name] = enginetest.RollCluster(d, name, true)
					}
				}
			}
			p, _ := rollPlacement(d, w)
			q := enginetest.Compile(t, NewQuery, p)
			before := f
			w.Apply(changes, now)
			var delta columns.Delta
			f, delta = f.With(changes, now)
			present := rollPresent(d, w)
			sameFleet(t, f, w.Fleet(), q, present, now)
			checkDelta(t, before, f, delta, q)

			reserved.Sync(f, delta)
			holds = rollLedger(t, d, w, f, reserved, holds)
			checkLedger(t, w, f, reserved, holds)

			past = append(past, moment{f, q, present, now, rendered(t, Explain(f, q, nil, ledger.Others{}, present, now)), delta})
		}
		for _, m := range past {
			if said := rendered(t, Explain(m.fleet, m.query, nil, ledger.Others{}, m.present, m.now)); said != m.said {
				t.Fatalf("the explanation on an earlier fleet changed: %s", firstDifference(said, m.said))
			}
		}
	})
}

// checkDelta compares what a query sees of each row with what the delta says has changed.
func checkDelta(t *rapid.T, before, after *columns.Fleet, delta columns.Delta, q *Query) {
	t.Helper()
	for name, row := range before.Index() {
		if at, ok := after.Index()[name]; !ok || at != row {
			continue
		}
		if slices.Contains(delta.Rows, row) {
			if !delta.ConcernsRow(row, q.Reads()) && !q.Reads().Any(columns.Clock) &&
				Admits(before, q, nil, row, false) != Admits(after, q, nil, row, false) {
				t.Fatalf("facts about %s changed, but the delta does not say so: %+v", name, delta)
			}
			continue
		}
		if q.Reads().Any(columns.Clock) {
			continue // only time changes which clusters are admitted
		}
		for _, current := range []bool{false, true} {
			if Admits(before, q, nil, row, current) != Admits(after, q, nil, row, current) ||
				MeritOf(before, q, &View{}, ledger.Others{}, row, current) != MeritOf(after, q, &View{}, ledger.Others{}, row, current) {
				t.Fatalf("the score of %s changed, but the delta does not say so: %+v", name, delta)
			}
		}
	}
}

// rollLedger draws holds and releases, and keeps a list of the holds.
func rollLedger(t *rapid.T, d enginetest.Dice, w *enginetest.World, f *columns.Fleet, reserved *ledger.Reservations, holds []oracleHold) []oracleHold {
	for range d(7) {
		p := &api.Placement{Metadata: api.Metadata{Name: enginetest.Pick(d, "p1", "p2"), Namespace: "shop"}}
		if !d.Chance(4) {
			p.Spec.ResourceRequests = enginetest.RollQuantities(d)
			delete(p.Spec.ResourceRequests, "memory")
		}
		p.SetDefaults()
		cluster := fmt.Sprintf("c%03d", d(4))
		key := api.KeyOf(p)
		holds = slices.DeleteFunc(holds, func(h oracleHold) bool { return h.placement == key && h.cluster == cluster })
		if d.Chance(3) {
			reserved.Release(f, key, cluster)
			continue
		}
		since := enginetest.Epoch.Add(time.Duration(d(5)-2) * 30 * time.Second)
		reserve(t, reserved, f, p, cluster, since)
		holds = append(holds, oracleHold{key, cluster, p.Spec.ResourceRequests, since})
	}
	return holds
}

// checkLedger compares the ledger with one computed from scratch, and the available amounts with the oracle's.
func checkLedger(t *rapid.T, w *enginetest.World, f *columns.Fleet, reserved *ledger.Reservations, holds []oracleHold) {
	t.Helper()
	o := oracle{w, holds}
	total := map[string]amount.Milli{}
	for name, row := range f.Index() {
		free := ledger.Available(f, reserved, row)
		for _, resource := range []string{"cpu", "memory"} {
			want, ok := o.available(w.Clusters[name], resource, api.Key{}, false)
			got, reported := free[resource]
			if ok != reported {
				t.Fatalf("%s reports %s: %t, want %t", name, resource, reported, ok)
			}
			if ok && resource == "cpu" && got != api.FormatMilli(resource, want.Rest()) {
				t.Fatalf("%s has %s of %s, want %s thousandths", name, got, resource, want)
			}
		}
		for _, h := range holds {
			c := w.Clusters[name]
			if h.cluster != name || (c.Status.CapacityReportedAt != nil && !h.since.After(*c.Status.CapacityReportedAt)) {
				continue
			}
			if cpu, ok := h.requests["cpu"]; ok {
				milli, _ := cpu.Milli()
				total["cpu"] = total["cpu"].Plus(milli)
			}
		}
	}
	for _, resource := range []string{"cpu", "memory"} {
		sum := amount.Milli{}
		for row := range reserved.Column(resource).Len() {
			held := reserved.Column(resource).At(row)
			if held.Sign() < 0 {
				t.Fatalf("row %d holds %s of %s", row, held, resource)
			}
			sum = sum.Plus(held)
		}
		if sum != total[resource] {
			t.Fatalf("%s of %s are held, want %s", sum, resource, total[resource])
		}
	}
}

// TestSelectionRules checks the documented rules about moving, independently of the oracle.
func TestSelectionRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		f := w.Fleet()
		p, present := rollPlacement(d, w)
		q := enginetest.Compile(t, NewQuery, p)
		out := Decide(f, q, NewView(f, q, ledger.Others{}, nil), ledger.Others{}, present, w.Now)
		chosen := map[string]float64{}
		for i, c := range out.Choices {
			chosen[f.Name(c.Row)] = c.Score
			if i > 0 && f.Scored().Has(c.Row) && !f.Scored().Has(out.Choices[i-1].Row) {
				t.Fatal("a cluster without metrics ranks above one with metrics")
			}
			if i > 0 && f.Scored().Has(c.Row) == f.Scored().Has(out.Choices[i-1].Row) && c.Score > out.Choices[i-1].Score {
				t.Fatal("the clusters are not ordered by score")
			}
		}
		if len(chosen) != len(out.Choices) {
			t.Fatal("a cluster is chosen twice")
		}
		if q.Wanted != score.All && len(out.Choices) > q.Wanted {
			t.Fatalf("%d chosen, %d wanted", len(out.Choices), q.Wanted)
		}
		came := []string{}
		was := map[string]bool{}
		for _, x := range present.Decisions {
			was[x.Cluster] = true
		}
		for name := range chosen {
			if !was[name] {
				came = append(came, name)
			}
		}
		held := !q.Migration || (present.Answered && !present.Fresh && w.Now.Before(present.ScheduledAt.Add(q.rescheduleAfter)))
		for name := range was {
			row, ok := f.Row(name)
			if _, stays := chosen[name]; stays || !ok || !Admits(f, q, nil, row, true) {
				continue
			}
			// name fits, and was replaced.
			for _, other := range came {
				at, _ := f.Row(other)
				switch {
				case held:
					t.Fatalf("%s was replaced with %s although it fits and is held", name, other)
				case f.Scored().Has(at) == f.Scored().Has(row) && !present.Fresh &&
					!(chosen[other] > q.scoring.Score(&newPass(f, q, nil).Rating, row, true)+p.Spec.MinImprovement):
					t.Fatalf("%s was replaced with %s, which is not better by more than %v", name, other, p.Spec.MinImprovement)
				case !f.Scored().Has(at) && f.Scored().Has(row):
					t.Fatalf("%s has metrics, but was replaced with %s, which has none", name, other)
				}
			}
		}
	})
}

// TestWorstAndNextMerit checks the two merits that say when a decision need not be evaluated again: they must equal
// those of evaluating every cluster.
func TestWorstAndNextMerit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		f := w.Fleet()
		p, present := rollPlacement(d, w)
		q := enginetest.Compile(t, NewQuery, p)
		out := Decide(f, q, NewView(f, q, ledger.Others{}, nil), ledger.Others{}, present, w.Now)
		var worst, next Merit
		chosen, left := 0, 0
		f.Live().Each(func(row int) {
			current := slices.ContainsFunc(present.Decisions, func(x api.Decision) bool { return x.Cluster == f.Name(row) })
			if !Admits(f, q, nil, row, current) {
				return
			}
			merit := MeritOf(f, q, &View{}, ledger.Others{}, row, current && !present.Fresh)
			if slices.ContainsFunc(out.Choices, func(c Choice) bool { return c.Row == row }) {
				if chosen == 0 || merit.Less(worst) {
					worst = merit
				}
				chosen++
				return
			}
			if left == 0 || next.Less(merit) {
				next = merit
			}
			left++
		})
		if out.Worst != worst || out.next != next || out.hasNext != (left > 0) {
			t.Fatalf("worst %+v, next %+v (%t); want %+v, %+v (%d left)", out.Worst, out.next, out.hasNext, worst, next, left)
		}
		if out.Full != (q.Wanted != score.All && chosen >= q.Wanted) {
			t.Fatalf("Full = %t with %d of %d clusters", out.Full, chosen, q.Wanted)
		}
		if chosen > 0 && MeritOf(f, q, &View{}, ledger.Others{}, out.worstRow, slices.ContainsFunc(present.Decisions, func(x api.Decision) bool {
			return x.Cluster == f.Name(out.worstRow)
		}) && !present.Fresh) != worst {
			t.Fatal("WorstRow does not have the worst choice")
		}
	})
}

// TestSettled checks that a result that becomes the present decision stays.
func TestSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		f := w.Fleet()
		p, present := rollPlacement(d, w)
		q := enginetest.Compile(t, NewQuery, p)
		view := NewView(f, q, ledger.Others{}, nil)
		out := Decide(f, q, view, ledger.Others{}, present, w.Now)
		next := Present{ScheduledAt: w.Now, Answered: true, Fresh: d.Chance(2)}
		for _, c := range out.Choices {
			next.Decisions = append(next.Decisions, api.Decision{Cluster: f.Name(c.Row)})
		}
		later := w.Now.Add(time.Hour)
		if again := Decide(f, q, view, ledger.Others{}, next, later); out.kept == "" && !present.Fresh && !next.Fresh && !again.Same {
			t.Fatalf("decided %v, then %v", answerOf(f, out), answerOf(f, again))
		}
	})
}

// TestClassIsShared checks that queries of the same class have the same mask.
func TestClassIsShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		f := w.Fleet()
		p, _ := rollPlacement(d, w)
		other := *p
		other.Metadata.Name, other.Metadata.UID = "other", "other"
		other.Spec.LabelConstraints = slices.Clone(p.Spec.LabelConstraints)
		slices.Reverse(other.Spec.LabelConstraints)
		other.Spec.MetricConstraints = append(slices.Clone(p.Spec.MetricConstraints), p.Spec.MetricConstraints...)
		other.Spec.ResourceRequests = maps.Clone(p.Spec.ResourceRequests)
		for name, amount := range other.Spec.ResourceRequests {
			if amount == "1" {
				other.Spec.ResourceRequests[name] = "1000m"
			}
		}
		other.Spec.Predicates = append(slices.Clone(p.Spec.Predicates), p.Spec.Predicates...)
		other.Spec.Tolerations = append(slices.Clone(p.Spec.Tolerations), p.Spec.Tolerations...)
		for i, x := range other.Spec.Tolerations {
			other.Spec.Tolerations[i].Effect = map[api.TaintEffect]api.TaintEffect{
				"NoExecute": "NoSelect", "NoSchedule": "NoSelectIfNew", "PreferNoSchedule": "PreferNoSelect",
				"NoSelect": "NoExecute", "NoSelectIfNew": "NoSchedule", "PreferNoSelect": "PreferNoSchedule",
			}[x.Effect]
		}
		slices.Reverse(other.Spec.Tolerations)
		slices.Reverse(other.Spec.Predicates)
		other.Spec.ClusterSets = append(slices.Clone(p.Spec.ClusterSets), p.Spec.ClusterSets...)
		other.Spec.NumberOfClusters = new(int64(7))
		q, r := enginetest.Compile(t, NewQuery, p), enginetest.Compile(t, NewQuery, &other)
		if q.Class != r.Class {
			t.Fatalf("classes %q and %q", q.Class, r.Class)
		}
		if !slices.Equal(maskOf(f, q, nil), maskOf(f, r, nil)) {
			t.Fatal("two queries of one class have different masks")
		}
	})
}

// firstDifference shows where two long texts start to differ.
func firstDifference(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	around := func(s string) string { return s[max(at-150, 0):min(at+150, len(s))] }
	return fmt.Sprintf("…%s…, want …%s…", around(got), around(want))
}

// TestTiesFollowTheHash compares the choice among equals with sorting all of them: those that are not demoted first,
// then by hash.
func TestTiesFollowTheHash(t *testing.T) {
	fleets := map[int]*columns.Fleet{}
	for _, n := range []int{1, 63, 64, 65, 300} {
		fleets[n] = benchWorld(n, true).Fleet()
		// A few clusters with metrics rank before all others.
		w := benchWorld(n, true)
		for name, c := range benchWorld(n, false).Clusters {
			if columns.HashText(name)%8 == 0 {
				w.Clusters[name] = c
			}
		}
		fleets[-n] = w.Fleet()
	}
	rapid.Check(t, func(t *rapid.T) {
		f := fleets[rapid.SampledFrom([]int{1, 63, 64, 65, 300, -64, -300}).Draw(t, "clusters")]
		p := benchPlacement(nil, int64(rapid.IntRange(1, 2*f.Len()).Draw(t, "wanted")))
		p.Metadata.Name = fmt.Sprint(rapid.Int().Draw(t, "name"))
		q := enginetest.Compile(t, NewQuery, p)
		v := &View{Mask: maskOf(f, q, nil)}
		share := rapid.IntRange(1, 4).Draw(t, "one in")
		for row := range f.Len() {
			v.Mask.Assign(row, rapid.IntRange(1, share).Draw(t, "admitted") == 1)
		}
		if rapid.Bool().Draw(t, "with demoted") {
			v.demoted = columns.NewBitmap(f.Len())
			for row := range f.Len() {
				v.demoted.Assign(row, rapid.IntRange(0, 2).Draw(t, "demoted") > 0)
			}
		}
		want := v.Mask.Rows()
		slices.SortFunc(want, func(x, y int) int {
			switch a, b := f.Standing(x), f.Standing(y); {
			case b.Less(a):
				return -1
			case a.Less(b):
				return 1
			case v.isDemoted(x) != v.isDemoted(y):
				return first(v.isDemoted(y))
			}
			return first(columns.TieHash(q.seed, f.NameHashes()[x]) < columns.TieHash(q.seed, f.NameHashes()[y]))
		})
		want = want[:min(len(want), q.Wanted)]
		var got []int
		for _, c := range Decide(f, q, v, ledger.Others{}, Present{}, enginetest.Epoch).Choices {
			got = append(got, c.Row)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("chosen rows %v, want %v", got, want)
		}
	})
}

// maskOf returns the set of clusters that the checks admit for a query, ignoring its present decision. It depends only
// on the query's Class.
func maskOf(f *columns.Fleet, q *Query, reserved *ledger.Reservations) columns.Bitmap {
	l := newEvaluation(f, q, reserved)
	return q.Checks.Mask(&l)
}

package placement

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// prioritized is a decision under strategy prioritizers, with the engine's input and the oracle.
type prioritized struct {
	*enginetest.World
	fleet     *columns.Fleet
	placement *api.Placement
	query     *Query
	others    ledger.Others
	present   Present
	oracle    prioritizerOracle
}

func rollPrioritized(t *rapid.T) (enginetest.Dice, prioritized) {
	d, w := enginetest.RollFleet(t)
	f := w.Fleet()
	p, present := rollPlacement(d, w)
	p.Spec.Strategy, p.Spec.Metrics = api.StrategyPrioritizers, nil
	p.Spec.MinImprovement = enginetest.Pick[float64](d, 0, 0, 1, 50)
	p.Spec.PrioritizerPolicy = enginetest.RollPrioritizers(d)
	p.SetDefaults()

	names := append(w.Names(), "gone")
	var elsewhere []string
	for range d(4) {
		for range d(2 * len(names)) {
			elsewhere = append(elsewhere, enginetest.Pick(d, names...))
		}
	}
	reserved, holds := rollHolds(t, d, w, f, p, present)
	x := prioritized{
		World: w, fleet: f, placement: p, query: enginetest.Compile(t, NewQuery, p), present: present,
		oracle: prioritizerOracle{oracle{w, holds}, elsewhere},
	}
	x.others = ledger.Others{Reserved: reserved, Load: x.load(f, present)}
	return d, x
}

// load counts the decisions of the other placements, and the present one.
func (x prioritized) load(f *columns.Fleet, present Present) *ledger.Load {
	load := ledger.NewLoad()
	load.Sync(f, columns.Delta{Rows: liveRows(f)})
	for _, name := range x.oracle.elsewhere {
		load.Add(f, name)
	}
	for _, d := range present.Decisions {
		load.Add(f, d.Cluster)
	}
	return load
}

func liveRows(f *columns.Fleet) []int {
	var rows []int
	f.Live().Each(func(row int) { rows = append(rows, row) })
	return rows
}

func (x prioritized) decide() Outcome {
	return Decide(x.fleet, x.query, NewView(x.fleet, x.query, x.others, nil), x.others, x.present, x.Now)
}

func (x prioritized) String() string {
	wanted := "all"
	if n := x.placement.Spec.NumberOfClusters; n != nil {
		wanted = fmt.Sprint(*n)
	}
	text := fmt.Sprintf("%s clusters by policy %s", wanted, x.placement.Spec.PrioritizerPolicy.Mode)
	for _, c := range x.placement.Spec.PrioritizerPolicy.Configurations {
		text += fmt.Sprintf(", %d x %s %s%s/%s", *c.Weight, c.Type, c.Name, c.ResourceName, c.ScoreName)
	}
	return text + fmt.Sprintf("; present %+v, others %v", x.present, x.oracle.elsewhere)
}

func TestPrioritizersAgreeWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, x := rollPrioritized(t)
		want := x.oracle.decide(x.placement, x.present)
		if got := answerOf(x.fleet, x.decide()); !sameAnswer(got, want) {
			t.Fatalf("%s\ndecided %+v\nwant    %+v", x, got, want)
		}
	})
}

// TestPrioritizersExplainTheDecision checks that the explanation contains the same decision, and gives each cluster
// that fits the oracle's total, in parts that add up.
func TestPrioritizersExplainTheDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, x := rollPrioritized(t)
		out := x.decide()
		explained := Explain(x.fleet, x.query, nil, x.others, x.present, x.Now)
		if outdone := out.kept == "" && x.oracle.outdone(x.placement, x.present); outdone != (explained.kept == keptByBalance) {
			t.Fatalf("%s\nheld by %q, want by balance = %t", x, explained.kept, outdone)
		} else if outdone {
			explained.kept = "" // only in explanations
		}
		if !reflect.DeepEqual(explained.Outcome, out) {
			t.Fatalf("%s\nexplained %+v\ndecided   %+v", x, explained.Outcome, out)
		}
		totals := map[string]float64{}
		for _, c := range x.oracle.contestants(x.placement, x.present) {
			totals[c.cluster.Metadata.Name] = c.total
		}
		e := explained.Render()
		if e.Feasible != len(totals) {
			t.Fatalf("%s\n%d clusters fit, want %d", x, e.Feasible, len(totals))
		}
		for _, c := range e.Candidates {
			total, fits := totals[c.Cluster]
			if fits != (c.Filter == "") {
				t.Fatalf("%s\n%s is rejected by %q (%s), want fits = %t", x, c.Cluster, c.Filter, c.Reason, fits)
			}
			if fits && *c.Score != total {
				t.Fatalf("%s\n%s has score %v from %+v, want %v", x, c.Cluster, *c.Score, c.Scores, total)
			}
			if selected := slices.ContainsFunc(out.Choices, func(y Choice) bool { return x.fleet.Name(y.Row) == c.Cluster }); c.Selected != selected {
				t.Fatalf("%s\n%s: selected is %t, want %t", x, c.Cluster, c.Selected, selected)
			}
		}
		checkScores(t, e)
	})
}

// TestPrioritizersConverge checks that a decision settles while nothing else changes. It may move a few times if the
// decision changes its own scores: by what it no longer reserves, or by leaving a cluster that only it could keep,
// which changes the scale of resources.
func TestPrioritizersConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, x := rollPrioritized(t)
		text := x.String()
		out := x.decide()
		most := 1 + len(x.Clusters)
		if !x.query.Relative() {
			most = 1
		}
		if out.kept == keptByAge {
			most++
		}
		for moves := 0; ; moves++ {
			if out.Same && x.present.Answered && !x.present.Fresh {
				return
			}
			text += fmt.Sprintf("\ndecided %+v", answerOf(x.fleet, out))
			if moves == most {
				t.Fatalf("the decision does not converge: %s", text)
			}
			x.present = Present{ScheduledAt: x.Now.Add(-24 * time.Hour), Answered: true}
			for _, c := range out.Choices {
				x.present.Decisions = append(x.present.Decisions, api.Decision{Cluster: x.fleet.Name(c.Row)})
			}
			x.others.Load = x.load(x.fleet, x.present)
			out = x.decide()
		}
	})
}

// TestPrioritizersOrderDoesNotMatter checks that the order in which clusters were added, the order of the
// configurations, and configurations of weight 0 do not affect the decision.
func TestPrioritizersOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, x := rollPrioritized(t)
		x.others.Reserved = nil
		want := answerOf(x.fleet, x.decide())

		names := x.Names()
		f := &columns.Fleet{}
		for i := range names {
			j := d(i + 1)
			names[i], names[j] = names[j], names[i]
		}
		for _, name := range names {
			f, _ = f.With(columns.Changes{Clusters: map[string]*api.Cluster{name: x.Clusters[name]}}, x.Now)
		}
		f, _ = f.With(x.Changes(), x.Now)

		p := *x.placement
		policy := *p.Spec.PrioritizerPolicy
		p.Spec.PrioritizerPolicy = &policy
		var builtins, rest []api.PrioritizerConfig
		for _, c := range policy.Configurations {
			if c.Type == api.PrioritizerBuiltin {
				builtins = append(builtins, c) // the last one counts, so their order must not change
			} else {
				rest = append(rest, c)
			}
		}
		for i := range rest {
			j := d(i + 1)
			rest[i], rest[j] = rest[j], rest[i]
		}
		rest = append(rest, api.PrioritizerConfig{Type: api.PrioritizerAddon, ResourceName: "speed", ScoreName: "cpu", Weight: new(int64(0))})
		policy.Configurations = append(rest, builtins...)

		other := x
		other.fleet, other.query = f, enginetest.Compile(t, NewQuery, &p)
		other.others = ledger.Others{Load: x.load(f, x.present)}
		if got := answerOf(f, other.decide()); !sameAnswer(got, want) {
			t.Fatalf("%s\ndecided %+v\nwant    %+v", x, got, want)
		}
	})
}

// TestPrioritizersIgnoreWhatDoesNotFit checks that a cluster that no placement may use affects nothing, whatever it
// reports.
func TestPrioritizersIgnoreWhatDoesNotFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, x := rollPrioritized(t)
		want := answerOf(x.fleet, x.decide())
		alien := enginetest.RollCluster(d, "alien", true)
		alien.Spec.Namespace = "elsewhere"
		alien.Spec.Allocatable, alien.Spec.Capacity = api.Quantities{"cpu": "1M", "memory": "1"}, api.Quantities{"cpu": "1M", "memory": "1"}
		changes := columns.Changes{Clusters: map[string]*api.Cluster{"alien": alien}, Scores: map[api.Key]*api.PlacementScore{}}
		for _, resource := range enginetest.ScoreResources {
			s := enginetest.RollScore(d, enginetest.ScoreKey("alien", resource))
			s.Spec.ValidUntil = nil
			changes.Scores[enginetest.ScoreKey("alien", resource)] = s
		}
		f, delta := x.fleet.With(changes, x.Now)
		x.others.Load.Sync(f, delta)
		x.others.Reserved.Sync(f, delta)
		other := x
		other.fleet = f
		if got := answerOf(f, other.decide()); !sameAnswer(got, want) {
			t.Fatalf("%s\ndecided %+v\nwant    %+v", x, got, want)
		}
	})
}

// TestRankingFollows checks that an updated ranking orders clusters like a new one.
func TestRankingFollows(t *testing.T) {
	repaired := 0
	defer func() {
		if repaired == 0 && !t.Failed() {
			t.Error("no ranking was ever repaired in place")
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		d, x := rollPrioritized(t)
		f := x.fleet
		view := NewView(f, x.query, ledger.Others{}, nil)
		for range 1 + d(4) {
			changes, now := enginetest.RollChange(d, x.World, 14)
			if d.Chance(2) { // no cluster is added or removed
				maps.DeleteFunc(changes.Clusters, func(name string, c *api.Cluster) bool { return c == nil || x.Clusters[name] == nil })
			}
			x.Apply(changes, now)
			var delta columns.Delta
			before := f
			f, delta = f.With(changes, now)
			if a, b := before.ByName(), f.ByName(); len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] && len(delta.Rows) > 0 && len(delta.Rows) <= columns.FewRows {
				repaired++
			}
			rows := append(view.Refresh(f, x.query, ledger.Others{}), delta.Rows...)
			slices.Sort(rows)
			UpdateRanking(view.Ranking, f, x.query, view.Mask, slices.Compact(rows))
			fresh := NewView(f, x.query, ledger.Others{}, nil)
			got, want := rankedNames(f, view), rankedNames(f, fresh)
			if !slices.Equal(got, want) {
				t.Fatalf("%s\nranked %v\nwant   %v", x, got, want)
			}
			if got, want := view.Ranking.Order, fresh.Ranking.Order; !slices.Equal(got, want) {
				t.Fatalf("%s\norder of all %v\nwant %v", x, got, want)
			}
			out := Decide(f, x.query, view, ledger.Others{}, x.present, now)
			if want := Decide(f, x.query, fresh, ledger.Others{}, x.present, now); !reflect.DeepEqual(out, want) {
				t.Fatalf("%s\ndecided %+v\nwant    %+v", x, out, want)
			}
		}
	})
}

// rankedNames returns the candidates of a view in the order of its ranking, with their scores.
func rankedNames(f *columns.Fleet, v *View) []seat {
	var out []seat
	for _, row := range v.Ranking.Order {
		if v.Mask.Has(int(row)) {
			out = append(out, seat{f.Name(int(row)), v.Ranking.Score[row]})
		}
	}
	return out
}

// TestBalanceHoldsNothingOfAll: where every cluster that fits is chosen, no other
// could be better. The explanation said that balance held the decision.
func TestBalanceHoldsNothingOfAll(t *testing.T) {
	w := rated(map[string]int64{"a": -100, "b": 100, "c": 100})
	p := byScore("web", 1, api.ModeAdditive)
	p.Spec.NumberOfClusters = nil
	f, present := w.Fleet(), settledOn("a")
	load := ledger.NewLoad()
	load.Sync(f, columns.Delta{Rows: liveRows(f)})
	load.Add(f, "a")
	if e := Explain(f, enginetest.Compile(t, NewQuery, p), nil, ledger.Others{Load: load}, present, f.Now()); e.kept != "" || len(e.Choices) != 3 {
		t.Errorf("%d clusters are chosen, held by %q; want 3, held by nothing", len(e.Choices), e.kept)
	}
}

// rollSpread requests spreading over the label zone or another topology: a label, a claim or a field of clusters.
func rollSpread(d enginetest.Dice, spec *api.PlacementSpec, label, claim, field string) {
	for range 1 + d(2) {
		c := api.SpreadConstraint{TopologyKey: "zone", WhenUnsatisfiable: enginetest.Pick(d, api.DoNotSchedule, api.ScheduleAnyway), MaxSkew: new(int64(1 + d(2)))}
		switch d(4) {
		case 0:
			c.TopologyKey = label
		case 1:
			c.Type, c.TopologyKey = api.SpreadClaim, claim
		case 2:
			c.Type, c.TopologyKey = api.SpreadField, field
		}
		if !slices.ContainsFunc(spec.SpreadConstraints, func(other api.SpreadConstraint) bool { return other.TopologyKey == c.TopologyKey }) {
			spec.SpreadConstraints = append(spec.SpreadConstraints, c)
		}
	}
}

// TestSpreadAgreesWithOracle checks that a new decision follows its spread constraints like the naive choice, except
// that the naive one may get stuck earlier.
func TestSpreadAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, x := rollPrioritized(t)
		x.present.Answered = false
		x.placement.Spec.Migration = new(true)
		spec := &x.placement.Spec
		rollSpread(d, spec, "tier", "version", api.SpreadRegion)
		if d.Chance(2) {
			spec.PrioritizerPolicy.Configurations = append(spec.PrioritizerPolicy.Configurations, api.PrioritizerConfig{
				Name: api.PrioritizerSpread, Weight: new(enginetest.Pick[int64](d, -1, 1, 3)),
			})
		}
		x.placement.SetDefaults()
		x.query = enginetest.Compile(t, NewQuery, x.placement)
		if x.oracle.misconfigured(x.placement) || x.oracle.unread(x.placement, x.present) {
			return // keeps what it has
		}
		fit, c := x.oracle.spreadCase(x.placement, x.present)
		picks, _ := c.naive()
		var want []string
		for _, i := range picks {
			want = append(want, fit[i].cluster.Metadata.Name)
		}
		var got []string
		for _, choice := range x.decide().Choices {
			got = append(got, x.fleet.Name(choice.Row))
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(got) < len(want) || len(got) == len(want) && !slices.Equal(got, want) {
			t.Fatalf("%s\n%+v\nchosen %v\nwant   %v", x, spec.SpreadConstraints, got, want)
		}
	})
}

// TestSpreadNeedsTheBestOfCells: the clusters that the selection is given are enough:
// given all that are admitted, it chooses the same.
func TestSpreadNeedsTheBestOfCells(t *testing.T) {
	spared := 0
	rapid.Check(t, func(t *rapid.T) {
		d, x := rollPrioritized(t)
		spec := &x.placement.Spec
		spec.Predicates, spec.LabelConstraints = nil, nil // usually many
		if spec.NumberOfClusters = new(int64(1 + d(6))); d.Chance(8) {
			spec.NumberOfClusters = new(int64(1 + d(60)))
		}
		rollSpread(d, spec, "tier", "version", enginetest.Pick(d, api.SpreadRegion, api.SpreadZone, api.SpreadProvider))
		if d.Chance(2) {
			spec.PrioritizerPolicy.Configurations = append(spec.PrioritizerPolicy.Configurations, api.PrioritizerConfig{
				Name: api.PrioritizerSpread, Weight: new(enginetest.Pick[int64](d, -1, 1, 3)),
			})
		}
		if d.Chance(3) {
			spec.Strategy, spec.MinImprovement = api.StrategyMetrics, 0
		}
		x.placement.SetDefaults()
		q := enginetest.Compile(t, NewQuery, x.placement)
		v := NewView(x.fleet, q, x.others, nil)
		rows := presentRows(x.fleet, x.present)
		pass := v.decision(x.fleet, q, x.others, rows)
		p := &pass
		current := p.present(rows, x.present, v)
		wanted := min(q.Wanted, x.fleet.Len())
		all, some := p.outsiders(v, current, v.Mask.Count()), p.spreadOutsiders(v, current, wanted)
		if len(some) < len(all) {
			spared++
		}
		for _, held := range []int{0, len(current)} {
			choose := func(list []contender) (chosen []int) {
				list = append(slices.Clone(list), current...)
				p.sort(list)
				var score []float64
				var holds []int
				for i, c := range list {
					score = append(score, c.merit.Score)
					if c.current && len(holds) < min(held, wanted) {
						holds = append(holds, i)
					}
				}
				picks, _ := pickSpread(wanted, holds, score, q.scoring.Traits.Evenness, p.spreadRules(list))
				for _, i := range picks {
					chosen = append(chosen, list[i].row)
				}
				return chosen
			}
			if got, want := choose(some), choose(all); !slices.Equal(got, want) {
				t.Fatalf("%s\n%+v\nfrom %d of %d clusters: chosen %v, from all: %v", x, spec.SpreadConstraints, len(some), len(all), got, want)
			}
		}
	})
	if spared == 0 {
		t.Fatal("no cluster was ever left out")
	}
	t.Logf("clusters were left out %d times", spared)
}

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// rollLawQueries draws the queries of placements, workloads, allocations and guests.
func rollLawQueries(t *testing.T, d enginetest.Dice, n int) []*Query {
	t.Helper()
	var out []*Query
	add := func(q *Query, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		q.Key = enginetest.Owner // the owner's own reservations do not count
		out = append(out, q)
	}
	for range n {
		p := enginetest.RollLawPlacement(d)
		add(Compile(p, d.Chance(8)))
		w := enginetest.RollLawWorkload(d)
		if w.Spec.Allocation != nil {
			add(NewGroupQuery(api.KeyOf(w), &filter.Spec{Namespace: w.Metadata.Namespace, Workload: &w.Spec}))
			continue
		}
		place := &enginetest.RollLawPolicy(d).Spec.Placement
		for i := range place.ClusterAffinities {
			add(NewGroupQuery(api.KeyOf(w), &filter.Spec{
				Namespace: w.Metadata.Namespace, Workload: &w.Spec, Policy: place,
				Tiers: filter.Tiers(&place.ClusterAffinities[i], true), Tolerations: filter.NewTolerations(place.ClusterTolerations),
			}))
		}
	}
	return out
}

// viewed returns what the queries of a class have in common, on several fleets.
func viewed(q *Query, looks []enginetest.Sight) string {
	var b strings.Builder
	fmt.Fprintf(&b, "reads %b ", q.Reads())
	for i := range looks {
		l := &looks[i]
		v := NewView(l.Fleet, q, ledger.Others{Reserved: l.Others.Reserved}, nil)
		fmt.Fprintf(&b, "%x %x %d ", v.Mask, v.demoted, v.Until.Unix())
		if v.Ranking != nil {
			fmt.Fprint(&b, v.Ranking.Order, v.Ranking.Score)
		}
	}
	return b.String()
}

// respelled returns a placement with the same requirements in other words.
func respelled(d enginetest.Dice, p *api.Placement) *api.Placement {
	other := *p
	s := &other.Spec
	mix := func(list []string) []string {
		list = append(slices.Clone(list), list[:d(len(list)+1)]...)
		slices.Reverse(list)
		return list
	}
	s.ClusterNames, s.ExcludeClusters = mix(s.ClusterNames), mix(s.ExcludeClusters)
	s.LabelConstraints, s.MetricConstraints, s.CustomResources, s.ClusterSets = mix(s.LabelConstraints), mix(s.MetricConstraints), mix(s.CustomResources), mix(s.ClusterSets)
	s.KubernetesVersion = strings.ReplaceAll(s.KubernetesVersion, " ", "")
	for i, text := range s.LabelConstraints {
		s.LabelConstraints[i] = strings.Replace(strings.Replace(text, " is not ", " != ", 1), " is ", " = ", 1)
	}
	s.Tolerations = append(slices.Clone(s.Tolerations), s.Tolerations...)
	slices.Reverse(s.Tolerations)
	s.Predicates = append(slices.Clone(s.Predicates), s.Predicates...)
	slices.Reverse(s.Predicates)
	return &other
}

// TestEqualClassesSeeTheSame checks the law of classes: queries of the same class have the same mask, ranking and
// wake-ups, and, if their wording is the same, the same sentences.
func TestEqualClassesSeeTheSame(t *testing.T) {
	d := enginetest.FixedDice(2)
	looks := enginetest.RollReserved(d, 6)
	queries := rollLawQueries(t, d, 200)
	empty := enginetest.NewWorld()
	for range 200 {
		p, _ := rollPlacement(d, empty)
		q, r := enginetest.Compile(t, NewQuery, p), enginetest.Compile(t, NewQuery, respelled(d, p))
		if q.Class != r.Class {
			t.Fatalf("equivalent placements have the classes %q and %q", q.Class, r.Class)
		}
		r.Key = q.Key
		queries = append(queries, q, r)
	}
	view := enginetest.Remembered(func(q *Query) string { return viewed(q, looks) })
	if x, y, found := enginetest.Disagree(queries, func(q *Query) string { return q.Class }, view); found {
		t.Errorf("two queries of class %q have the views\n%s and\n%s", x.Class, view(x), view(y))
	}
	said := enginetest.Remembered(func(q *Query) string {
		var b strings.Builder
		for i := range looks {
			b.WriteString(Sentence(looks[i].Fleet, q, ledger.Others{Reserved: looks[i].Others.Reserved}) + "\n")
		}
		return b.String()
	})
	if x, y, found := enginetest.Disagree(queries, func(q *Query) string { return q.Class + q.Wording() }, said); found {
		t.Errorf("two queries with wording %q have the summaries\n%s and\n%s", x.Wording(), said(x), said(y))
	}
	// The same text in two different filters means two different things.
	a, b := enginetest.NewPlacement("web"), enginetest.NewPlacement("web")
	a.Spec.LabelConstraints = []string{"zone is a"}
	labelled, err := constraint.ParseLabel("zone is a")
	if err != nil {
		t.Fatal(err)
	}
	b.Spec.CustomResources = []string{labelled.Canonical()}
	queries = append(queries, enginetest.Compile(t, NewQuery, a), enginetest.Compile(t, NewQuery, b))
	// Queries that score clusters differently may still have the same requirements.
	for _, name := range enginetest.ScoreNames {
		c := enginetest.NewPlacement("web")
		c.Spec.Strategy, c.Spec.PrioritizerPolicy = api.StrategyPrioritizers, &api.PrioritizerPolicy{
			Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{{Type: api.PrioritizerAddon, ResourceName: "speed", ScoreName: name}},
		}
		queries = append(queries, enginetest.Compile(t, NewQuery, c))
	}
	for _, part := range []string{"terms", "filter", "checks"} {
		key := func(q *Query) string {
			key, _ := enginetest.KeyWithout(part, false, q.writeClass)
			return key
		}
		if _, _, found := enginetest.Disagree(queries, key, view); !found {
			t.Errorf("no case needs %q in the classes", part)
		}
	}
}

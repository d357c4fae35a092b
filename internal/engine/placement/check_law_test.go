package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// rollLawQueries draws what placements, workloads, allocations and guests ask of
// clusters.
func rollLawQueries(t *testing.T, d enginetest.Dice, n int) []*Query {
	t.Helper()
	var out []*Query
	add := func(q *Query, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		q.Key = api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"} // whose reservations do not count
		out = append(out, q)
	}
	empty := enginetest.NewWorld()
	for range n {
		p, _ := rollPlacement(d, empty)
		if d.Chance(2) {
			p.Spec.Predicates = []api.Predicate{enginetest.RollLawPredicate(d)}
		}
		if d.Chance(3) {
			p.Spec.MetricConstraints = []string{enginetest.Pick(d, "load < 5", "load less than 5", "load <= 5", "cost > 0")}
		}
		if d.Chance(3) {
			p.Spec.Strategy = api.StrategyPrioritizers
			p.Spec.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{
				{Type: api.PrioritizerMetric, Name: enginetest.Pick(d, "load", "ghost", "rare"), Weight: ptr[int64](1)},
			}}
		}
		if d.Chance(3) {
			p.Spec.Tolerations = []api.Toleration{enginetest.RollLawToleration(d)}
		}
		if d.Chance(3) {
			p.Spec.LabelConstraints = []string{enginetest.Pick(d, "zone is a", "zone = a", "zone in (a, b)", "zone in (b, a, b)")}
		}
		if d.Chance(3) {
			p.Spec.ResourceRequests = api.Quantities{enginetest.Pick(d, "cpu", "memory"): enginetest.Pick[api.Quantity](d, "1", "1000m", "2")}
		}
		add(Compile(p, d.Chance(8)))
		w := enginetest.RollLawWorkload(d)
		for _, s := range lawSpecs(w, enginetest.RollLawPolicy(d)) {
			add(NewGroupQuery(api.KeyOf(w), s))
		}
	}
	return out
}

// lawSpecs are what a workload asks of clusters: as its policy says, group by group,
// or by itself.
func lawSpecs(w *api.Workload, policy *api.PropagationPolicy) []*filter.Spec {
	if w.Spec.Allocation != nil {
		return []*filter.Spec{{Namespace: w.Metadata.Namespace, Workload: &w.Spec}}
	}
	var specs []*filter.Spec
	place := &policy.Spec.Placement
	for i := range place.ClusterAffinities {
		term := &place.ClusterAffinities[i]
		tiers := []filter.Affinity{filter.NewAffinity(term.AffinityName, &term.ClusterAffinity)}
		for j := range term.OverflowAffinities {
			more := &term.OverflowAffinities[j]
			tiers = append(tiers, filter.NewAffinity(more.AffinityName, &more.ClusterAffinity))
		}
		specs = append(specs, &filter.Spec{
			Namespace: w.Metadata.Namespace, Workload: &w.Spec, Policy: place,
			Tiers: tiers, Tolerations: filter.NewTolerations(place.ClusterTolerations),
		})
	}
	return specs
}

// lawLooks are looks at some fleets, with reservations.
func lawLooks(d enginetest.Dice, n int) []filter.Look {
	looks := make([]filter.Look, n)
	for i := range looks {
		w := enginetest.RollLawWorld(d)
		w.Now = enginetest.Epoch.Add(time.Duration(d(3)) * 40 * time.Second)
		f := w.Fleet()
		reserved := ledger.NewReservations()
		for _, key := range []api.Key{{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}, {Kind: api.KindPlacement, Namespace: "shop", Name: "db"}} {
			for row := range f.Slots() {
				if d.Chance(2) {
					reserved.Hold(f, key, ledger.Needs{{Resource: "cpu", Text: "1", Milli: 1000}}, f.Name(row), enginetest.Epoch.Add(time.Hour))
				}
			}
		}
		looks[i] = newLook(f, &Query{Key: api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}}, reserved)
	}
	return looks
}

// answers is all that a check answers, whoever asks: who is admitted, for how long,
// and what that depends on.
func answers(check filter.Check, looks []filter.Look) string {
	var b strings.Builder
	fmt.Fprintf(&b, "reads %b ", check.Reads())
	for i := range looks {
		l := &looks[i]
		keep := l.Fleet.Live().Grown(l.Fleet.Slots())
		check.Apply(l, keep)
		fmt.Fprintf(&b, "%x ", keep)
		for row := range l.Fleet.Slots() {
			fmt.Fprintf(&b, "%t", check.Admits(l, row, true))
			if e, ok := check.(filter.Expiring); ok {
				fmt.Fprint(&b, e.Until(l, row, false).Unix(), e.Until(l, row, true).Unix())
			}
		}
	}
	return b.String()
}

// told is all that a check tells.
func told(check filter.Check, looks []filter.Look) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q ", check.On(), check.Blame(1), check.Blame(2))
	for i := range looks {
		l := &looks[i]
		rejected := func(yield func(int) bool) {
			for row := range l.Fleet.Slots() {
				if !check.Admits(l, row, false) && !yield(row) {
					return
				}
			}
		}
		for row := range rejected {
			fmt.Fprintf(&b, "%q ", check.Reason(l, row))
		}
		if c, ok := check.(filter.Causer); ok {
			fmt.Fprintf(&b, "%+v ", c.Causes(l, rejected))
		}
	}
	return b.String()
}

// lawPool are checks by filter.
func lawPool(queries []*Query) map[string][]filter.Check {
	pool := map[string][]filter.Check{}
	for _, q := range queries {
		for _, check := range q.Checks.All {
			pool[check.Name()] = append(pool[check.Name()], check)
		}
	}
	return pool
}

// keyed is the key of a check, one part of it left out unless that is "", and the
// names of all its parts.
func keyed(check interface{ Key(k *filter.Key) }, words bool, leaveOut string) (key string, parts map[string]bool) {
	parts = map[string]bool{}
	k := filter.NewKey(words)
	k.LeaveOut = func(part string) bool {
		parts[part] = true
		return part == leaveOut
	}
	check.Key(&k)
	return k.String(), parts
}

// TestEqualKeysAnswerEqually is the law that classes rest on: checks of one key
// admit the same clusters, for as long, and read the same; with the same words they
// tell the same. And every part of every key is needed: without it, two checks of
// one key answer, or tell, something else. A check that is added to the list is
// held to it without a line here, as long as the dice draw it.
func TestEqualKeysAnswerEqually(t *testing.T) {
	d := enginetest.FixedDice(1)
	looks := lawLooks(d, 8)
	pool := lawPool(rollLawQueries(t, d, 500))
	for _, each := range filter.All {
		list := pool[each.Name()]
		if len(list) < 50 {
			t.Errorf("%s: only %d checks were drawn", each.Name(), len(list))
			continue
		}
		answer := enginetest.Remembered(func(c filter.Check) string { return answers(c, looks) })
		tell := enginetest.Remembered(func(c filter.Check) string { return told(c, looks) })
		parts := map[bool]map[string]bool{false: {}, true: {}}
		for _, words := range []bool{false, true} {
			says := map[bool]func(filter.Check) string{false: answer, true: tell}[words]
			key := func(c filter.Check) string {
				key, has := keyed(c, words, "")
				maps.Copy(parts[words], has)
				return key
			}
			if x, y, found := enginetest.Disagree(list, key, says); found {
				t.Errorf("%s: two checks of one key (words: %t) differ:\n%T%+v\n%T%+v", each.Name(), words, x, x, y, y)
			}
		}
		for part := range parts[true] {
			words := !parts[false][part] // it changes no answer, only how it is put
			says := map[bool]func(filter.Check) string{false: answer, true: tell}[words]
			key := func(c filter.Check) string {
				key, _ := keyed(c, words, part)
				return key
			}
			if _, _, found := enginetest.Disagree(list, key, says); !found {
				t.Errorf("%s: nothing is missed where %q is left out of the keys", each.Name(), part)
			}
		}
	}
}

// viewed is what queries of a class have in common, as of some fleets.
func viewed(q *Query, looks []filter.Look) string {
	var b strings.Builder
	fmt.Fprintf(&b, "reads %b ", q.Reads())
	for i := range looks {
		l := &looks[i]
		v := NewView(l.Fleet, q, ledger.Others{Reserved: l.Reserved}, nil)
		fmt.Fprintf(&b, "%x %x %d ", v.Mask, v.Demoted, v.Until.Unix())
		if v.Ranking != nil {
			fmt.Fprint(&b, v.Ranking.Order, v.Ranking.Score)
		}
	}
	return b.String()
}

// respelled is a placement that asks for the same in other words.
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

// TestEqualClassesSeeTheSame is the law of classes: equal class, equal mask, equal
// ranking and equal wake-ups; and of the same wording, equal sentences.
func TestEqualClassesSeeTheSame(t *testing.T) {
	d := enginetest.FixedDice(2)
	looks := lawLooks(d, 6)
	queries := rollLawQueries(t, d, 200)
	empty := enginetest.NewWorld()
	for range 200 {
		p, _ := rollPlacement(d, empty)
		q, r := compile(t, p), compile(t, respelled(d, p))
		if q.Class != r.Class {
			t.Fatalf("what asks for the same has the classes %q and %q", q.Class, r.Class)
		}
		r.Key = q.Key
		queries = append(queries, q, r)
	}
	view := enginetest.Remembered(func(q *Query) string { return viewed(q, looks) })
	if x, y, found := enginetest.Disagree(queries, func(q *Query) string { return q.Class }, view); found {
		t.Errorf("two queries of class %q see\n%s and\n%s", x.Class, view(x), view(y))
	}
	said := enginetest.Remembered(func(q *Query) string {
		var b strings.Builder
		for i := range looks {
			b.WriteString(Fits(looks[i].Fleet, q, ledger.Others{Reserved: looks[i].Reserved}) + "\n")
		}
		return b.String()
	})
	if x, y, found := enginetest.Disagree(queries, func(q *Query) string { return q.Class + q.Wording() }, said); found {
		t.Errorf("two queries of wording %q are told\n%s and\n%s", x.Wording(), said(x), said(y))
	}
	// A text that is asked for by one filter is not what another asks for.
	a, b := enginetest.NewPlacement("web"), enginetest.NewPlacement("web")
	a.Spec.LabelConstraints = []string{"zone is a"}
	labelled, err := constraint.ParseLabel("zone is a")
	if err != nil {
		t.Fatal(err)
	}
	b.Spec.CustomResources = []string{labelled.Canonical()}
	queries = append(queries, compile(t, a), compile(t, b))
	// What rates clusters differently may ask for the same.
	for _, name := range enginetest.ScoreNames {
		c := enginetest.NewPlacement("web")
		c.Spec.Strategy, c.Spec.PrioritizerPolicy = api.StrategyPrioritizers, &api.PrioritizerPolicy{
			Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{{Type: api.PrioritizerAddon, ResourceName: "speed", ScoreName: name}},
		}
		queries = append(queries, compile(t, c))
	}
	for _, part := range []string{"terms", "filter", "checks"} {
		key := func(q *Query) string {
			k := filter.NewKey(false)
			k.LeaveOut = func(one string) bool { return one == part }
			q.writeClass(&k)
			return k.String()
		}
		if _, _, found := enginetest.Disagree(queries, key, view); !found {
			t.Errorf("nothing is missed where %q is left out of the classes", part)
		}
	}
}

// TestChecksReadWhatTheySay: the answer of a check about a cluster changes only with
// an aspect that it says it reads, and it reads all that it says: of every aspect
// there is a change that nothing else would have told of.
func TestChecksReadWhatTheySay(t *testing.T) {
	d := enginetest.FixedDice(3)
	pool := lawPool(rollLawQueries(t, d, 150))
	type witness struct {
		filter string
		aspect columns.Aspects
	}
	seen := map[witness]bool{}
	declared := map[string]columns.Aspects{}
	admits := func(c filter.Check, l *filter.Look, row int) [2]bool {
		return [2]bool{c.Admits(l, row, false), c.Admits(l, row, true)}
	}
	// judge compares what a check says before and after, where all that changed
	// concerns aspects of it.
	judge := func(c filter.Check, before, after *filter.Look, concerned func(row int, reads columns.Aspects) bool, fleet columns.Aspects) {
		t.Helper()
		reads := c.Reads()
		declared[c.Name()] |= reads
		for row := range before.Fleet.Slots() {
			if row >= after.Fleet.Slots() || !before.Fleet.Live().Has(row) || !after.Fleet.Live().Has(row) ||
				admits(c, before, row) == admits(c, after, row) {
				continue
			}
			heard := func(reads columns.Aspects) bool { return concerned(row, reads) || fleet.Any(reads) }
			if !heard(reads) {
				t.Fatalf("%s %q about %s: it changes with something that it says it does not read", c.Name(), c.On(), before.Fleet.Name(row))
			}
			for left := reads; left != 0; left &= left - 1 {
				if aspect := left &^ (left - 1); !heard(reads &^ aspect) {
					seen[witness{c.Name(), aspect}] = true
				}
			}
		}
	}
	// unshown is a filter and one of the aspects that it says it reads of which no
	// change was seen to matter.
	unshown := func() (string, columns.Aspects) {
		for _, filter := range filter.All {
			for left := declared[filter.Name()]; left != 0; left &= left - 1 {
				if aspect := left &^ (left - 1); !seen[witness{filter.Name(), aspect}] {
					return filter.Name(), aspect
				}
			}
		}
		return "", 0
	}
	shown := func() bool { _, aspect := unshown(); return aspect == 0 }
	// What is rare takes longer to be drawn.
	for round := 0; round < 40 || round < 400 && !shown(); round++ {
		w := enginetest.RollLawWorld(d)
		f := w.Fleet()
		for range 60 {
			changes := enginetest.RollLawStep(d, w)
			w.Apply(changes, w.Now)
			g, delta := f.With(changes, w.Now)
			before, after := newLook(f, &Query{}, nil), newLook(g, &Query{}, nil)
			for _, filter := range filter.All {
				list := pool[filter.Name()]
				for range 12 {
					c := enginetest.Pick(d, list...)
					judge(c, &before, &after, delta.ConcernsRow, delta.Fleet)
					// What stands in conditions, and is no answer about a cluster.
					if delta.Fleet != 0 && fleetwide(c, f) != fleetwide(c, g) {
						if !delta.Fleet.Any(c.Reads()) {
							t.Fatalf("%s %q does not read %b", c.Name(), c.On(), delta.Fleet)
						}
						seen[witness{c.Name(), delta.Fleet & c.Reads()}] = true
					}
				}
			}
			f = g
		}
		// Reservations alone, and time alone: of a fleet without metrics and scores,
		// which time changes, too.
		lasting := w.Changes()
		lasting.Metrics, lasting.Scores = nil, nil
		early, _ := (&columns.Fleet{}).With(lasting, f.Now())
		late, _ := early.With(columns.Changes{}, f.Now().Add(time.Duration(30+d(60))*time.Second))
		reserved := ledger.NewReservations()
		for row := range f.Slots() {
			reserved.Hold(f, api.Key{Name: "other"}, ledger.Needs{{Resource: "cpu", Text: "1", Milli: 1000}, {Resource: "memory", Text: "1Gi", Milli: 1 << 40}}, f.Name(row), enginetest.Epoch.Add(time.Hour))
		}
		free, held := newLook(f, &Query{}, nil), newLook(f, &Query{}, reserved)
		before, after := newLook(early, &Query{}, nil), newLook(late, &Query{}, nil)
		for _, filter := range filter.All {
			for _, c := range pool[filter.Name()] {
				none := func(int, columns.Aspects) bool { return false }
				judge(c, &free, &held, none, columns.Reserved)
				judge(c, &before, &after, none, columns.Clock)
			}
		}
	}
	if name, aspect := unshown(); aspect != 0 {
		t.Errorf("%s says that it reads aspect %b, and nothing shows it", name, aspect)
	}
}

// fleetwide is what a check says of the fleet as a whole.
func fleetwide(c filter.Check, f *columns.Fleet) string {
	switch c := c.(type) {
	case *filter.MetricConstraint:
		return fmt.Sprint(f.HasMetric(c.Is.Name()))
	case *filter.InSets:
		return fmt.Sprint(c.Usable(f))
	}
	return ""
}

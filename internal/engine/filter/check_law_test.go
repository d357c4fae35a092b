package filter

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// specOf returns a placement's requirements on clusters.
func specOf(p *api.Placement) *Spec {
	s := &Spec{Namespace: p.Metadata.Namespace, Placement: &p.Spec, Tolerations: NewTolerations(p.Spec.Tolerations)}
	if policy := p.Spec.PrioritizerPolicy; policy != nil {
		for _, c := range policy.Configurations {
			if c.Type == api.PrioritizerMetric {
				s.Rated = append(s.Rated, c.Name)
			}
		}
	}
	return s
}

// rollSpecs draws the requirements of placements, workloads and allocations.
func rollSpecs(d enginetest.Dice, n int) []*Spec {
	var out []*Spec
	for range n {
		p := enginetest.RollLawPlacement(d)
		s := specOf(p)
		s.TakesFailing = d.Chance(8)
		out = append(out, s)
		w := enginetest.RollLawWorkload(d)
		place := &enginetest.RollLawPolicy(d).Spec.Placement
		if w.Spec.Allocation != nil {
			out = append(out, &Spec{Namespace: w.Metadata.Namespace, Workload: &w.Spec})
			continue
		}
		for i := range place.ClusterAffinities {
			out = append(out, &Spec{
				Namespace: w.Metadata.Namespace, Workload: &w.Spec, Policy: place,
				Tiers: Tiers(&place.ClusterAffinities[i], true), Tolerations: NewTolerations(place.ClusterTolerations),
			})
		}
	}
	return out
}

// lawPool returns drawn checks by filter.
func lawPool(t *testing.T, d enginetest.Dice, n int) map[string][]Check {
	t.Helper()
	pool := map[string][]Check{}
	for _, s := range rollSpecs(d, n) {
		c, err := CompileChecks(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range c.All {
			pool[check.Name()] = append(pool[check.Name()], check)
		}
	}
	return pool
}

// newEvaluation returns one with scratch space.
func newEvaluation(f *columns.Fleet, reserved *ledger.Reservations) Evaluation {
	l := NewEvaluation(f, reserved, &enginetest.Owner)
	l.Writable()
	return l
}

// lawLooks returns evaluations of several fleets, with reservations.
func lawLooks(d enginetest.Dice, n int) []Evaluation {
	var looks []Evaluation
	for _, s := range enginetest.RollReserved(d, n) {
		looks = append(looks, newEvaluation(s.Fleet, s.Others.Reserved))
	}
	return looks
}

// answers returns everything that a check decides, for any caller: which clusters it admits, until when, and what that
// depends on.
func answers(check Check, looks []Evaluation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "reads %b ", check.Reads())
	for i := range looks {
		l := &looks[i]
		keep := l.Fleet.Live().Grown(l.Fleet.Slots())
		check.Apply(l, keep)
		fmt.Fprintf(&b, "%x ", keep)
		for row := range l.Fleet.Slots() {
			fmt.Fprintf(&b, "%t", check.Admits(l, row, true))
			if e, ok := check.(expiring); ok {
				fmt.Fprint(&b, e.Until(l, row, false).Unix(), e.Until(l, row, true).Unix())
			}
		}
	}
	return b.String()
}

// told returns everything that a check says in explanations.
func told(check Check, looks []Evaluation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q ", check.On(), check.Rejection(1), check.Rejection(2))
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
		if c, ok := check.(Causer); ok {
			fmt.Fprintf(&b, "%+v ", c.Causes(l, rejected))
		}
	}
	return b.String()
}

// TestEqualKeysAnswerEqually checks the law that classes rely on: checks with the same key admit the same clusters, for
// the same time, and read the same facts. If their wording is the same too, they give the same explanations. Every part
// of every key is needed: without it, two checks with the same key would differ. A new check is covered without a
// change here, as long as the generators draw it.
func TestEqualKeysAnswerEqually(t *testing.T) {
	d := enginetest.FixedDice(1)
	looks := lawLooks(d, 8)
	pool := lawPool(t, d, 500)
	for _, each := range filters {
		list := pool[each.Name()]
		if len(list) < 50 {
			t.Errorf("%s: only %d checks were drawn", each.Name(), len(list))
			continue
		}
		answer := enginetest.Remembered(func(c Check) string { return answers(c, looks) })
		tell := enginetest.Remembered(func(c Check) string { return told(c, looks) })
		parts := map[bool]map[string]bool{false: {}, true: {}} // parts of the keys, and parts of those with wording
		for _, words := range []bool{false, true} {
			says := map[bool]func(Check) string{false: answer, true: tell}[words]
			key := func(c Check) string {
				key, has := enginetest.KeyWithout("-", words, c.Key)
				maps.Copy(parts[words], has)
				return key
			}
			if x, y, found := enginetest.Disagree(list, key, says); found {
				t.Errorf("%s: two checks with the same key (with wording: %t) differ:\n%T%+v\n%T%+v", each.Name(), words, x, x, y, y)
			}
		}
		all := maps.Clone(parts[false])
		maps.Copy(all, parts[true])
		for part := range all {
			words := !parts[false][part] // it affects only the wording
			says := map[bool]func(Check) string{false: answer, true: tell}[words]
			key := func(c Check) string {
				key, _ := enginetest.KeyWithout(part, words, c.Key)
				return key
			}
			if _, _, found := enginetest.Disagree(list, key, says); !found {
				t.Errorf("%s: no case needs %q in the keys", each.Name(), part)
			}
		}
	}
}

// TestChecksDeclareTheirReads checks that a check's answer about a cluster changes only with aspects that it declares
// to read, and that every declared aspect is needed: for each there is a change that no other aspect would have
// reported.
func TestChecksDeclareTheirReads(t *testing.T) {
	d := enginetest.FixedDice(3)
	pool := lawPool(t, d, 150)
	type witness struct {
		filter string
		aspect columns.Aspects
	}
	seen := map[witness]bool{}
	declared := map[string]columns.Aspects{}
	admits := func(c Check, l *Evaluation, row int) [2]bool {
		return [2]bool{c.Admits(l, row, false), c.Admits(l, row, true)}
	}
	// judge compares a check before and after changes to given aspects.
	judge := func(c Check, before, after *Evaluation, concerned func(row int, reads columns.Aspects) bool, fleet columns.Aspects) {
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
				t.Fatalf("%s %q on %s: the result changed with something that the check does not declare to read", c.Name(), c.On(), before.Fleet.Name(row))
			}
			for aspect := range enginetest.EachAspect(reads) {
				if !heard(reads &^ aspect) {
					seen[witness{c.Name(), aspect}] = true
				}
			}
		}
	}
	// unshown returns a filter and one of its declared aspects for which no change has mattered yet.
	unshown := func() (string, columns.Aspects) {
		for _, filter := range filters {
			for aspect := range enginetest.EachAspect(declared[filter.Name()]) {
				if !seen[witness{filter.Name(), aspect}] {
					return filter.Name(), aspect
				}
			}
		}
		return "", 0
	}
	shown := func() bool { _, aspect := unshown(); return aspect == 0 }
	// Rare cases take more rounds.
	for round := 0; round < 40 || round < 400 && !shown(); round++ {
		w := enginetest.RollLawWorld(d)
		f := w.Fleet()
		for range 60 {
			changes := enginetest.RollLawStep(d, w)
			w.Apply(changes, w.Now)
			g, delta := f.With(changes, w.Now)
			before, after := newEvaluation(f, nil), newEvaluation(g, nil)
			for _, filter := range filters {
				list := pool[filter.Name()]
				for range 12 {
					c := enginetest.Pick(d, list...)
					judge(c, &before, &after, delta.ConcernsRow, delta.Fleet)
					// Answers that appear in conditions and are not about one cluster.
					if delta.Fleet != 0 && fleetwide(c, f) != fleetwide(c, g) {
						if !delta.Fleet.Any(c.Reads()) {
							t.Fatalf("%s %q does not declare that it reads %b", c.Name(), c.On(), delta.Fleet)
						}
						seen[witness{c.Name(), delta.Fleet & c.Reads()}] = true
					}
				}
			}
			f = g
		}
		// Change only reservations, and let only time pass. The fleet has no metrics and scores, because time changes
		// these, too.
		lasting := w.Changes()
		lasting.Metrics, lasting.Scores = nil, nil
		early, _ := (&columns.Fleet{}).With(lasting, f.Now())
		late, _ := early.With(columns.Changes{}, f.Now().Add(time.Duration(30+d(60))*time.Second))
		reserved := ledger.NewReservations()
		for row := range f.Slots() {
			reserved.Hold(f, api.Key{Name: "other"}, ledger.Needs{{Resource: "cpu", Text: "1", Milli: amount.Unit}, {Resource: "memory", Text: "1Gi", Milli: amount.Of(1 << 40)}}, f.Name(row), enginetest.Epoch.Add(time.Hour))
		}
		free, held := newEvaluation(f, nil), newEvaluation(f, reserved)
		before, after := newEvaluation(early, nil), newEvaluation(late, nil)
		for _, filter := range filters {
			for _, c := range pool[filter.Name()] {
				none := func(int, columns.Aspects) bool { return false }
				judge(c, &free, &held, none, columns.Reserved)
				judge(c, &before, &after, none, columns.Clock)
			}
		}
	}
	if name, aspect := unshown(); aspect != 0 {
		t.Errorf("%s declares that it reads aspect %b, but no case needs it", name, aspect)
	}
}

// fleetwide returns what a check says about the fleet as a whole.
func fleetwide(c Check, f *columns.Fleet) string {
	switch c := c.(type) {
	case Naming:
		return fmt.Sprint(f.HasMetric(c.Metric()))
	case Confining:
		return fmt.Sprint(c.Usable(f))
	}
	return ""
}

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// taints keeps a placement off clusters with taints that it does not tolerate,
// and ends its decision for those whose effect says so. The taints that the
// server puts on a cluster that is not online are for the state filter to judge.
type taints struct{}

func (taints) Name() string          { return "taints" }
func (taints) Grounds(*Query) int    { return 1 }
func (taints) On(*Query, int) string { return "" }
func (taints) Blame(_ *Query, _, n int) string {
	return plural(n, "has a taint that is not tolerated", "have taints that are not tolerated")
}

func (f taints) Apply(p *Pass, ground int, keep Bitmap) {
	for t, rows := range p.fleet.taints {
		if t.effect == api.EffectPreferNoSelect {
			continue
		}
		switch tolerance := p.query.tolerance(rowTaint{taint: t}); {
		case tolerance.by == nil && !api.AutomaticTaint(t.key):
			rows.andNotInto(keep)
			continue
		case tolerance.forever:
			continue
		}
		rows.each(func(row int) {
			if keep.Has(row) && !f.Admits(p, ground, row, false) {
				keep.clear(row)
			}
		})
	}
	p.expireTaints(keep)
}

// expireTaints notes when the first toleration runs out that keeps a cluster in.
func (p *Pass) expireTaints(keep Bitmap) {
	if !p.query.HasTolerationSeconds() {
		return
	}
	for t, rows := range p.fleet.taints {
		if t.effect == api.EffectPreferNoSelect {
			continue
		}
		rows.each(func(row int) {
			if keep.Has(row) {
				p.expires(p.tolerated(row))
			}
		})
	}
}

func (taints) Admits(p *Pass, _, row int, current bool) bool {
	for _, t := range p.fleet.rows[row].taints {
		if !p.judgedByState(t, row) && !p.passes(t, current) {
			return false
		}
	}
	return true
}

// judgedByState reports whether a taint says no more than that the cluster is
// not online.
func (p *Pass) judgedByState(t rowTaint, row int) bool {
	return api.AutomaticTaint(t.key) && !p.fleet.online.Has(row)
}

// offending is the position of the taint that keeps a cluster out: one that
// keeps everybody out before one that keeps only newcomers out.
func (p *Pass) offending(row int) (int, bool) {
	for _, current := range []bool{true, false} {
		for i, t := range p.fleet.rows[row].taints {
			if !p.judgedByState(t, row) && !p.passes(t, current) {
				return i, true
			}
		}
	}
	return 0, false
}

func (taints) Reason(p *Pass, _, row int) string {
	i, ok := p.offending(row)
	if !ok {
		return ""
	}
	return p.describeTaint(row, i)
}

// describeTaint says how a taint that is not tolerated came to be so. Its effect
// is spelled as in the cluster.
func (p *Pass) describeTaint(row, i int) string {
	t := p.fleet.rows[row].taints[i]
	shown := t.taint
	if list := p.fleet.rows[row].cluster.Taints(); i < len(list) {
		shown.effect = list[i].Effect
	}
	since := ""
	if !t.since.IsZero() {
		since = "since " + t.since.UTC().Format(time.RFC3339)
	}
	tolerance := p.query.tolerance(t)
	switch {
	case tolerance.ran(t.since) && since != "":
		return fmt.Sprintf("taint %s was tolerated until %s (there %s, toleration %s)",
			shown, tolerance.end.UTC().Format(time.RFC3339), since, tolerance.by)
	case tolerance.ran(t.since):
		return fmt.Sprintf("taint %s is no longer tolerated: it is not known since when it is there (toleration %s)", shown, tolerance.by)
	case since != "":
		return fmt.Sprintf("taint %s is not tolerated (there %s)", shown, since)
	}
	return fmt.Sprintf("taint %s is not tolerated", shown)
}

// Causes counts the rejected clusters by the taint that keeps them out.
func (taints) Causes(p *Pass, rejected func(yield func(row int) bool)) []Cause {
	counts := map[taint]int{}
	for row := range rejected {
		if i, ok := p.offending(row); ok {
			counts[p.fleet.rows[row].taints[i].taint]++
		}
	}
	out := make([]Cause, 0, len(counts))
	for t, n := range counts {
		out = append(out, Cause{On: t.String(), Count: n})
	}
	slices.SortFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.On, b.On))
	})
	return out
}

// Several implements pluralCauser: of two taints, tolerating one is not enough.
func (taints) Several(p *Pass, row int, current bool) bool {
	n := 0
	for _, t := range p.fleet.rows[row].taints {
		if !p.judgedByState(t, row) && !p.passes(t, current) {
			n++
		}
	}
	return n > 1
}

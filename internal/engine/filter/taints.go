package filter

import (
	"cmp"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// taints keeps a placement off clusters with taints that it does not tolerate, and ends its
// decision for clusters whose taint effect requires it. Taints that the server adds to clusters
// that are not online are handled by the state filter.
type taints struct{}

func (taints) Name() string { return "taints" }

func (taints) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.Tolerations == &noTolerations {
		return append(made, toleratesNone), nil
	}
	return append(made, &toleratesTaints{Tolerations: s.Tolerations}), nil
}

// toleratesNone is the shared check without tolerations.
var toleratesNone = &toleratesTaints{Tolerations: &noTolerations}

// toleratesTaints requires that all taints of a cluster are tolerated.
type toleratesTaints struct {
	taints
	*Tolerations
}

func (c *toleratesTaints) Key(k key.Writer)       { c.key(k) }
func (c *toleratesTaints) Reads() columns.Aspects { return columns.Online | c.reads() }
func (c *toleratesTaints) On() string             { return "" }

func (c *toleratesTaints) Rejection(n int) string {
	return Plural(n, "has a taint that is not tolerated", "have taints that are not tolerated")
}

func (c *toleratesTaints) Apply(l *Evaluation, keep columns.Bitmap) {
	for t, rows := range l.Fleet.Taints() {
		if t.Effect == api.EffectPreferNoSelect {
			continue
		}
		switch tolerance := c.tolerance(columns.RowTaint{Taint: t}); {
		case tolerance.by == nil && !api.AutomaticTaint(t.Key):
			rows.AndNotInto(keep)
			continue
		case tolerance.forever:
			continue
		}
		rows.Each(func(row int) {
			if keep.Has(row) && !c.Admits(l, row, false) {
				keep.Clear(row)
			}
		})
	}
	c.expire(l, keep)
}

// expire records when the first toleration that admits a cluster in keep expires.
func (c *toleratesTaints) expire(l *Evaluation, keep columns.Bitmap) {
	if !c.runOut() {
		return
	}
	for t, rows := range l.Fleet.Taints() {
		if t.Effect == api.EffectPreferNoSelect {
			continue
		}
		rows.Each(func(row int) {
			if keep.Has(row) {
				l.expires(c.Until(l, row, false))
			}
		})
	}
}

func (c *toleratesTaints) Admits(l *Evaluation, row int, current bool) bool {
	for _, t := range l.Fleet.Rows()[row].Taints {
		if !judgedByState(l.Fleet, t, row) && !c.passes(l.Fleet, t, current) {
			return false
		}
	}
	return true
}

// Offline implements Evicting.
func (c *toleratesTaints) Offline() bool { return false }

// Until implements expiring.
func (c *toleratesTaints) Until(l *Evaluation, row int, chosen bool) time.Time {
	return c.firstEnd(l.Fleet, row, chosen, func(t columns.RowTaint) bool { return !judgedByState(l.Fleet, t, row) })
}

// judgedByState reports whether a taint only says that the cluster is not online.
func judgedByState(f *columns.Fleet, t columns.RowTaint, row int) bool {
	return api.AutomaticTaint(t.Key) && !f.Online().Has(row)
}

// offending returns the position of the taint that excludes a cluster. A taint that excludes every
// decision precedes one that excludes only new ones.
func (c *toleratesTaints) offending(f *columns.Fleet, row int) (int, bool) {
	for _, current := range []bool{true, false} {
		for i, t := range f.Rows()[row].Taints {
			if !judgedByState(f, t, row) && !c.passes(f, t, current) {
				return i, true
			}
		}
	}
	return 0, false
}

func (c *toleratesTaints) Reason(l *Evaluation, row int) string {
	i, ok := c.offending(l.Fleet, row)
	if !ok {
		return ""
	}
	return c.describe(l.Fleet, row, i)
}

// Causes counts the rejected clusters by the taint that excludes them.
func (c *toleratesTaints) Causes(l *Evaluation, rejected func(yield func(row int) bool)) []Cause {
	counts := map[columns.Taint]int{}
	for row := range rejected {
		if i, ok := c.offending(l.Fleet, row); ok {
			counts[l.Fleet.Rows()[row].Taints[i].Taint]++
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

// Several implements Causer: with two taints, tolerating one is not enough.
func (c *toleratesTaints) Several(l *Evaluation, row int, current bool) bool {
	n := 0
	for _, t := range l.Fleet.Rows()[row].Taints {
		if !judgedByState(l.Fleet, t, row) && !c.passes(l.Fleet, t, current) {
			n++
		}
	}
	return n > 1
}

package engine

import (
	"math"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// tolerance says how a query takes a taint of a cluster.
type tolerance struct {
	// by is the toleration that tolerates it longest, nil where none ever does.
	by *api.Toleration
	// forever says that it never runs out, else end is when it does.
	forever bool
	end     time.Time
}

// holds reports whether the taint is tolerated at a moment.
func (t tolerance) holds(now time.Time) bool {
	return t.by != nil && (t.forever || now.Before(t.end))
}

// ran reports whether the taint was tolerated for a time after it was there.
func (t tolerance) ran(since time.Time) bool { return t.by != nil && t.end.After(since) }

// maxTolerationSeconds is what fits a duration, 292 years; more is for ever.
const maxTolerationSeconds = int64(math.MaxInt64 / time.Second)

// tolerance finds the toleration that lasts longest. toleration_seconds count
// from time_added whatever their sign: with 0 a taint is tolerated until a
// time_added that lies ahead, and not from then on.
func (q *Query) tolerance(t rowTaint) tolerance {
	var best tolerance
	for i := range q.tolerations {
		x := &q.tolerations[i]
		if !x.Matches(t.key, t.value, t.effect) {
			continue
		}
		if x.TolerationSeconds == nil || *x.TolerationSeconds > maxTolerationSeconds {
			return tolerance{by: x, forever: true}
		}
		if end := t.since.Add(time.Duration(max(*x.TolerationSeconds, -maxTolerationSeconds)) * time.Second); best.by == nil || end.After(best.end) {
			best = tolerance{by: x, end: end}
		}
	}
	return best
}

// passes reports whether a taint lets the placement onto the cluster now.
func (p *Pass) passes(t rowTaint, current bool) bool {
	switch {
	case t.effect == api.EffectPreferNoSelect:
		return true
	case t.effect == api.EffectNoSelectIfNew && current:
		return true
	}
	return p.query.tolerance(t).holds(p.fleet.now)
}

// tolerated is the first moment at which a toleration of one of the row's taints
// runs out, zero if none does.
func (p *Pass) tolerated(row int) time.Time { return p.firstEnd(row, false) }

// stays is the first moment at which a toleration runs out that a decision for
// the row rests on, zero if none does. NoSelectIfNew ends no decision.
func (p *Pass) stays(row int) time.Time { return p.firstEnd(row, true) }

func (p *Pass) firstEnd(row int, chosen bool) time.Time {
	var first time.Time
	if len(p.query.tolerations) == 0 {
		return first
	}
	for _, t := range p.fleet.rows[row].taints {
		if t.effect == api.EffectPreferNoSelect || (chosen && t.effect == api.EffectNoSelectIfNew) {
			continue
		}
		end := p.query.tolerance(t).end
		if end.After(p.fleet.now) && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// expires notes a moment at which time alone takes out a cluster.
func (p *Pass) expires(at time.Time) {
	if !at.IsZero() && (p.until.IsZero() || at.Before(p.until)) {
		p.until = at
	}
}

// avoids reports whether a taint only ranks clusters last, and does so for the
// query; for how long a toleration lasts does not matter then.
func (q *Query) avoids(t taint) bool {
	if t.effect != api.EffectPreferNoSelect {
		return false
	}
	for i := range q.tolerations {
		if q.tolerations[i].Matches(t.key, t.value, t.effect) {
			return false
		}
	}
	return true
}

// demoted reports whether a cluster ranks last among equals.
func (p *Pass) demoted(row int) bool {
	for _, t := range p.fleet.rows[row].taints {
		if p.query.avoids(t.taint) {
			return true
		}
	}
	return false
}

// demotedRows are the clusters that rank last among equals, nil where there are
// none.
func (p *Pass) demotedRows() Bitmap {
	var rows Bitmap
	for t, tainted := range p.fleet.taints {
		if p.query.avoids(t) {
			if rows == nil {
				rows = newBitmap(p.fleet.Slots())
			}
			tainted.orInto(rows)
		}
	}
	return rows
}

// HasTolerationSeconds reports that time alone may change who is admitted.
func (q *Query) HasTolerationSeconds() bool {
	for i := range q.tolerations {
		if q.tolerations[i].TolerationSeconds != nil {
			return true
		}
	}
	return false
}

// normalToleration is equal for two tolerations that tolerate the same.
func normalToleration(t *api.Toleration) string {
	text := strconv.Quote(t.Key)
	if t.Operator != api.TolerationExists {
		text += "=" + strconv.Quote(t.Value)
	}
	text += ":" + strconv.Quote(string(t.Effect.Canonical()))
	if s := t.TolerationSeconds; s != nil && *s <= maxTolerationSeconds {
		text += " " + strconv.FormatInt(max(*s, -maxTolerationSeconds), 10)
	}
	return text
}

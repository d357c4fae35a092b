package engine

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// state admits clusters that are online. A cluster of the present decision that
// goes offline is left at once, unless the placement tolerates the taint that
// the server gave it for that.
type state struct{}

func (state) Name() string                    { return "state" }
func (state) Grounds(*Query) int              { return 1 }
func (state) On(*Query, int) string           { return "" }
func (state) Blame(_ *Query, _, n int) string { return plural(n, "is not online", "are not online") }

func (s state) Apply(p *Pass, ground int, keep Bitmap) {
	if len(p.query.tolerations) == 0 {
		keep.and(p.fleet.online)
		return
	}
	offline := p.scratch
	clear(offline)
	for t, rows := range p.fleet.taints {
		if api.AutomaticTaint(t.key) {
			rows.orInto(offline)
		}
	}
	offline.and(keep)
	keep.and(p.fleet.online)
	offline.andNot(p.fleet.online)
	offline.each(func(row int) {
		if s.Admits(p, ground, row, false) {
			keep.set(row)
			p.expires(p.tolerated(row))
		}
	})
}

func (state) Admits(p *Pass, _, row int, current bool) bool {
	if p.fleet.online.Has(row) {
		return true
	}
	excused := false
	for _, t := range p.fleet.rows[row].taints {
		if !api.AutomaticTaint(t.key) {
			continue
		}
		if !p.passes(t, current) {
			return false
		}
		excused = excused || t.effect != api.EffectPreferNoSelect
	}
	return excused
}

func (state) Reason(p *Pass, _, row int) string {
	c := p.fleet.rows[row].cluster
	text := fmt.Sprintf("is %s", State(c))
	if ready := api.FindCondition(c.Status.Conditions, api.ConditionReady); ready != nil && ready.Message != "" {
		text += ": " + ready.Message
	}
	for i, t := range p.fleet.rows[row].taints {
		if api.AutomaticTaint(t.key) && p.query.tolerance(t).ran(t.since) && !p.passes(t, false) {
			text += "; " + p.describeTaint(row, i)
		}
	}
	return text
}

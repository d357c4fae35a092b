package engine

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// state admits clusters that are online. A cluster of the present decision that
// goes offline is left at once, unless the placement tolerates the taint that
// the server gave it for that.
type state struct{}

func (state) Name() string { return "state" }

func (state) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.tolerations == &noTolerations {
		return append(made, onlyOnline), nil
	}
	return append(made, &isOnlineOrExcused{tolerations: s.tolerations}), nil
}

// onlyOnline is the check of all that tolerate nothing.
var onlyOnline = &isOnlineOrExcused{tolerations: &noTolerations}

// isOnlineOrExcused asks for clusters that are online, or for which a toleration
// makes up for that.
type isOnlineOrExcused struct {
	state
	*tolerations
}

func (c *isOnlineOrExcused) Key(k *Key) { c.key(k) }

func (c *isOnlineOrExcused) Reads() Aspects {
	if len(c.list) == 0 {
		return Online
	}
	return Online | c.reads()
}

func (c *isOnlineOrExcused) On() string { return "" }

func (c *isOnlineOrExcused) Blame(n int) string {
	return plural(n, "is not online", "are not online")
}

func (c *isOnlineOrExcused) Apply(l *Look, keep Bitmap) {
	if len(c.list) == 0 {
		keep.and(l.fleet.online)
		return
	}
	offline := l.scratch
	clear(offline)
	for t, rows := range l.fleet.taints {
		if api.AutomaticTaint(t.key) {
			rows.orInto(offline)
		}
	}
	offline.and(keep)
	keep.and(l.fleet.online)
	offline.andNot(l.fleet.online)
	offline.each(func(row int) {
		if c.Admits(l, row, false) {
			keep.set(row)
			l.expires(c.Until(l, row, false))
		}
	})
}

func (c *isOnlineOrExcused) Admits(l *Look, row int, current bool) bool {
	if l.fleet.online.Has(row) {
		return true
	}
	excused := false
	for _, t := range l.fleet.rows[row].taints {
		if !api.AutomaticTaint(t.key) {
			continue
		}
		if !c.passes(l.fleet, t, current) {
			return false
		}
		excused = excused || t.effect != api.EffectPreferNoSelect
	}
	return excused
}

// Until implements expiring.
func (c *isOnlineOrExcused) Until(l *Look, row int, chosen bool) time.Time {
	if l.fleet.online.Has(row) {
		return time.Time{}
	}
	return c.firstEnd(l.fleet, row, chosen, func(t rowTaint) bool { return api.AutomaticTaint(t.key) })
}

func (c *isOnlineOrExcused) Reason(l *Look, row int) string {
	cluster := l.fleet.rows[row].cluster
	text := fmt.Sprintf("is %s", State(cluster))
	if ready := api.FindCondition(cluster.Status.Conditions, api.ConditionReady); ready != nil && ready.Message != "" {
		text += ": " + ready.Message
	}
	for i, t := range l.fleet.rows[row].taints {
		if api.AutomaticTaint(t.key) && c.tolerance(t).ran(t.since) && !c.passes(l.fleet, t, false) {
			text += "; " + c.describe(l.fleet, row, i)
		}
	}
	return text
}

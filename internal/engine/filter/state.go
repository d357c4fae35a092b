package filter

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// state admits clusters that are online. If a cluster of the current decision goes offline, the
// decision leaves it at once, unless the placement tolerates the taint that the server added for
// that.
type state struct{}

func (state) Name() string { return api.StateFilter }

func (state) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.Tolerations == &noTolerations {
		return append(made, onlyOnline), nil
	}
	return append(made, &isOnlineOrExcused{Tolerations: s.Tolerations}), nil
}

// onlyOnline is the shared check without tolerations.
var onlyOnline = &isOnlineOrExcused{Tolerations: &noTolerations}

// isOnlineOrExcused requires that a cluster is online or that its automatic taint is tolerated.
type isOnlineOrExcused struct {
	state
	*Tolerations
}

func (c *isOnlineOrExcused) Key(k key.Writer) { c.key(k) }

func (c *isOnlineOrExcused) Reads() columns.Aspects {
	if len(c.list) == 0 {
		return columns.Online
	}
	return columns.Online | c.reads()
}

func (c *isOnlineOrExcused) On() string { return "" }

func (c *isOnlineOrExcused) Rejection(n int) string {
	return Plural(n, "is not online", "are not online")
}

func (c *isOnlineOrExcused) Apply(l *Evaluation, keep columns.Bitmap) {
	if len(c.list) == 0 {
		keep.And(l.Fleet.Online())
		return
	}
	offline := l.scratch
	clear(offline)
	for t, rows := range l.Fleet.Taints() {
		if api.AutomaticTaint(t.Key) {
			rows.OrInto(offline)
		}
	}
	offline.And(keep)
	keep.And(l.Fleet.Online())
	offline.AndNot(l.Fleet.Online())
	offline.Each(func(row int) {
		if c.Admits(l, row, false) {
			keep.Set(row)
			l.expires(c.Until(l, row, false))
		}
	})
}

func (c *isOnlineOrExcused) Admits(l *Evaluation, row int, current bool) bool {
	if l.Fleet.Online().Has(row) {
		return true
	}
	excused := false
	for _, t := range l.Fleet.Rows()[row].Taints {
		if !api.AutomaticTaint(t.Key) {
			continue
		}
		if !c.passes(l.Fleet, t, current) {
			return false
		}
		excused = excused || t.Effect != api.EffectPreferNoSelect
	}
	return excused
}

// Offline implements Evicting.
func (c *isOnlineOrExcused) Offline() bool { return true }

// Until implements expiring.
func (c *isOnlineOrExcused) Until(l *Evaluation, row int, chosen bool) time.Time {
	if l.Fleet.Online().Has(row) {
		return time.Time{}
	}
	return c.firstEnd(l.Fleet, row, chosen, func(t columns.RowTaint) bool { return api.AutomaticTaint(t.Key) })
}

func (c *isOnlineOrExcused) Reason(l *Evaluation, row int) string {
	cluster := l.Fleet.Cluster(row)
	text := fmt.Sprintf("is %s", columns.State(cluster))
	if ready := api.FindCondition(cluster.Status.Conditions, api.ConditionReady); ready != nil && ready.Message != "" {
		text += ": " + ready.Message
	}
	for i, t := range l.Fleet.Rows()[row].Taints {
		if api.AutomaticTaint(t.Key) && c.tolerance(t).ran(t.Since) && !c.passes(l.Fleet, t, false) {
			text += "; " + c.describe(l.Fleet, row, i)
		}
	}
	return text
}

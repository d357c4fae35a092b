package engine

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// taint is a taint as an index key; the effect is in its first spelling.
type taint struct {
	key, value string
	effect     api.TaintEffect
}

// String renders the taint for messages: "disk=full:NoSelect".
func (t taint) String() string {
	text := t.key
	if t.value != "" {
		text += "=" + t.value
	}
	return text + ":" + string(t.effect)
}

// rowTaint is a taint of one cluster, with the moment since when it is there.
type rowTaint struct {
	taint
	since time.Time
}

// taintsOf are the taints of a cluster that are in force.
func taintsOf(c *api.Cluster) []rowTaint {
	inForce := c.Taints()
	if len(inForce) == 0 {
		return nil
	}
	out := make([]rowTaint, len(inForce))
	for i, t := range inForce {
		out[i].taint = taint{t.Key, t.Value, t.Effect.Canonical()}
		if t.TimeAdded != nil {
			out[i].since = *t.TimeAdded
		}
	}
	return out
}

func (t rowTaint) same(other rowTaint) bool {
	return t.taint == other.taint && t.since.Equal(other.since)
}

// putTaints writes the taints of a row.
func (b *edit) putTaints(at int, was, is []rowTaint) (changed bool) {
	if slices.EqualFunc(was, is, rowTaint.same) {
		return false
	}
	listed := func(list []rowTaint, t taint) bool {
		return slices.ContainsFunc(list, func(x rowTaint) bool { return x.taint == t })
	}
	for _, t := range was {
		if !listed(is, t.taint) {
			editOf(b.taints, t.taint).take(at)
		}
	}
	for _, t := range is {
		if !listed(was, t.taint) {
			editOf(b.taints, t.taint).put(at)
		}
	}
	return true
}

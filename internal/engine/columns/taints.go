package columns

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Taint is a taint as an index key, with the canonical effect.
type Taint struct {
	Key, Value string
	Effect     api.TaintEffect
}

// String returns the taint for messages: "disk=full:NoSelect".
func (t Taint) String() string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return text + ":" + string(t.Effect)
}

// RowTaint is a taint of one cluster, with the time when it was added.
type RowTaint struct {
	Taint
	Since time.Time
}

// taintsOf returns the taints of a cluster that are in force.
func taintsOf(c *api.Cluster) []RowTaint {
	inForce := c.Taints()
	if len(inForce) == 0 {
		return nil
	}
	out := make([]RowTaint, len(inForce))
	for i, t := range inForce {
		out[i].Taint = Taint{t.Key, t.Value, t.Effect.Canonical()}
		if t.TimeAdded != nil {
			out[i].Since = *t.TimeAdded
		}
	}
	return out
}

func (t RowTaint) same(other RowTaint) bool {
	return t.Taint == other.Taint && t.Since.Equal(other.Since)
}

// putTaints updates the taints of a row.
func (b *edit) putTaints(at int, was, is []RowTaint) (changed bool) {
	if slices.EqualFunc(was, is, RowTaint.same) {
		return false
	}
	listed := func(list []RowTaint, t Taint) bool {
		return slices.ContainsFunc(list, func(x RowTaint) bool { return x.Taint == t })
	}
	for _, t := range was {
		if !listed(is, t.Taint) {
			b.taints.take(&b.writer, t.Taint, at)
		}
	}
	for _, t := range is {
		if !listed(was, t.Taint) {
			b.taints.put(&b.writer, t.Taint, at)
		}
	}
	return true
}

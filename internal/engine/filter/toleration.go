package filter

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// Tolerations are the tolerations of a placement or policy. The checks of state and taints share
// them, and they determine which clusters rank last among equals. Immutable.
type Tolerations struct{ list []api.Toleration }

// NewTolerations compiles tolerations; an empty list tolerates nothing.
func NewTolerations(list []api.Toleration) *Tolerations {
	if len(list) == 0 {
		return &noTolerations
	}
	return &Tolerations{list}
}

// key writes the parts that determine what is tolerated.
func (x *Tolerations) key(k key.Writer) {
	k.Each("tolerations", len(x.list), func(k key.Writer, i int) {
		t := &x.list[i]
		k.Text("key", t.Key)
		exists, value := "", t.Value
		if t.Operator == api.TolerationExists {
			exists, value = "exists", ""
		}
		k.Text("operator", exists)
		k.Text("value", value)
		k.Text("effect", string(t.Effect.Canonical()))
		k.Text("seconds", normalSeconds(t))
		k.Words("text", t.String())
	})
}

// normalSeconds returns how long a toleration lasts, "" for forever.
func normalSeconds(t *api.Toleration) string {
	if s := t.TolerationSeconds; s != nil && *s <= maxTolerationSeconds {
		return strconv.FormatInt(max(*s, -maxTolerationSeconds), 10)
	}
	return ""
}

// reads returns the aspects that tolerations depend on.
func (x *Tolerations) reads() columns.Aspects {
	if x.runOut() {
		return columns.Taints | columns.Clock
	}
	return columns.Taints
}

// runOut reports whether any toleration expires.
func (x *Tolerations) runOut() bool {
	for i := range x.list {
		if normalSeconds(&x.list[i]) != "" {
			return true
		}
	}
	return false
}

// tolerance says for how long a taint of a cluster is tolerated.
type tolerance struct {
	// by is the toleration that lasts longest, or nil if no toleration matches.
	by *api.Toleration
	// forever says that it never expires; otherwise it expires at end.
	forever bool
	end     time.Time
}

// holds reports whether the taint is tolerated at the given time.
func (t tolerance) holds(now time.Time) bool {
	return t.by != nil && (t.forever || now.Before(t.end))
}

// ran reports whether the taint was tolerated at any time after it was added.
func (t tolerance) ran(since time.Time) bool { return t.by != nil && t.end.After(since) }

// maxTolerationSeconds is the maximum of time.Duration, 292 years; more counts as forever.
const maxTolerationSeconds = int64(math.MaxInt64 / time.Second)

// tolerance finds the toleration that lasts longest. toleration_seconds count from time_added, even
// if that is in the future: with 0 seconds, a taint is tolerated until time_added and not from then
// on.
func (x *Tolerations) tolerance(t columns.RowTaint) tolerance {
	var best tolerance
	for i := range x.list {
		one := &x.list[i]
		if !one.Matches(t.Key, t.Value, t.Effect) {
			continue
		}
		if one.TolerationSeconds == nil || *one.TolerationSeconds > maxTolerationSeconds {
			return tolerance{by: one, forever: true}
		}
		if end := t.Since.Add(time.Duration(max(*one.TolerationSeconds, -maxTolerationSeconds)) * time.Second); best.by == nil || end.After(best.end) {
			best = tolerance{by: one, end: end}
		}
	}
	return best
}

// passes reports whether a taint currently admits the placement.
func (x *Tolerations) passes(f *columns.Fleet, t columns.RowTaint, current bool) bool {
	switch {
	case t.Effect == api.EffectPreferNoSelect:
		return true
	case t.Effect == api.EffectNoSelectIfNew && current:
		return true
	}
	return x.tolerance(t).holds(f.Now())
}

// firstEnd returns when the first toleration of the row's taints expires, or zero. For a chosen
// row, only tolerations that keep the decision count: NoSelectIfNew ends no decision.
func (x *Tolerations) firstEnd(f *columns.Fleet, row int, chosen bool, counts func(columns.RowTaint) bool) time.Time {
	var first time.Time
	if len(x.list) == 0 {
		return first
	}
	for _, t := range f.Rows()[row].Taints {
		if t.Effect == api.EffectPreferNoSelect || (chosen && t.Effect == api.EffectNoSelectIfNew) || !counts(t) {
			continue
		}
		if end := x.tolerance(t).end; end.After(f.Now()) {
			first = Sooner(first, end)
		}
	}
	return first
}

// avoids reports whether a taint only ranks clusters last and is not tolerated. The duration of a
// toleration does not matter for this.
func (x *Tolerations) avoids(t columns.Taint) bool {
	if t.Effect != api.EffectPreferNoSelect {
		return false
	}
	for i := range x.list {
		if x.list[i].Matches(t.Key, t.Value, t.Effect) {
			return false
		}
	}
	return true
}

// Demoted reports whether a cluster ranks last among equals.
func (x *Tolerations) Demoted(f *columns.Fleet, row int) bool {
	for _, t := range f.Rows()[row].Taints {
		if x.avoids(t.Taint) {
			return true
		}
	}
	return false
}

// DemotedRows returns the clusters that rank last among equals, or nil.
func (x *Tolerations) DemotedRows(f *columns.Fleet) columns.Bitmap {
	var rows columns.Bitmap
	for t, tainted := range f.Taints() {
		if x.avoids(t) {
			if rows == nil {
				rows = columns.NewBitmap(f.Slots())
			}
			tainted.OrInto(rows)
		}
	}
	return rows
}

// describe says why a taint is not tolerated. It spells the effect as the cluster does.
func (x *Tolerations) describe(f *columns.Fleet, row, i int) string {
	t := f.Rows()[row].Taints[i]
	shown := t.Taint
	if list := f.Cluster(row).Taints(); i < len(list) {
		shown.Effect = list[i].Effect
	}
	since := ""
	if !t.Since.IsZero() {
		since = "since " + t.Since.UTC().Format(time.RFC3339)
	}
	tolerance := x.tolerance(t)
	switch {
	case tolerance.ran(t.Since) && since != "":
		return fmt.Sprintf("taint %s was tolerated until %s (there %s, toleration %s)",
			shown, tolerance.end.UTC().Format(time.RFC3339), since, tolerance.by)
	case tolerance.ran(t.Since):
		return fmt.Sprintf("taint %s is no longer tolerated: it is not known when it was added (toleration %s)", shown, tolerance.by)
	case since != "":
		return fmt.Sprintf("taint %s is not tolerated (there %s)", shown, since)
	}
	return fmt.Sprintf("taint %s is not tolerated", shown)
}

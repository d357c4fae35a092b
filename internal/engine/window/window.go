// Package window says when decisions may move: which move window holds a decision, and until when.
package window

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Windows are the move windows of a fleet. They never change. Nil holds nothing.
type Windows struct {
	of map[string][]*window // by namespace; "" for those of all, each by key

	// latest are the latest answers, by the windows that they are about: reading a schedule takes microseconds, and lists
	// ask for every object.
	mu     sync.Mutex
	latest map[string]answer
}

// answer is what holds objects that the same windows are about, from a time on until another.
type answer struct {
	from, to time.Time // to is zero if it stays so
	hold     *Hold
}

// covers reports whether the answer is right at a time.
func (a *answer) covers(at time.Time) bool {
	return !a.from.IsZero() && !at.Before(a.from) && (a.to.IsZero() || at.Before(a.to))
}

// window is one of them, compiled.
type window struct {
	key         api.Key
	allow       bool
	schedule    cron.Schedule // nil: open at once
	duration    time.Duration
	end         time.Time          // zero: never
	selector    *api.LabelSelector // nil: everything
	description string
}

// Compile returns the windows of these objects, which are valid. One that cannot be compiled, because another version of
// the program has stored it, holds nothing.
func Compile(objects iter.Seq[*api.MoveWindow]) *Windows {
	w := &Windows{of: map[string][]*window{}, latest: map[string]answer{}}
	for o := range objects {
		compiled, ok := compile(o)
		if ok {
			w.of[o.Metadata.Namespace] = append(w.of[o.Metadata.Namespace], compiled)
		}
	}
	if len(w.of) == 0 {
		return nil
	}
	for _, list := range w.of {
		slices.SortFunc(list, func(a, b *window) int { return a.key.Compare(b.key) })
	}
	return w
}

func compile(o *api.MoveWindow) (*window, bool) {
	schedule, err := o.Spec.Times()
	if err != nil {
		return nil, false
	}
	w := &window{
		key: api.KeyOf(o), allow: o.Spec.Effect == api.EffectAllow, schedule: schedule, duration: o.Spec.Duration.Or(0),
		selector: o.Spec.LabelSelector, description: o.Spec.Description,
	}
	if o.Spec.EndsAt != nil {
		w.end = *o.Spec.EndsAt
	}
	return w, true
}

// Hold is what keeps a decision from moving.
type Hold struct {
	// By is the window, and Description what its author says that it is for.
	By          api.Key
	Description string
	// Until is when the decision may move again; zero if no time is known.
	Until time.Time
	// Next is when to ask again: Until, or as far as was looked ahead. Zero if the hold lasts until an object changes.
	Next time.Time
}

// maxSteps limits how far ahead the end of a hold is looked for: windows that follow each other may have none.
const maxSteps = 64

// Held returns what keeps the decision on an object from moving at a time, or nil.
func (w *Windows) Held(namespace string, labels map[string]string, now time.Time) *Hold {
	if w == nil {
		return nil
	}
	about := w.about(namespace, labels)
	if len(about) == 0 {
		return nil
	}
	var key strings.Builder
	for _, one := range about {
		key.WriteString(one.key.Namespace + "/" + one.key.Name + " ")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.latest[key.String()]
	if !a.covers(now) {
		a = answer{from: now}
		a.hold, a.to = held(about, now)
		w.latest[key.String()] = a
	}
	return a.hold
}

// held returns what these windows hold at a time, or nil, and when that changes next; zero if never.
func held(about []*window, now time.Time) (*Hold, time.Time) {
	by, change := holding(about, now)
	if by == nil {
		return nil, change
	}
	hold := &Hold{By: by.key, Description: by.description, Next: change}
	for range maxSteps {
		if hold.Next.IsZero() {
			break // for ever
		}
		var still *window
		at := hold.Next
		if still, hold.Next = holding(about, at); still == nil {
			hold.Until, hold.Next = at, at
			break
		}
	}
	return hold, change
}

// about returns the windows for an object.
func (w *Windows) about(namespace string, labels map[string]string) []*window {
	var about []*window
	for _, list := range [][]*window{w.of[""], w.of[namespace]} {
		for _, one := range list {
			if one.selector.Matches(labels) {
				about = append(about, one)
			}
		}
		if namespace == "" {
			break
		}
	}
	return about
}

// holding returns the window that holds something at a time, or nil, and when that may change next; zero if never. What
// denies comes before what allows.
func holding(windows []*window, at time.Time) (by *window, change time.Time) {
	var denies, waits *window
	allowed := false
	for _, w := range windows {
		open, next := w.open(at)
		if !next.IsZero() && (change.IsZero() || next.Before(change)) {
			change = next
		}
		switch {
		case w.over(at):
		case w.allow && open:
			allowed = true
		case w.allow:
			waits = cmp.Or(waits, w)
		case open:
			denies = cmp.Or(denies, w)
		}
	}
	switch {
	case denies != nil:
		return denies, change
	case !allowed:
		return waits, change
	}
	return nil, change
}

// over reports whether a window has ended for good.
func (w *window) over(at time.Time) bool { return !w.end.IsZero() && !at.Before(w.end) }

// open reports whether a window is open, and when that changes next; zero if never.
func (w *window) open(at time.Time) (open bool, next time.Time) {
	switch {
	case w.over(at):
		return false, time.Time{}
	case w.schedule == nil:
		return true, w.end
	}
	if last := w.lastOpening(at); !last.IsZero() {
		return true, sooner(last.Add(w.duration), w.end)
	}
	return false, sooner(w.schedule.Next(at), w.end)
}

// lastOpening returns the last opening from which the window is still open; zero if it is closed. Openings may follow each
// other before the window would close.
func (w *window) lastOpening(at time.Time) (last time.Time) {
	// Further and further back: a window may open every minute and stay open for a week.
	for back := time.Minute; last.IsZero(); back *= 2 {
		back = min(back, w.duration)
		for next := w.schedule.Next(at.Add(-back)); !next.IsZero() && !next.After(at); next = w.schedule.Next(next) {
			last = next
		}
		if back == w.duration {
			break
		}
	}
	return last
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// String describes a hold for conditions and explanations.
func (h *Hold) String() string {
	var b strings.Builder
	b.WriteString(h.By.String())
	if h.Description != "" {
		b.WriteString(" (" + h.Description + ")")
	}
	if !h.Until.IsZero() {
		b.WriteString(" until " + h.Until.UTC().Format(time.RFC3339))
	}
	return b.String()
}

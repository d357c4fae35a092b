package movement

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/timezone"
)

// Window is a compiled window. It is immutable.
type Window struct {
	key      api.Key
	spec     *api.MoveWindowSpec
	schedule schedule
	duration time.Duration
	// spans are some times in which it is known whether the window is open: many decisions ask for
	// the same ones.
	spans *atomic.Pointer[[]span]
}

// span is a time in which a window is open, or is not.
type span struct {
	from, until time.Time // zero until = forever
	open        bool
	// known is until when the same would be found as from the start; zero = forever.
	known time.Time
}

// maxSpans is the number of spans that a window remembers.
const maxSpans = 16

// NewWindow compiles a window. It fails only for one that is not valid.
func NewWindow(w *api.MoveWindow) (*Window, error) {
	local, err := api.ParseSchedule(w.Spec.Schedule)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", api.KeyOf(w), err)
	}
	zone, err := timezone.Load(w.Spec.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", api.KeyOf(w), err)
	}
	return &Window{key: api.KeyOf(w), spec: &w.Spec, schedule: schedule{local, zone}, duration: w.Spec.Duration.Or(0), spans: &atomic.Pointer[[]span]{}}, nil
}

// Key returns the key of the window.
func (w *Window) Key() api.Key { return w.key }

// The end of a window whose openings overlap is searched for so long from the beginning of the day
// (UTC). If it lasts longer, it is looked at again then. The search counts from the day, so that it
// finds the same until the first of the openings ends.
const (
	day     = 24 * time.Hour
	horizon = 5 * day
)

// isOpen reports whether the window is open at a time, and until when that stays so: until it closes,
// or opens next. The zero time means forever.
func (w *Window) isOpen(now time.Time) (open bool, until time.Time) {
	var spans []span
	if known := w.spans.Load(); known != nil {
		spans = *known
	}
	for _, s := range spans {
		if now.Equal(s.from) || now.After(s.from) && (s.known.IsZero() || now.Before(s.known)) {
			return s.open, s.until
		}
	}
	s := w.spanFrom(now)
	spans = append([]span{s}, spans[:min(len(spans), maxSpans-1)]...)
	w.spans.Store(&spans)
	return s.open, s.until
}

// spanFrom returns how the window is from a time on.
func (w *Window) spanFrom(now time.Time) span {
	start := w.schedule.next(now.Add(-w.duration)) // the earliest opening that is not over
	if start.IsZero() || start.After(now) {
		return span{from: now, until: start, known: start}
	}
	first, today := start.Add(w.duration), now.Truncate(day)
	end := first
	for end.Before(today.Add(horizon)) {
		// A late opening extends it most.
		late := w.schedule.next(end.Add(-w.duration / 2))
		if late.IsZero() || late.After(end) {
			late = w.schedule.next(start)
		}
		if late.IsZero() || late.After(end) {
			return span{from: now, until: end, open: true, known: end}
		}
		start, end = late, late.Add(w.duration)
	}
	return span{from: now, until: end, open: true, known: sooner(first, today.Add(day))}
}

// covers reports whether the window applies to an object.
func (w *Window) covers(object *api.Metadata) bool {
	if w.key.Namespace != "" && w.key.Namespace != object.Namespace {
		return false
	}
	s := w.spec.Selector
	return s == nil || (len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, object.Namespace)) &&
		s.LabelSelector.Matches(object.Labels)
}

// selects reports whether the window applies to a move of an object that it covers.
func (w *Window) selects(m *Move) bool {
	return (len(w.spec.Reasons) == 0 || slices.Contains(w.spec.Reasons, m.Reason)) &&
		(w.spec.From == nil || m.From != nil && among(w.spec.From, m.From)) &&
		(w.spec.To == nil || slices.ContainsFunc(m.To, func(c *api.Cluster) bool { return among(w.spec.To, c) }))
}

// among reports whether a cluster is one of those selected.
func among(of *api.MoveClusters, c *api.Cluster) bool {
	return (len(of.ClusterNames) == 0 || slices.Contains(of.ClusterNames, c.Metadata.Name)) &&
		of.LabelSelector.Matches(c.Metadata.Labels)
}

// windowList are the windows that cover an object, in the order of their keys.
type windowList []*Window

// steps bounds the search for the time at which no window holds a move any more. Windows may take
// turns for longer, or for ever.
const steps = 16

// holds returns the window that holds a move at a time, and until when windows hold it: nil if none
// does. The zero time means never, or further ahead than was searched.
func (ws windowList) holds(m *Move, now time.Time) (by *Window, until time.Time) {
	at := now
	for range steps {
		blocking, end := ws.blocks(m, at)
		if blocking == nil {
			return by, at
		}
		if by == nil {
			by = blocking
		}
		if at = end; at.IsZero() {
			break
		}
	}
	return by, time.Time{}
}

// next returns when one of the windows that apply to a move next opens or closes; zero if none does.
func (ws windowList) next(m *Move, now time.Time) (at time.Time) {
	for _, w := range ws {
		if w.selects(m) {
			_, until := w.isOpen(now)
			at = sooner(at, until)
		}
	}
	return at
}

// blocks returns a window that holds a move at a time, and until when it does: one that denies it,
// or, if none of those that allow it is open, the one that opens first.
func (ws windowList) blocks(m *Move, at time.Time) (by *Window, until time.Time) {
	allowed := false
	for _, w := range ws {
		if !w.selects(m) {
			continue
		}
		open, end := w.isOpen(at)
		switch {
		case w.spec.Kind == api.WindowDeny:
			if open {
				return w, end
			}
		case open:
			allowed = true
		case by == nil || !end.IsZero() && (until.IsZero() || end.Before(until)):
			by, until = w, end
		}
	}
	if allowed {
		return nil, time.Time{}
	}
	return by, until
}

package movement

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Move is what a decision would do although nothing forces it to.
type Move struct {
	// From is the cluster that it would leave; nil if it would only take a further one.
	From *api.Cluster
	// To are the clusters that it would take instead; none if it would only leave one.
	To []*api.Cluster
	// Reason is why.
	Reason api.CauseType
}

// Rules are the windows and freezes of a server, in the order of their keys. Empty rules hold
// nothing.
type Rules struct {
	Windows []*Window
	Freezes []*api.Freeze
}

// Holding is what may hold the moves of one decision at one time. A nil Holding holds nothing.
type Holding struct {
	now     time.Time
	freeze  *api.Freeze
	windows windowList
	budgets []Budget
}

// Empty reports whether there are no windows and no freezes.
func (r *Rules) Empty() bool { return len(r.Windows) == 0 && len(r.Freezes) == 0 }

// NewHolding returns what may hold the moves of an object at a time; nil if nothing does. The most
// restrictive of the budgets counts.
func NewHolding(rules *Rules, budgets []Budget, object *api.Metadata, now time.Time) *Holding {
	h := Holding{now: now, freeze: longest(rules.Freezes, object, now), budgets: budgets}
	for _, w := range rules.Windows {
		if w.covers(object) {
			h.windows = append(h.windows, w)
		}
	}
	if h.freeze == nil && len(h.windows) == 0 && len(budgets) == 0 {
		return nil
	}
	return &h
}

// Take returns which of the moves of a decision, the most important one first, may be made now, and
// what holds the others; nil if there are none. If windows and budgets do, it is the window that ends
// first: what is left of a budget depends on other decisions too.
func (h *Holding) Take(moves []Move) (made []bool, held *Held) {
	made = make([]bool, len(moves))
	if h == nil {
		for i := range made {
			made[i] = true
		}
		return made, nil
	}
	used := int64(0)
	var again time.Time
	for i := range moves {
		by := h.holds(&moves[i], used)
		if by == nil {
			made[i] = true
			used += moves[i].counts()
			again = sooner(again, h.windows.next(&moves[i], h.now)) // a decision that moves as a whole does not make it
			continue
		}
		again = sooner(again, by.Again)
		if held == nil || by.sooner(held) {
			held = by
		}
	}
	if held != nil {
		held.Again = again
	}
	return made, held
}

// sooner reports whether what holds one move is told rather than what holds another one.
func (h *Held) sooner(other *Held) bool {
	if budget := h.By == api.HeldByBudget; budget != (other.By == api.HeldByBudget) {
		return !budget
	}
	return !h.until.IsZero() && (other.until.IsZero() || h.until.Before(other.until))
}

// counts returns how often a move counts in budgets.
func (m *Move) counts() int64 {
	if m.From == nil {
		return 0
	}
	return 1
}

// Count returns how many of the moves that are made count in budgets.
func Count(moves []Move, made []bool) (n int64) {
	for i := range moves {
		if made[i] {
			n += moves[i].counts()
		}
	}
	return n
}

// holds returns what holds a move after others have used some of the budgets, nil if nothing does.
func (h *Holding) holds(m *Move, used int64) *Held {
	if h.freeze != nil {
		return &Held{By: api.HeldByFreeze, Key: api.KeyOf(h.freeze), Name: h.freeze.Spec.Reason, until: until(h.freeze), Again: until(h.freeze)}
	}
	if by, end := h.windows.holds(m, h.now); by != nil {
		return &Held{By: api.HeldByWindow, Key: by.key, Name: by.key.Name, until: inZone(end, by.schedule.zone), Again: h.windows.next(m, h.now)}
	}
	var held *Held
	for i := range h.budgets {
		b := &h.budgets[i]
		if m.counts() == 0 || b.Left > used {
			continue
		}
		if by := (&Held{By: api.HeldByBudget, Name: b.Name, until: b.NextAt, Again: b.NextAt}); held == nil || later(by.until, held.until) {
			held = by
		}
	}
	if held != nil {
		held.Again = sooner(held.Again, h.windows.next(m, h.now)) // when one begins to hold it too
	}
	return held
}

// sooner returns the earlier of two times; zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later reports whether one end is later than another; zero means that it is not known.
func later(a, b time.Time) bool { return !b.IsZero() && (a.IsZero() || a.After(b)) }

// inZone returns an instant in a time zone; the zero time stays zero.
func inZone(t time.Time, zone *time.Location) time.Time {
	if t.IsZero() {
		return t
	}
	return t.In(zone)
}

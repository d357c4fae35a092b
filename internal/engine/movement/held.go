package movement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Held says what holds a move.
type Held struct {
	// By is what kind of thing holds it.
	By api.HeldBy
	// Key is that of the window or freeze, or the zero key.
	Key api.Key
	// Name is that of the window or budget, "" for the budget of the object itself; for a freeze, it
	// is why nothing moves.
	Name string
	// until is when it no longer holds it, in the time zone of the window; zero if that is not
	// known.
	until time.Time
	// Again is when to look again, because something else may hold the move then, or nothing; zero if
	// never.
	Again time.Time
	// Would are the clusters that the decision would have without.
	Would []string
}

// maxWould is the number of clusters that a sentence lists.
const maxWould = 3

// String says what holds the move, until when, and what the decision would be: "window weekdays
// until 2026-11-27 18:00 CET, else paris".
func (h *Held) String() string {
	text := string(h.By)
	switch {
	case h.By == api.HeldByFreeze:
		text += fmt.Sprintf(" (%s)", h.Name)
	case h.Name != "":
		text += " " + h.Name
	}
	if !h.until.IsZero() {
		text += " until " + h.until.Format("2006-01-02 15:04 MST")
	}
	names := h.Would
	if more := len(names) - maxWould; more > 0 {
		names = append(slices.Clone(names[:maxWould]), fmt.Sprintf("%d more", more))
	}
	if len(names) > 0 {
		text += ", else " + strings.Join(names, ", ")
	}
	return text
}

// Rendered returns what explanations show.
func (h *Held) Rendered() *api.MoveHeld {
	held := &api.MoveHeld{By: h.By, Name: h.Name, Would: h.Would}
	// A year beyond 9999 has no JSON form; only simulations reach it.
	if at := h.until.UTC(); !h.until.IsZero() && at.Year() <= 9999 {
		held.Until = &at
	}
	return held
}

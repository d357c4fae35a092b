package placement

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Redated is a status in which no instant of a decision lies ahead. Another server, whose
// clock was ahead, has dated such a decision: it counts as made now, so that it holds no
// longer than a new one. A status that needs no correction is returned as it is.
func Redated(s *api.PlacementStatus, now time.Time) *api.PlacementStatus {
	if s.ScheduledAt == nil || !s.ScheduledAt.After(now) {
		return s // nothing of a decision is newer than its last change
	}
	at := now.UTC() // now itself stays off the heap
	redated := *s
	redated.ScheduledAt = &at
	redated.Moves = slices.Clone(s.Moves)
	for i := range redated.Moves {
		if m := &redated.Moves[i]; m.At.After(now) {
			m.At = at
		}
	}
	redated.Decisions = slices.Clone(s.Decisions)
	for i := range redated.Decisions {
		if d := &redated.Decisions[i]; d.Since != nil && d.Since.After(now) {
			d.Since = &at
		}
	}
	return &redated
}

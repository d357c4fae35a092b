package httpapi

import (
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// renews reports whether a write only puts off the moment at which scores that
// are valid now expire. No decision follows from that, so there is none to wait
// for: every cluster's agent does it every minute.
func renews(before, after api.Object, now time.Time) bool {
	was, ok := before.(*api.PlacementScore)
	if !ok {
		return false
	}
	is, ok := after.(*api.PlacementScore)
	return ok && !was.Expired(now) && !is.Expired(now) && maps.Equal(was.Spec.Scores, is.Spec.Scores)
}

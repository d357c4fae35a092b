package httpapi

import (
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// renews reports whether a write only postpones the expiry of scores that are valid now. No
// decision follows from that, so there is nothing to wait for: every cluster's agent does it every
// minute.
func renews(before, after api.Object, now time.Time) bool {
	was, ok := before.(*api.PlacementScore)
	if !ok {
		return false
	}
	is, ok := after.(*api.PlacementScore)
	return ok && !was.Expired(now) && !is.Expired(now) && maps.Equal(was.Spec.Scores, is.Spec.Scores)
}

package movement

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// longest returns the freeze that holds an object longest at a time, nil if none does. The list is
// in the order of the keys.
func longest(list []*api.Freeze, object *api.Metadata, now time.Time) *api.Freeze {
	var found *api.Freeze
	for _, f := range list {
		if f.Metadata.Namespace != "" && f.Metadata.Namespace != object.Namespace || !f.Spec.InForce(now) {
			continue
		}
		if found == nil || found.Spec.Until != nil && (f.Spec.Until == nil || f.Spec.Until.After(*found.Spec.Until)) {
			found = f
		}
	}
	return found
}

// until returns when a freeze ends; zero if that is not known.
func until(f *api.Freeze) time.Time {
	if f.Spec.Until == nil {
		return time.Time{}
	}
	return f.Spec.Until.UTC()
}

package httpapi

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// gitopsBackend implements the backend of what GitOps controllers ask.
type gitopsBackend struct {
	store Store
	view  *view
}

// Age implements gitops.Backend.
func (b gitopsBackend) Age(revision int64) time.Duration { return b.store.Age(revision) }

// Shown implements gitops.Backend.
func (b gitopsBackend) Shown(who auth.Identity, object api.Object) api.Object {
	return b.view.shown(who, object)
}

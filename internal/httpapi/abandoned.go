package httpapi

import (
	"context"

	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// wantedWrites is a Store that does not write for clients that have given up while the process was
// paused; see serve.Pauses.
type wantedWrites struct {
	Store
	pauses *serve.Pauses
}

// Commit implements Store.
func (w wantedWrites) Commit(ctx context.Context, writes ...store.Write) (int64, error) {
	if err := w.pauses.Wait(ctx); err != nil {
		return 0, err
	}
	return w.Store.Commit(ctx, writes...)
}

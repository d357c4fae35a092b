package httpapi

import (
	"context"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

// arktosBackend implements the backend of the Arktos API.
type arktosBackend struct {
	view      *view
	waits     *decisionWaiter
	changes   *changes
	decisions Decisions
	signals   Signals
	now       func() time.Time
}

// Create implements arktos.Backend.
func (b arktosBackend) Create(ctx context.Context, object api.Object) (api.Object, int64, error) {
	key := api.KeyOf(object)
	if err := auth.Of(ctx).MayWrite(object); err != nil {
		return nil, 0, err
	}
	written, err := b.changes.change(ctx, key, precondition{}, func(current *stored) (*successor, error) {
		if current != nil {
			return nil, problem.New(api.ProblemAlreadyExists, "%s exists already", key)
		}
		next := object.Copy()
		created(ctx, next.Meta(), b.now().UTC())
		return &successor{object: next}, nil
	})
	if err != nil {
		return nil, 0, err
	}
	return written.object, written.revision, nil
}

// Load implements arktos.Backend.
func (b arktosBackend) Load(ctx context.Context, key api.Key) (api.Object, error) {
	current, err := b.changes.load(ctx, key)
	if err != nil || current == nil {
		return nil, err
	}
	return current.object, nil
}

// Remove implements arktos.Backend.
func (b arktosBackend) Remove(ctx context.Context, key api.Key) (int64, error) {
	return b.changes.remove(ctx, key, precondition{})
}

// Await implements arktos.Backend.
func (b arktosBackend) Await(ctx context.Context, revision int64, wait time.Duration) {
	b.waits.await(ctx, revision, wait)
}

// CatchUp implements arktos.Backend.
func (b arktosBackend) CatchUp(ctx context.Context) { b.waits.catchUp(ctx) }

// Shown implements arktos.Backend.
func (b arktosBackend) Shown(who auth.Identity, object api.Object) api.Object {
	return b.view.shown(who, object)
}

// NotFound implements arktos.Backend.
func (b arktosBackend) NotFound(key api.Key) error { return b.view.notFound(key) }

// PreviewWorkload implements arktos.Backend.
func (b arktosBackend) PreviewWorkload(ctx context.Context, workload *api.Workload) (api.WorkloadStatus, *api.Explanation, error) {
	return b.decisions.PreviewWorkload(ctx, workload)
}

// Explain implements arktos.Backend.
func (b arktosBackend) Explain(key api.Key) (*api.Explanation, error) {
	return b.decisions.Explain(key)
}

// Report implements arktos.Backend.
func (b arktosBackend) Report(ctx context.Context, cluster string, amounts clusterhealth.Amounts) (int64, error) {
	return b.signals.Report(ctx, cluster, amounts)
}

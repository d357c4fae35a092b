package httpapi

import (
	"context"
	"log/slog"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// decisionWaiter lets requests wait for what follows from a write. Waits do not delay a shutdown.
type decisionWaiter struct {
	store     Store
	fleet     *fleet.Fleet
	decisions Decisions
	signals   Signals
	leader    *leaderClient
	tracer    *tracing.Tracer
	logger    *slog.Logger
	// stopping is done when the server is asked to stop.
	stopping context.Context
}

// catchUpWait is how long a response without any other wait gives the fleet to show the write, so
// that clients read their own writes. It takes about a millisecond; a fleet that has lost its watch
// must not cost more.
const catchUpWait = 2 * time.Second

// bounded limits ctx by a wait, and cancels it when the server stops, so that waits do not delay a
// shutdown.
func (w *decisionWaiter) bounded(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	unhook := context.AfterFunc(w.stopping, cancel)
	return ctx, func() { unhook(); cancel() }
}

// await waits until what follows from a revision is decided and visible. The write itself is
// durable, so a timeout is not a failure.
func (w *decisionWaiter) await(ctx context.Context, revision int64, wait time.Duration) {
	if wait > 0 {
		bounded, cancel := w.bounded(ctx, wait)
		err := w.settle(bounded, revision)
		cancel()
		if err != nil && bounded.Err() == nil {
			w.logger.LogAttrs(ctx, slog.LevelWarn, "waiting for the decision failed",
				slog.String("request_id", requestOf(ctx).id), slog.Int64("revision", revision), slog.Any("error", err))
		}
	}
	defer w.freshen(ctx)
	if w.fleet.Snapshot().Revision() >= revision {
		return // as it is after a decision
	}
	bounded, cancel := w.bounded(ctx, catchUpWait)
	defer cancel()
	if _, err := w.fleet.WaitRevision(bounded, revision); err != nil && bounded.Err() == nil {
		w.logger.LogAttrs(ctx, slog.LevelWarn, "waiting for the fleet failed",
			slog.String("request_id", requestOf(ctx).id), slog.Int64("revision", revision), slog.Any("error", err))
	}
}

// settle waits until what follows from a revision is decided and visible, on any server.
func (w *decisionWaiter) settle(ctx context.Context, revision int64) error {
	for w.leader.leads() {
		leading, done := w.leader.whileLeading(ctx)
		observed, err := w.signals.Settle(leading, revision)
		if err == nil {
			err = w.decisions.Settle(leading, max(revision, observed))
		}
		done()
		if err == nil || w.leader.leads() || ctx.Err() != nil {
			return err
		}
	}
	shown, err := w.leader.settle(ctx, revision)
	if err != nil {
		return err
	}
	return w.decisions.Settle(ctx, max(revision, shown))
}

// lastContact returns a time at which the in-memory copy is known to have been complete.
func (w *decisionWaiter) lastContact() time.Time {
	return time.Now().Add(-w.store.Age(w.fleet.Snapshot().Revision()))
}

// freshen records that a request, after waiting, reads the current snapshot.
func (w *decisionWaiter) freshen(ctx context.Context) { requestOf(ctx).lastContact = w.lastContact() }

// behind reports whether the store has not responded for so long that a revision missing in memory
// may exist.
func (w *decisionWaiter) behind() bool {
	return w.store.Age(w.fleet.Snapshot().Revision()) > catchUpWait+time.Second
}

// catchUp waits until the decisions have reached what the fleet shows: a preview based on less
// would be rejected later.
func (w *decisionWaiter) catchUp(ctx context.Context) {
	bounded, cancel := w.bounded(ctx, catchUpWait)
	defer cancel()
	_ = w.decisions.Settle(bounded, w.fleet.Snapshot().Revision()) // a slightly outdated preview is still valid
}

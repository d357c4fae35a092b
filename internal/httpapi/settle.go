package httpapi

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// pictureWait is how long an answer that waits for nothing else gives the
// fleet to show the write, so that a client reads its own writes. It takes
// about a millisecond; a fleet that has lost its watch must not cost more.
const pictureWait = 2 * time.Second

// waiting bounds ctx by a wait, and ends it when the server stops: nobody who
// waits holds up a shutdown.
func (s *Server) waiting(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	unhook := context.AfterFunc(s.stopping, cancel)
	return ctx, func() { unhook(); cancel() }
}

// settle waits until what follows from a revision is decided and visible. The
// write itself is durable, so running out of time is no failure.
func (s *Server) settle(ctx context.Context, revision int64, wait time.Duration) {
	if wait > 0 {
		bounded, cancel := s.waiting(ctx, wait)
		observed, err := s.signals.Settle(bounded, revision)
		if err == nil {
			err = s.decisions.Settle(bounded, max(revision, observed))
		}
		cancel()
		if err != nil && bounded.Err() == nil {
			s.logger.LogAttrs(ctx, slog.LevelWarn, "waiting for the decision failed",
				slog.String("request_id", requestOf(ctx).id), slog.Int64("revision", revision), slog.Any("error", err))
		}
	}
	defer s.freshen(ctx)
	bounded, cancel := s.waiting(ctx, pictureWait)
	defer cancel()
	if _, err := s.fleet.WaitRevision(bounded, revision); err != nil && bounded.Err() == nil {
		s.logger.LogAttrs(ctx, slog.LevelWarn, "waiting for the fleet failed",
			slog.String("request_id", requestOf(ctx).id), slog.Int64("revision", revision), slog.Any("error", err))
	}
}

// settled waits and answers the object as it then is: with the decision where
// there is one by now, else as it was written.
func (s *Server) settled(ctx context.Context, written *stored, wait time.Duration, status int) *objectOutput {
	s.settle(ctx, written.revision, wait)
	object, revision := written.object, written.revision
	if entry := s.fleet.Snapshot().Get(api.KeyOf(object)); entry != nil && entry.Revision() >= revision {
		object, revision = entry.Object, entry.Revision()
	}
	return &objectOutput{Status: status, ETag: entityTag(revision), Body: s.shown(auth.Of(ctx), object)}
}

// shown is an object as a reader sees it. The status of a cluster is completed
// from its metrics and reservations, which change without a write to the
// cluster, that of a policy from its workloads, and that of a score follows from
// the clock.
func (s *Server) shown(who auth.Identity, object api.Object) api.Object {
	return s.faulted(s.completed(who, s.rights.WithDetails(who, object)))
}

// faulted is an object with a condition for the damage of what is stored of it, or for
// the panics that the last work on it ended with. It stands in no store: it is about
// this server.
func (s *Server) faulted(object api.Object) api.Object {
	key := api.KeyOf(object)
	if d := s.fleet.Snapshot().Damaged(key); d != nil {
		return api.CopyWith(object, api.Condition{
			Type: api.ConditionFaulted, Status: api.ConditionTrue, Reason: api.ReasonDamaged,
			Message: "it is damaged in the store, and this is the version before: write it again with PUT or delete it, or restore a backup",
		})
	}
	if !s.options.Faults.Any() { // mostly: a list asks for every object
		return object
	}
	faults := s.options.Faults.Faulted(key.String())
	if len(faults) == 0 {
		return object
	}
	if list := api.ConditionsOf(object); list != nil && api.FindCondition(*list, api.ConditionFaulted) != nil {
		return object // what it costs is said already
	}
	return api.CopyWith(object, api.Condition{
		Type: api.ConditionFaulted, Status: api.ConditionTrue, Reason: api.ReasonServerFault,
		Message: strings.Join(faults, "; ") + "; it is tried again",
	})
}

func (s *Server) completed(who auth.Identity, object api.Object) api.Object {
	switch o := object.(type) {
	case *api.PlacementScore:
		return s.decisions.Observe(o.Observed(s.now()))
	case *api.PropagationPolicy:
		return s.resolved(who, s.boundPolicy(who, o))
	}
	return s.resolved(who, who.Disclosed(s.decisions.Observe(object)))
}

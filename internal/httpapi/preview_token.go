package httpapi

import (
	"context"
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/promise"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// redeem adds to the next version of an object the decision that a preview
// promised, so that both are written together. Without a token it does nothing.
// The error is a 412 where the promise cannot be kept.
func (ps *previews) redeem(ctx context.Context, token string, next *successor, current *stored) error {
	if token == "" {
		return nil
	}
	p, revision, err := ps.readPreview(ctx, token)
	if err != nil {
		return err
	}
	if p != nil {
		if err := auth.Of(ctx).MayRead(p.Object); err != nil {
			return err
		}
	}
	if err := p.matches(next.object); err != nil {
		return err
	}
	ps.waits.catchUp(ctx)
	if current != nil {
		carryStatus(next.object, current.object)
	} else if p.OwnUID {
		// The UID is given away once: an object that is created again must not pass
		// for the one before.
		next.object.Meta().UID = p.Object.Meta().UID
		used := *p
		used.OwnUID = false
		value, err := encodePreview(&used)
		if err != nil {
			return err
		}
		next.also = append(next.also, store.Write{Key: previewKey(p.ID), Part: store.Spec, Value: value, Expect: revision})
	}
	var writes []store.Write
	switch object := next.object.(type) {
	case *api.Placement:
		if promised, ok := p.Object.(*api.Placement); ok {
			writes, err = ps.keepPlacement(&promised.Status, object, current)
		}
	case *api.Workload:
		if promised, ok := p.Object.(*api.Workload); ok {
			writes, err = ps.keepWorkload(&promised.Status, object, current)
		}
	case *api.PropagationPolicy:
		writes, err = ps.keepBindings(ctx, p.Bindings, object)
	}
	next.also = append(next.also, writes...)
	return err
}

// matches says why the preview is not one of this object. The decision is made
// again, so what the object's own labels have to do with it shows there.
func (p *preview) matches(object api.Object) error {
	if p == nil {
		return problem.New(api.ProblemPreviewExpired, "the preview does not exist or has expired: plan again")
	}
	previewed, key := p.Object.Copy(), api.KeyOf(object)
	previewed.Meta().Labels = object.Meta().Labels
	switch {
	case api.KeyOf(previewed) != key:
		return problem.New(api.ProblemPreviewMismatch, "the preview was made for %s, not for %s: plan again", api.KeyOf(previewed), key)
	case !api.SameIntent(previewed, object):
		return problem.New(api.ProblemPreviewMismatch, "the preview was made for another spec of %s: plan again", key)
	}
	return nil
}

// keepPlacement gives a placement the previewed decision, and returns its write.
func (ps *previews) keepPlacement(promised *api.PlacementStatus, placement *api.Placement, current *stored) ([]store.Write, error) {
	status, _, err := ps.decisions.Preview(placement)
	if err != nil {
		return nil, err
	}
	if placement.Status, err = promise.Placement(promised, status); err != nil {
		return nil, err
	}
	return ps.statusWrite(placement, current)
}

// keepWorkload gives a workload the previewed binding, and returns its write.
func (ps *previews) keepWorkload(promised *api.WorkloadStatus, workload *api.Workload, current *stored) ([]store.Write, error) {
	status, _, err := ps.decisions.PreviewWorkload(workload)
	if err != nil {
		return nil, err
	}
	if err := promise.Workload(promised, &status); err != nil {
		return nil, err
	}
	workload.Status = status
	return ps.statusWrite(workload, current)
}

// statusWrite writes the status that an object has been given over the one it
// was decided from.
func (ps *previews) statusWrite(object api.Object, current *stored) ([]store.Write, error) {
	write := store.Write{Key: api.KeyOf(object), Part: store.Status, Expect: store.Any}
	if current != nil {
		write.Expect = current.statusRevision
	}
	var err error
	if write.Value, err = ps.codec.EncodeStatus(object); err != nil {
		return nil, fmt.Errorf("encode the previewed decision: %w", err)
	}
	return []store.Write{write}, nil
}

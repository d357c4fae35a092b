package httpapi

import (
	"context"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// redeem adds the decision that a preview showed to the next version of an object, so that both
// are written together. Without a token it does nothing. If the decision can no longer be
// committed, the error is a 412.
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
		// The UID is used only once: a recreated object must not be mistaken for the previous one.
		next.object.Meta().UID = p.Object.Meta().UID
		used := *p
		used.OwnUID = false
		value, err := encodePreview(&used)
		if err != nil {
			return err
		}
		next.also = append(next.also, store.Write{Key: previewKey(p.ID), Part: store.Spec, Value: value, Expect: revision})
	}
	statusRevision := int64(store.Any)
	if current != nil {
		statusRevision = current.statusRevision
	}
	ctx, cancel := context.WithTimeout(ctx, simulationTime)
	defer cancel()
	writes, err := ps.commits.Writes(ctx, p.Object, p.Bindings, next.object, statusRevision)
	next.also = append(next.also, writes...)
	return err
}

// matches says why the preview does not belong to this object. The decision is made again, so the
// effect of the object's labels shows there.
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

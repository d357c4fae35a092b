package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

type getInput struct {
	Target          operation.Target
	Wait            string `query:"wait" doc:"With resource_version: how long to wait for a newer version, at most 60s."`
	ResourceVersion string `query:"resource_version" doc:"With wait: respond as soon as the object is newer than this or a condition changes, and at the latest after the wait."`
	IfNoneMatch     string `header:"If-None-Match" doc:"Return 304 if the object still has this ETag."`
}

func (o *objects) get(ctx context.Context, info api.KindInfo, in *getInput) (*objectOutput, error) {
	key := in.Target.Key(info.Kind)
	who := auth.Of(ctx)
	if err := o.rights.MayReadKey(who, key); err != nil {
		return nil, err
	}
	tags, err := parseTags("If-None-Match", in.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	snapshot := o.fleet.Snapshot()
	entry := snapshot.Get(key)
	if entry == nil || snapshot.Damaged(key) != nil {
		return nil, o.view.notFound(key)
	}
	if err := o.rights.MayRead(who, entry.Object); err != nil {
		return nil, err
	}
	entry, err = o.newer(ctx, key, entry, in)
	if err != nil {
		return nil, err
	}
	if err := o.rights.MayRead(who, entry.Object); err != nil {
		return nil, err // the owner changed during the wait
	}
	out := &objectOutput{Status: http.StatusOK, ETag: entityTag(entry.Revision()), Body: o.view.shown(who, entry.Object)}
	// The displayed status of a cluster, score or policy may have changed although its revision has
	// not, so only an object that is shown as stored can be "not modified".
	if tags.present && tags.shows(entry.Revision()) && out.Body == any(entry.Object) {
		return &objectOutput{Status: http.StatusNotModified, ETag: out.ETag}, nil
	}
	return out, nil
}

// newer waits, if requested, until the object is newer than the client's version, or is shown
// differently although nothing was written. When the wait is over, it returns the object as it is.
func (o *objects) newer(ctx context.Context, key api.Key, entry *fleet.Entry, in *getInput) (*fleet.Entry, error) {
	wait, err := operation.ParseWait(in.Wait, 0)
	if err != nil {
		return nil, err
	}
	if in.ResourceVersion == "" {
		return entry, nil
	}
	revision, err := operation.ParseRevision("resource_version", in.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if wait == 0 || entry.Revision() > revision {
		return entry, nil
	}
	bounded, cancel := o.waits.bounded(ctx, wait)
	defer cancel()
	bounded, release := o.events.poll(bounded, key)
	defer release()
	changed, err := o.fleet.WaitNewer(bounded, key, revision)
	o.waits.freshen(ctx)
	if err := o.sessions.Check(ctx); err != nil {
		return nil, err
	}
	switch {
	case err == nil && changed == nil:
		return nil, o.view.notFound(key)
	case err == nil:
		return changed, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case bounded.Err() == nil:
		return nil, err
	}
	if entry = o.fleet.Snapshot().Get(key); entry == nil {
		return nil, o.view.notFound(key)
	}
	return entry, nil
}

package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// changes writes objects, each compared with the current version in the store.
type changes struct {
	store  Store
	codec  Codec
	fleet  *fleet.Fleet
	rights auth.Rights
	view   *view
	waits  *decisionWaiter
	audit  *auditor
}

type objectOutput struct {
	Status int
	ETag   string `header:"ETag" doc:"The resource_version in double quotes."`
	Body   any
}

// stored is an object in the store at one revision.
type stored struct {
	object         api.Object
	specRevision   int64
	statusRevision int64 // 0 if there is no status
	revision       int64 // of the last change, including the status
	// damage is set if the object is damaged. Then object is nil, and the object can only be
	// replaced or deleted.
	damage *damagedParts
}

// damagedParts says which parts of an object are damaged.
type damagedParts struct {
	spec, status bool
	// generation is the generation of the lost spec according to the remaining status.
	generation int64
}

// load reads an object from the store instead of the fleet, so that a write is compared with the
// current version. It returns nil if there is none.
func (c *changes) load(ctx context.Context, key api.Key) (*stored, error) {
	current, err := c.loadAnyhow(ctx, key)
	if err == nil && current != nil && current.damage != nil {
		return nil, problem.Damaged(key)
	}
	return current, err
}

// loadAnyhow is load for callers that accept a damaged object.
func (c *changes) loadAnyhow(ctx context.Context, key api.Key) (*stored, error) {
	spec, status, err := c.store.Read(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if spec == nil {
		return nil, nil
	}
	current := &stored{specRevision: spec.ModRevision, revision: spec.ModRevision}
	var parts damagedParts
	object, err := c.codec.DecodeSpec(key.Kind, spec.Value)
	if parts.spec = err != nil; parts.spec {
		if !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrTampered) {
			return nil, fmt.Errorf("decode %s: %w", key, err)
		}
		info, _ := api.LookupKind(key.Kind)
		object = info.New()
	}
	if status != nil {
		parts.status = c.codec.DecodeStatus(object, status.Value) != nil
		current.statusRevision = status.ModRevision
		current.revision = max(current.revision, status.ModRevision)
	}
	if parts.spec || parts.status {
		parts.generation = observedGeneration(object)
		current.damage = &parts
		return current, nil
	}
	current.object = object
	object.Meta().ResourceVersion = strconv.FormatInt(current.revision, 10)
	return current, nil
}

// observedGeneration returns the observed generation in a status, or 0.
func observedGeneration(object api.Object) int64 {
	field := reflect.ValueOf(object.StatusPart()).Elem().FieldByName("ObservedGeneration")
	if !field.IsValid() {
		return 0
	}
	return field.Int()
}

// maxAttempts limits how often a write is retried because of concurrent writes.
const maxAttempts = 100

// successor is the next version of an object, with what is written or checked in the same
// transaction.
type successor struct {
	object api.Object
	also   []store.Write
	// decide adds the decision that a preview showed. It is called once it is known that the
	// object may be written.
	decide func(*successor) error
}

// change loads an object, creates its successor with next, and stores that if there was no
// concurrent write; otherwise it retries. Every write of an object, and the check of its
// references, goes through here. A nil successor leaves the object unchanged. It returns what is
// stored afterwards.
func (c *changes) change(ctx context.Context, key api.Key, pre precondition, next func(current *stored) (*successor, error)) (*stored, error) {
	return c.changeLoaded(ctx, key, c.load, pre, next)
}

// changeLoaded is change with a function to load the object.
func (c *changes) changeLoaded(ctx context.Context, key api.Key, load func(context.Context, api.Key) (*stored, error), pre precondition, next func(current *stored) (*successor, error)) (*stored, error) {
	for range maxAttempts {
		current, err := load(ctx, key)
		if err != nil {
			return nil, err
		}
		result, asked, err := c.attempt(ctx, key, current, pre, next)
		if asked && isConflict(err) {
			continue
		}
		return result, err
	}
	return nil, problem.New(api.ProblemConflict, "%s is being changed by too many other requests: repeat the request", key)
}

// replace is change for who does not touch the present object, and can do with a damaged
// one. It begins with the object as the fleet shows it: mostly that is how it is, and
// where it is not, the write fails. Whatever else comes of it is found out once more with
// what the store has.
func (c *changes) replace(ctx context.Context, key api.Key, pre precondition, next func(current *stored) (*successor, error)) (*stored, error) {
	if snapshot := c.fleet.Snapshot(); snapshot.Damaged(key) == nil {
		var current *stored
		if entry := snapshot.Get(key); entry != nil {
			current = &stored{object: entry.Object, specRevision: entry.SpecRevision, statusRevision: entry.StatusRevision, revision: entry.Revision()}
		}
		if result, asked, err := c.attempt(ctx, key, current, pre, next); asked && !isConflict(err) {
			return result, err
		}
	}
	return c.changeLoaded(ctx, key, c.loadAnyhow, pre, next)
}

func isConflict(err error) bool {
	_, conflict := errors.AsType[*store.ConflictError](err)
	return conflict
}

// attempt changes an object as it is said to be. asked says that the store was asked to
// write it; the error is a *store.ConflictError where the object is another one by then.
func (c *changes) attempt(ctx context.Context, key api.Key, current *stored, pre precondition, next func(current *stored) (*successor, error)) (result *stored, asked bool, err error) {
	follows, err := next(current)
	if err == nil && follows != nil {
		var before api.Object
		if current != nil {
			before = current.object
		}
		err = c.rights.MayRefer(auth.Of(ctx), follows.object, before)
	}
	// Rights come first: who may not write an object does not learn its resource_version.
	if status := problem.Of(err).Status; err == nil || status != http.StatusForbidden && status != http.StatusNotFound {
		err = cmp.Or(pre.check(current), err)
	}
	if err != nil {
		return nil, false, err
	}
	if follows == nil {
		if current != nil {
			c.audit.wrote(ctx, key, current, current.object, current.revision)
		}
		return current, false, nil
	}
	object := follows.object
	if follows.decide != nil {
		if err := follows.decide(follows); err != nil {
			return nil, false, err
		}
	}
	value, err := c.codec.EncodeSpec(object)
	if err != nil {
		return nil, false, fmt.Errorf("encode %s: %w", key, err)
	}
	var expect int64 // the object must not exist
	if current != nil {
		expect = current.specRevision
	}
	writes := append([]store.Write{{Key: key, Part: store.Spec, Value: value, Expect: expect}}, follows.also...)
	revision, err := c.store.Commit(ctx, writes...)
	if err != nil {
		return nil, true, fmt.Errorf("write %s: %w", key, err)
	}
	object.Meta().ResourceVersion = strconv.FormatInt(revision, 10)
	c.audit.wrote(ctx, key, current, object, revision)
	return &stored{object: object, specRevision: revision, revision: revision}, true, nil
}

// actorOf returns who makes a request.
func actorOf(ctx context.Context) *api.Actor {
	return &api.Actor{Token: auth.Of(ctx).TokenID, RequestID: requestOf(ctx).id}
}

// created sets the server's metadata of a new object.
func created(ctx context.Context, meta *api.Metadata, now time.Time) {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand crashes the program instead
	meta.UID = hex.EncodeToString(id[:])
	meta.Generation = 1
	meta.CreatedAt, meta.ModifiedAt = &now, &now
	meta.WrittenBy = actorOf(ctx)
}

// replaced carries over the server's metadata of the previous version.
func replaced(ctx context.Context, meta *api.Metadata, before api.Metadata, now time.Time) {
	meta.UID = before.UID
	meta.Generation = before.Generation + 1
	meta.CreatedAt, meta.ModifiedAt = before.CreatedAt, &now
	meta.RescheduleRequests = before.RescheduleRequests
	meta.WrittenBy = actorOf(ctx)
}

func (c *changes) remove(ctx context.Context, key api.Key, pre precondition) (int64, error) {
	who := auth.Of(ctx)
	if err := c.mayRemove(who, key); err != nil {
		return 0, err
	}
	if !operation.Addressable(key) {
		return 0, c.view.notFound(key)
	}
	for range maxAttempts {
		current, err := c.loadAnyhow(ctx, key)
		if err != nil {
			return 0, err
		}
		switch {
		case current == nil:
			return 0, c.view.notFound(key)
		case current.damage != nil:
			if err := who.MayRepair(api.VerbDelete, key); err != nil {
				return 0, err
			}
		default:
			if err := c.mayDelete(who, current.object); err != nil {
				return 0, err
			}
		}
		if err := pre.check(current); err != nil {
			return 0, err
		}
		// The store deletes the status too.
		revision, err := c.store.Commit(ctx, store.Write{Key: key, Part: store.Spec, Expect: current.specRevision})
		if isConflict(err) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("delete %s: %w", key, err)
		}
		c.audit.wrote(ctx, key, current, nil, revision)
		return revision, nil
	}
	return 0, problem.New(api.ProblemConflict, "%s is being changed by too many other requests: repeat the request", key)
}

// mayRemove is checked before the object is looked up.
func (c *changes) mayRemove(who auth.Identity, key api.Key) error {
	err := c.rights.MayRemove(who, key)
	if errors.Is(err, auth.ErrNoCluster) {
		return c.view.notFound(key)
	}
	return err
}

// mayWrite and mayDelete are checked once the object is known.
func (c *changes) mayWrite(who auth.Identity, object api.Object) error {
	return c.found(object, c.rights.MayWrite(who, object))
}

func (c *changes) mayDelete(who auth.Identity, object api.Object) error {
	return c.found(object, c.rights.MayDelete(who, object))
}

// found returns the error of a check. An object whose cluster does not exist does not either.
func (c *changes) found(object api.Object, err error) error {
	if errors.Is(err, auth.ErrNoCluster) {
		return c.view.notFound(api.KeyOf(object))
	}
	return err
}

// mayPut is checked before an object is written. If it belongs to a cluster, the cluster that was
// checked must still exist when the object is written: the returned writes check that. With afresh,
// the cluster is read from the store, because the fleet's copy proved to be outdated.
func (c *changes) mayPut(ctx context.Context, who auth.Identity, object api.Object, afresh bool) ([]store.Write, error) {
	if !auth.OfCluster(object.ObjectKind()) {
		return nil, who.MayWrite(object)
	}
	if err := who.MayWriteSomeOf(object.ObjectKind()); err != nil {
		return nil, err
	}
	key := auth.ClusterKey(api.KeyOf(object).Namespace)
	var cluster api.Object
	var revision int64
	if entry := c.fleet.Snapshot().Get(key); entry != nil && !afresh {
		cluster, revision = entry.Object, entry.SpecRevision
	} else {
		current, err := c.load(ctx, key)
		if err != nil {
			return nil, err
		}
		if current == nil {
			return nil, problem.New(api.ProblemNotFound, "%s does not exist: create it before its %s", key, collectionOf(object))
		}
		cluster, revision = current.object, current.specRevision
	}
	if err := who.MayWriteOf(object.ObjectKind(), cluster); err != nil {
		return nil, err
	}
	return []store.Write{{Key: key, Part: store.Spec, Expect: revision, CheckOnly: true}}, nil
}

func collectionOf(object api.Object) string {
	info, _ := api.LookupKind(object.ObjectKind())
	return info.Collection
}

// outcome waits, and returns the object as it then is: with the decision if there is one by now,
// otherwise as it was written.
func (c *changes) outcome(ctx context.Context, written *stored, wait time.Duration, status int) *objectOutput {
	c.waits.await(ctx, written.revision, wait)
	return c.present(ctx, written, status)
}

// present returns an object as it is now, or as it was written if that is newer.
func (c *changes) present(ctx context.Context, written *stored, status int) *objectOutput {
	object, revision := written.object, written.revision
	if entry := c.fleet.Snapshot().Get(api.KeyOf(object)); entry != nil && entry.Revision() >= revision {
		object, revision = entry.Object, entry.Revision()
	}
	return &objectOutput{Status: status, ETag: entityTag(revision), Body: c.view.shown(auth.Of(ctx), object)}
}

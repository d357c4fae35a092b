package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// PutInput is the input of every PUT of an object. It is exported because huma ignores embedded
// unexported types.
type PutInput struct {
	Target      operation.Target
	Payload     operation.Payload
	IfMatch     string `header:"If-Match" doc:"Write only if the object still has this resource_version, in double quotes. Changes of the status are ignored."`
	IfNoneMatch string `header:"If-None-Match" doc:"*: create the object, and fail if it exists."`
	Wait        string `query:"wait" doc:"How long to wait for the resulting decision: default 10s, at most 60s, 0s to not wait."`
}

type putPreviewedInput struct {
	PutInput
	PreviewToken string `header:"Preview-Token" doc:"Commit exactly the decision of this preview, or return 412. Ignored if the object exists and does not change."`
}

func (o *objects) put(ctx context.Context, info api.KindInfo, in *PutInput, previewToken string) (*objectOutput, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	pre, err := parsePrecondition(in.IfMatch, in.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	key := in.Target.Key(info.Kind)
	intent, err := decodeIntent(info, key, in.Payload.Data)
	if err != nil {
		return nil, err
	}
	r := &replacement{
		objects: o, who: auth.Of(ctx), intent: intent, document: in.Payload.Data, previewToken: previewToken, status: http.StatusOK,
	}
	if r.guard, err = o.changes.mayPut(ctx, r.who, intent, false); err != nil {
		return nil, err
	}
	if err := api.CheckOutbound(intent, o.network).And(o.issuers.CheckBinding(intent)).Err(); err != nil {
		return nil, err
	}
	next := func(current *stored) (*successor, error) { return r.next(ctx, current) }
	var result *stored
	if previewToken == "" {
		result, err = o.changes.replace(ctx, key, pre, next)
	} else {
		result, err = o.changes.changeLoaded(ctx, key, o.changes.loadAnyhow, pre, next)
	}
	if err != nil {
		return nil, err
	}
	if r.quiet {
		wait = 0
	}
	return o.changes.outcome(ctx, result, wait, r.status), nil
}

// replacement is the effect of one PUT on an object. It may be retried.
type replacement struct {
	*objects
	who          auth.Identity
	intent       api.Object
	document     []byte // the intent as it was sent
	previewToken string
	// guard is written together with the object; see mayPut.
	guard []store.Write
	tried bool
	// status is that of the response, and quiet says that no decision follows.
	status int
	quiet  bool
}

// next returns the next version of the object, or nil if nothing changes.
func (r *replacement) next(ctx context.Context, current *stored) (*successor, error) {
	if r.tried && r.guard != nil {
		var err error
		if r.guard, err = r.changes.mayPut(ctx, r.who, r.intent, true); err != nil {
			return nil, err
		}
	}
	r.tried, r.quiet = true, false
	now := r.now().UTC()
	if current != nil && current.damage != nil {
		return r.repaired(ctx, current.damage, now)
	}
	if current != nil {
		if err := r.changes.mayWrite(r.who, current.object); err != nil {
			return nil, err
		}
	}
	next, err := r.successor(ctx, current)
	switch {
	case err != nil:
		return nil, err
	case current == nil:
		r.status = http.StatusCreated
		created(ctx, next.object.Meta(), now)
		return next, nil
	}
	r.status = http.StatusOK
	if api.SameIntent(current.object, next.object) {
		return nil, nil
	}
	replaced(ctx, next.object.Meta(), *current.object.Meta(), now)
	r.quiet = renews(current.object, next.object, now)
	return next, nil
}

// successor returns the intent with the secrets that it keeps of the current object, and with the
// decision of its preview.
func (r *replacement) successor(ctx context.Context, current *stored) (*successor, error) {
	next := &successor{object: r.intent.Copy(), also: r.guard}
	next.decide = func(next *successor) error { return r.previews.redeem(ctx, r.previewToken, next, current) }
	return next, keepSecrets(next.object, current, r.document)
}

// repaired returns the replacement of a damaged object. If its decision is intact, it is kept as
// the basis for the next one.
func (r *replacement) repaired(ctx context.Context, damage *damagedParts, now time.Time) (*successor, error) {
	if err := r.who.MayRepair(api.VerbWrite, api.KeyOf(r.intent)); err != nil {
		return nil, err
	}
	next, err := r.successor(ctx, nil)
	if err != nil {
		return nil, err
	}
	created(ctx, next.object.Meta(), now)
	next.object.Meta().Generation = damage.generation + 1
	if damage.status {
		next.also = append(slices.Clip(next.also), store.Write{Key: api.KeyOf(r.intent), Part: store.Status, Expect: store.Any})
	}
	return next, nil
}

// decodeIntent decodes and validates what a user requests. The status and the server's metadata are
// ignored, because users cannot write them.
func decodeIntent(info api.KindInfo, key api.Key, data []byte) (api.Object, error) {
	object := info.New()
	// Report invalid fields together with validation errors of the others.
	var unread api.FieldErrors
	if err := operation.Decode(data, object); err != nil && !errors.As(err, &unread) {
		return nil, err
	}
	// The document may omit what the path says, but must not contradict it.
	var errs api.FieldErrors
	if kind := statedKind(object); kind != "" && kind != info.Kind {
		errs.Add("kind", "%q must be %q here", string(kind), string(info.Kind))
	}
	meta := object.Meta()
	if meta.Name == "" {
		meta.Name = key.Name
	}
	switch info.Scope {
	case api.Global:
	case api.Namespaced, api.GlobalOrNamespaced:
		meta.Namespace = cmp.Or(meta.Namespace, key.Namespace)
	case api.OfCluster:
		meta.Cluster = cmp.Or(meta.Cluster, meta.Namespace, key.Namespace)
	}
	object.SetDefaults()
	if meta.Name != key.Name {
		errs.Add("metadata.name", "%q must be %q, as in the path", meta.Name, key.Name)
	}
	switch {
	case info.Scope == api.OfCluster && meta.Cluster != key.Namespace:
		errs.Add("metadata.cluster", "%q must be %q, as in the path", meta.Cluster, key.Namespace)
	case info.Scope != api.OfCluster && info.Scope != api.Global && meta.Namespace != key.Namespace:
		errs.Add("metadata.namespace", "%q must be %q, as in the path", meta.Namespace, key.Namespace)
	}
	*meta = api.Metadata{Name: meta.Name, Namespace: meta.Namespace, Cluster: meta.Cluster, Labels: meta.Labels}
	reflect.ValueOf(object.StatusPart()).Elem().SetZero()
	errs.Join(object.Validate())
	return object, unread.And(errs).Err()
}

// statedKind returns the kind in the document, which objects keep in a field of that name.
func statedKind(object api.Object) api.Kind {
	field := reflect.ValueOf(object).Elem().FieldByName("Kind")
	if !field.IsValid() {
		return ""
	}
	return api.Kind(field.String())
}

type deleteInput struct {
	Target  operation.Target
	IfMatch string `header:"If-Match" doc:"Delete only if the object still has this resource_version, in double quotes."`
	Wait    string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

func (o *objects) delete(ctx context.Context, info api.KindInfo, in *deleteInput) (*struct{}, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	pre, err := parsePrecondition(in.IfMatch, "")
	if err != nil {
		return nil, err
	}
	key := in.Target.Key(info.Kind)
	revision, err := o.changes.remove(ctx, key, pre)
	if err != nil {
		return nil, err
	}
	o.waits.await(ctx, revision, wait)
	return nil, nil
}

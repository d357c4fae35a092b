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

// PutInput is the input of every PUT of an object. It is exported because huma
// does not look into embedded types that are not.
type PutInput struct {
	Target      operation.Target
	Payload     operation.Payload
	IfMatch     string `header:"If-Match" doc:"Write only if the object is as it was at this resource_version, given in double quotes. A status written since does not matter."`
	IfNoneMatch string `header:"If-None-Match" doc:"*: only create."`
	Wait        string `query:"wait" doc:"How long to wait for the decision that follows: 10s when absent, at most 60s, 0s not at all."`
}

type putPreviewedInput struct {
	PutInput
	PreviewToken string `header:"Preview-Token" doc:"Commit exactly the decision of this preview, or answer 412. Ignored where the object exists and nothing in it changes."`
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
	who := auth.Of(ctx)
	guard, err := o.changes.mayPut(ctx, who, intent, false)
	if err != nil {
		return nil, err
	}
	if err := api.CheckOutbound(intent, o.network).Err(); err != nil {
		return nil, err
	}
	status, again, quiet := http.StatusOK, false, false
	result, err := o.changes.changeLoaded(ctx, key, o.changes.loadAnyhow, pre, func(current *stored) (*successor, error) {
		if again && guard != nil {
			if guard, err = o.changes.mayPut(ctx, who, intent, true); err != nil {
				return nil, err
			}
		}
		again = true
		now := o.now().UTC()
		if current != nil && current.damage != nil {
			next, err := repaired(who, intent.Copy(), current.damage, guard, now)
			if err != nil {
				return nil, err
			}
			if err := keepSecrets(next.object, nil, in.Payload.Data); err != nil {
				return nil, err
			}
			next.decide = func(next *successor) error { return o.previews.redeem(ctx, previewToken, next, nil) }
			return next, nil
		}
		if current != nil {
			if err := o.changes.mayWrite(who, current.object); err != nil {
				return nil, err
			}
		}
		next := &successor{object: intent.Copy(), also: guard}
		next.decide = func(next *successor) error { return o.previews.redeem(ctx, previewToken, next, current) }
		if err := keepSecrets(next.object, current, in.Payload.Data); err != nil {
			return nil, err
		}
		if current == nil {
			status = http.StatusCreated
			created(next.object.Meta(), now)
			return next, nil
		}
		status = http.StatusOK
		if api.SameIntent(current.object, next.object) {
			return nil, nil
		}
		replaced(next.object.Meta(), *current.object.Meta(), now)
		quiet = renews(current.object, next.object, now)
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	if quiet {
		wait = 0
	}
	return o.changes.outcome(ctx, result, wait, status), nil
}

// decodeIntent reads and checks what a user asks for. Status and what the
// server keeps of the metadata are dropped: nobody writes them.
func decodeIntent(info api.KindInfo, key api.Key, data []byte) (api.Object, error) {
	object := info.New()
	// Wrong fields are reported together with what is wrong with the others.
	var unread api.FieldErrors
	if err := operation.Decode(data, object); err != nil && !errors.As(err, &unread) {
		return nil, err
	}
	// The document may leave out what the path says, and must not contradict it.
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
	errs = append(errs, object.Validate()...)
	return object, unread.And(errs).Err()
}

// statedKind is the kind that the document gave; objects keep it in a field of
// that name.
func statedKind(object api.Object) api.Kind {
	field := reflect.ValueOf(object).Elem().FieldByName("Kind")
	if !field.IsValid() {
		return ""
	}
	return api.Kind(field.String())
}

// repaired is an object in the place of one that is damaged. A decision that is
// sound stays, for the new spec to start from.
func repaired(who auth.Identity, intent api.Object, damage *damagedParts, guard []store.Write, now time.Time) (*successor, error) {
	if err := who.MayRepair(api.KeyOf(intent)); err != nil {
		return nil, err
	}
	created(intent.Meta(), now)
	intent.Meta().Generation = damage.generation + 1
	next := &successor{object: intent, also: guard}
	if damage.status {
		next.also = append(slices.Clip(guard), store.Write{Key: api.KeyOf(intent), Part: store.Status, Expect: store.Any})
	}
	return next, nil
}

type deleteInput struct {
	Target  operation.Target
	IfMatch string `header:"If-Match" doc:"Delete only if the object is as it was at this resource_version, given in double quotes."`
	Wait    string `query:"wait" doc:"How long to wait for the decisions that follow: 10s when absent, at most 60s, 0s not at all."`
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

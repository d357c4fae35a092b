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
	"slices"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// stored is an object as the store has it at one moment.
type stored struct {
	object         api.Object
	specRevision   int64
	statusRevision int64 // 0 where there is no status
	revision       int64 // of the last change, status included
	// damage is set on an object that is damaged. Its object is then nil, and it
	// can only be replaced or deleted.
	damage *damagedParts
}

// damagedParts says which parts of an object are damaged.
type damagedParts struct {
	spec, status bool
	// generation is what the status that is left says about the spec that is lost.
	generation int64
}

// load reads an object past the fleet, so that a write compares with the truth.
// It returns nil when there is none.
func (s *Server) load(ctx context.Context, key api.Key) (*stored, error) {
	current, err := s.loadAnyhow(ctx, key)
	if err == nil && current != nil && current.damage != nil {
		return nil, problem.Damaged(key)
	}
	return current, err
}

// loadAnyhow is load for who can do with an object that is damaged.
func (s *Server) loadAnyhow(ctx context.Context, key api.Key) (*stored, error) {
	spec, status, err := s.store.Read(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if spec == nil {
		return nil, nil
	}
	current := &stored{specRevision: spec.ModRevision, revision: spec.ModRevision}
	var parts damagedParts
	object, err := s.codec.DecodeSpec(key.Kind, spec.Value)
	if parts.spec = err != nil; parts.spec {
		if !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrTampered) {
			return nil, fmt.Errorf("decode %s: %w", key, err)
		}
		info, _ := api.LookupKind(key.Kind)
		object = info.New()
	}
	if status != nil {
		parts.status = s.codec.DecodeStatus(object, status.Value) != nil
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

// observedGeneration is the generation that a status answers, 0 where it does
// not say.
func observedGeneration(object api.Object) int64 {
	field := reflect.ValueOf(object.StatusPart()).Elem().FieldByName("ObservedGeneration")
	if !field.IsValid() {
		return 0
	}
	return field.Int()
}

// maxAttempts bounds how often a write starts again because another write came
// in between.
const maxAttempts = 100

// successor is the next version of an object, and what is written or checked
// with it in one transaction.
type successor struct {
	object api.Object
	also   []store.Write
	// decide completes it with a decision that is written along, where one was
	// promised. It is called once it is known that the object may be written.
	decide func(*successor) error
}

// change loads an object, lets next make its successor and stores that if
// nobody wrote in between; otherwise it starts again. Every object that is written
// comes through here, and with it all that it names. A nil successor leaves
// the object as it is. It returns what the store has afterwards.
func (s *Server) change(ctx context.Context, key api.Key, pre precondition, next func(current *stored) (*successor, error)) (*stored, error) {
	return s.changeLoaded(ctx, key, s.load, pre, next)
}

// changeLoaded is change with a way to load the object.
func (s *Server) changeLoaded(ctx context.Context, key api.Key, load func(context.Context, api.Key) (*stored, error), pre precondition, next func(current *stored) (*successor, error)) (*stored, error) {
	for range maxAttempts {
		current, err := load(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := pre.check(current); err != nil {
			return nil, err
		}
		follows, err := next(current)
		if err != nil || follows == nil {
			return current, err
		}
		object := follows.object
		var before api.Object
		if current != nil {
			before = current.object
		}
		if err := s.rights.MayRefer(auth.Of(ctx), object, before); err != nil {
			return nil, err
		}
		if follows.decide != nil {
			if err := follows.decide(follows); err != nil {
				return nil, err
			}
		}
		value, err := s.codec.EncodeSpec(object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", key, err)
		}
		var expect int64 // the object must not exist
		if current != nil {
			expect = current.specRevision
		}
		writes := append([]store.Write{{Key: key, Part: store.Spec, Value: value, Expect: expect}}, follows.also...)
		revision, err := s.store.Commit(ctx, writes...)
		if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", key, err)
		}
		object.Meta().ResourceVersion = strconv.FormatInt(revision, 10)
		return &stored{object: object, specRevision: revision, revision: revision}, nil
	}
	return nil, problem.New(api.ProblemConflict, "%s is being changed by too many others: repeat the request", key)
}

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

type objectOutput struct {
	Status int
	ETag   string `header:"ETag" doc:"The resource_version in double quotes."`
	Body   any
}

func (s *Server) put(ctx context.Context, info api.KindInfo, in *PutInput, previewToken string) (*objectOutput, error) {
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
	guard, err := s.mayPut(ctx, who, intent, false)
	if err != nil {
		return nil, err
	}
	if err := api.CheckOutbound(intent, s.options.Network).Err(); err != nil {
		return nil, err
	}
	status, again, quiet := http.StatusOK, false, false
	result, err := s.changeLoaded(ctx, key, s.loadAnyhow, pre, func(current *stored) (*successor, error) {
		if again && guard != nil {
			if guard, err = s.mayPut(ctx, who, intent, true); err != nil {
				return nil, err
			}
		}
		again = true
		now := s.now().UTC()
		if current != nil && current.damage != nil {
			next, err := repaired(who, intent.Copy(), current.damage, guard, now)
			if err != nil {
				return nil, err
			}
			if err := keepSecrets(next.object, nil, in.Payload.Data); err != nil {
				return nil, err
			}
			next.decide = func(next *successor) error { return s.redeem(ctx, previewToken, next, nil) }
			return next, nil
		}
		if current != nil {
			if err := s.mayWrite(who, current.object); err != nil {
				return nil, err
			}
		}
		next := &successor{object: intent.Copy(), also: guard}
		next.decide = func(next *successor) error { return s.redeem(ctx, previewToken, next, current) }
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
	return s.settled(ctx, result, wait, status), nil
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

// created fills in what the server keeps of a new object.
func created(meta *api.Metadata, now time.Time) {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	meta.UID = hex.EncodeToString(id[:])
	meta.Generation = 1
	meta.CreatedAt, meta.ModifiedAt = &now, &now
}

// replaced carries over what the server keeps of the object before.
func replaced(meta *api.Metadata, before api.Metadata, now time.Time) {
	meta.UID = before.UID
	meta.Generation = before.Generation + 1
	meta.CreatedAt, meta.ModifiedAt = before.CreatedAt, &now
	meta.RescheduleRequests = before.RescheduleRequests
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

func (s *Server) delete(ctx context.Context, info api.KindInfo, in *deleteInput) (*struct{}, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	pre, err := parsePrecondition(in.IfMatch, "")
	if err != nil {
		return nil, err
	}
	key := in.Target.Key(info.Kind)
	revision, err := s.remove(ctx, key, pre)
	if err != nil {
		return nil, err
	}
	s.settle(ctx, revision, wait)
	return nil, nil
}

func (s *Server) remove(ctx context.Context, key api.Key, pre precondition) (int64, error) {
	who := auth.Of(ctx)
	if err := s.mayRemove(who, key); err != nil {
		return 0, err
	}
	if !operation.Addressable(key) {
		return 0, s.notFound(key)
	}
	for range maxAttempts {
		current, err := s.loadAnyhow(ctx, key)
		if err != nil {
			return 0, err
		}
		switch {
		case current == nil:
			return 0, s.notFound(key)
		case current.damage != nil:
			if err := who.MayRepair(key); err != nil {
				return 0, err
			}
		default:
			if err := s.mayWrite(who, current.object); err != nil {
				return 0, err
			}
		}
		if err := pre.check(current); err != nil {
			return 0, err
		}
		// The store deletes the status along with it.
		revision, err := s.store.Commit(ctx, store.Write{Key: key, Part: store.Spec, Expect: current.specRevision})
		if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("delete %s: %w", key, err)
		}
		return revision, nil
	}
	return 0, problem.New(api.ProblemConflict, "%s is being changed by too many others: repeat the request", key)
}

package history

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Decoder decodes stored objects; *store.Codec implements it.
type Decoder interface {
	DecodeSpec(kind api.Kind, value []byte) (api.Object, error)
	DecodeStatus(object api.Object, value []byte) error
}

// Past is the fleet after a pass: what it decided on, and what it decided.
type Past struct {
	// Revision is that of the last decision that is included, or of the fleet that the pass saw, and Time
	// for which the pass decided.
	Revision int64
	Time     time.Time
	Objects  []api.Object
}

// Get returns an object, or nil.
func (p *Past) Get(key api.Key) api.Object {
	if i, ok := slices.BinarySearchFunc(p.Objects, key, func(o api.Object, key api.Key) int { return api.KeyOf(o).Compare(key) }); ok {
		return p.Objects[i]
	}
	return nil
}

// Past returns the fleet after the last pass that was recorded before a revision, or, if the revision is
// that of a decision, after the pass that made it. A *GoneError says from when on it is kept.
func (l *Log) Past(ctx context.Context, revision int64, codec Decoder) (*Past, error) {
	state, err := l.rebuild(ctx, revision)
	if err != nil {
		return nil, err
	}
	r := recollection{codec: codec, objects: make(map[api.Key]api.Object, len(state.objects)/2)}
	for _, record := range state.objects {
		if err := r.take(record); err != nil {
			return nil, err
		}
	}
	past := &Past{Revision: state.revision, Time: state.time}
	for _, item := range state.before {
		past.Revision = max(past.Revision, item.Cursor.Revision)
		if err := r.decide(item); err != nil {
			return nil, err
		}
	}
	// A pass writes its decisions in several transactions.
	query := Query{After: Cursor{Revision: revision - 1, Number: maxNumber}, Limit: 1000}
	for {
		page, err := l.Read(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if item.Gap != nil {
				continue
			}
			tags, err := decodeTags(item.Record)
			if err != nil || item.Cursor.Revision > revision && tags.Time.After(state.time) {
				return r.past(past), nil //nolint:nilerr // a damaged record ends what is known
			}
			past.Revision = max(past.Revision, item.Cursor.Revision)
			if err := r.decide(item); err != nil {
				return nil, err
			}
		}
		if page.Next == (Cursor{}) {
			return r.past(past), nil
		}
		query.After = page.Next
	}
}

// maxNumber is above the number of every record in a transaction.
const maxNumber = 1<<31 - 1

// recollection puts together the objects of a pass.
type recollection struct {
	codec   Decoder
	objects map[api.Key]api.Object
}

// take takes a part of an object as the pass saw it. Specs come first.
func (r *recollection) take(record store.Record) error {
	if record.Value == nil {
		return nil
	}
	if record.Part == store.Status {
		object := r.objects[record.Key]
		if object == nil {
			return nil
		}
		if err := r.codec.DecodeStatus(object, record.Value); err != nil {
			return fmt.Errorf("decode what was decided on: %w", err)
		}
		return nil
	}
	object, err := r.codec.DecodeSpec(record.Key.Kind, record.Value)
	if err != nil {
		return fmt.Errorf("decode what was decided on: %w", err)
	}
	if cluster, ok := object.(*api.Cluster); ok && cluster.Spec.Kubernetes != nil {
		// A cluster with a kubeconfig is pending until it was observed. The history has no secrets.
		kubernetes := *cluster.Spec.Kubernetes
		kubernetes.Kubeconfig = api.NewSecret("not in the history")
		cluster.Spec.Kubernetes = &kubernetes
	}
	r.objects[record.Key] = object
	return nil
}

// decide applies a decision of the pass.
func (r *recollection) decide(item Item) error {
	if item.Gap != nil {
		return nil
	}
	d, err := decodeDocument(item)
	if err != nil {
		return err
	}
	if err := r.written(&d); err != nil {
		return err
	}
	entry, status := d.entry(item), d.Status
	object := r.objects[entry.Object.Key]
	switch {
	case object == nil || object.Meta().UID != entry.Object.UID:
	case entry.After == nil:
		delete(r.objects, entry.Object.Key)
	case status != nil:
		object = object.Copy()
		if err := r.codec.DecodeStatus(object, status); err != nil {
			return fmt.Errorf("decode a decision: %w", err)
		}
		r.objects[entry.Object.Key] = object
	default:
		if p, ok := object.(*api.Placement); ok {
			r.objects[entry.Object.Key] = decided(p, &entry)
		}
	}
	return nil
}

// written applies the spec that was written together with a decision, which no pass has seen before.
func (r *recollection) written(d *document) error {
	if d.Written == nil || d.Cause == nil || d.Cause.Object == nil {
		return nil
	}
	object, err := r.codec.DecodeSpec(d.Cause.Object.Kind, d.Written)
	if err != nil {
		return fmt.Errorf("decode what was written with a decision: %w", err)
	}
	if before := r.objects[*d.Cause.Object]; before != nil && before.Meta().UID == object.Meta().UID {
		reflect.ValueOf(object.StatusPart()).Elem().Set(reflect.ValueOf(before.StatusPart()).Elem())
	}
	r.objects[*d.Cause.Object] = object
	return nil
}

// decided returns a placement with a decision of which only the clusters are known.
func decided(p *api.Placement, entry *api.HistoryEntry) *api.Placement {
	copied := *p
	at := entry.Time
	since := map[string]*time.Time{}
	for _, d := range p.Status.Decisions {
		since[d.Cluster] = d.Since
	}
	copied.Status.Clusters = entry.After.Clusters
	copied.Status.Decisions = make([]api.Decision, len(entry.After.Clusters))
	for i, name := range entry.After.Clusters {
		copied.Status.Decisions[i] = api.Decision{Cluster: name, Rank: int64(i + 1), Since: cmp.Or(since[name], &at)}
	}
	copied.Status.ScheduledAt = &at
	copied.Status.ObservedGeneration = p.Metadata.Generation
	copied.Status.ObservedRescheduleRequests = p.Metadata.RescheduleRequests
	return &copied
}

func (r *recollection) past(past *Past) *Past {
	past.Objects = make([]api.Object, 0, len(r.objects))
	for _, object := range r.objects {
		past.Objects = append(past.Objects, object)
	}
	slices.SortFunc(past.Objects, func(a, b api.Object) int { return api.KeyOf(a).Compare(api.KeyOf(b)) })
	return past
}

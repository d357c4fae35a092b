package promise

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Keeper keeps promises: it has the decision made again, compares it with the one that
// was shown, and returns the writes that store it.
type Keeper struct {
	Decisions Decisions
	Fleet     *fleet.Fleet
	// EncodeStatus is the status of an object as the store holds it.
	EncodeStatus func(object api.Object) ([]byte, error)
}

// Decisions are made as they would be made now.
type Decisions interface {
	// Preview is the status that a placement would get, and why, if it were stored
	// as given: with its uid, its generation, and the status it has at present.
	Preview(placement *api.Placement) (status api.PlacementStatus, explanation *api.Explanation, err error)
	// PreviewWorkload is Preview for a workload.
	PreviewWorkload(workload *api.Workload) (status api.WorkloadStatus, explanation *api.Explanation, err error)
	// PreviewPolicy is what becomes of every workload that follows a policy, or
	// would if the policy were stored as given. It knows at least what the fleet
	// shows.
	PreviewPolicy(ctx context.Context, policy *api.PropagationPolicy) (map[api.Key]api.PreviewedWorkload, error)
}

// Keep gives an object the decision that was promised for it, and returns the writes that
// store it: the status of the object, which must be of a revision, or those of the
// workloads of a policy. promised is the object as it was shown, with bindings where it is
// a policy. The error is a BrokenError where the decision would be another one by now.
func (k *Keeper) Keep(ctx context.Context, promised api.Object, bindings []Binding, object api.Object, statusRevision int64) ([]store.Write, error) {
	switch object := object.(type) {
	case *api.Placement:
		was, ok := promised.(*api.Placement)
		if !ok {
			return nil, nil
		}
		now, _, err := k.Decisions.Preview(object)
		if err != nil {
			return nil, err
		}
		if object.Status, err = placement(&was.Status, now); err != nil {
			return nil, err
		}
	case *api.Workload:
		was, ok := promised.(*api.Workload)
		if !ok {
			return nil, nil
		}
		now, _, err := k.Decisions.PreviewWorkload(object)
		if err != nil {
			return nil, err
		}
		if err := workload(&was.Status, &now); err != nil {
			return nil, err
		}
		object.Status = now
	case *api.PropagationPolicy:
		return k.keepBindings(ctx, bindings, object)
	default:
		return nil, nil
	}
	value, err := k.EncodeStatus(object)
	if err != nil {
		return nil, fmt.Errorf("encode the previewed decision: %w", err)
	}
	return []store.Write{{Key: api.KeyOf(object), Part: store.Status, Expect: statusRevision, Value: value}}, nil
}

// The most that is written together with a policy: each binding takes two of the
// 128 operations of a transaction, the policy and its preview take the rest.
const (
	MaxBindings     = 60
	maxBindingBytes = 512 << 10
)

// keepBindings returns the writes that give workloads the previewed bindings
// together with their policy. Of more workloads than fit there are none: they
// are decided anew once the policy is written.
func (k *Keeper) keepBindings(ctx context.Context, promised []Binding, policy *api.PropagationPolicy) ([]store.Write, error) {
	for {
		before := k.Fleet.Snapshot()
		workloads, err := k.Decisions.PreviewPolicy(ctx, policy)
		if err != nil {
			return nil, err
		}
		if err := compareBindings(promised, Bindings(workloads)); err != nil {
			return nil, err
		}
		writes, err := k.bindingWrites(before, workloads)
		if err != nil || len(writes) == 0 {
			return nil, err
		}
		// What is the same before and after the bindings were made is what they were
		// made from.
		if after := k.Fleet.Snapshot(); same(before, after, maps.Keys(workloads)) {
			return writes, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("preview workloads that do not stop changing: %w", err)
		}
	}
}

// same reports whether two snapshots show the same objects for keys.
func same(before, after *fleet.Snapshot, keys iter.Seq[api.Key]) bool {
	for key := range keys {
		if before.Get(key) != after.Get(key) {
			return false
		}
	}
	return true
}

// bindingWrites are the writes of every status that changes, each only while the
// workload is as a snapshot shows it.
func (k *Keeper) bindingWrites(snapshot *fleet.Snapshot, workloads map[api.Key]api.PreviewedWorkload) ([]store.Write, error) {
	var writes []store.Write
	size := 0
	for _, key := range sortedKeys(workloads) {
		entry := snapshot.Get(key)
		if entry == nil {
			continue // it is newer than the snapshot, so this is tried again
		}
		was, err := k.EncodeStatus(entry.Object)
		if err != nil {
			return nil, fmt.Errorf("encode the present binding: %w", err)
		}
		value, err := k.EncodeStatus(workloads[key].Object)
		if err != nil {
			return nil, fmt.Errorf("encode the previewed binding: %w", err)
		}
		if bytes.Equal(was, value) {
			continue
		}
		if size += len(value); len(writes) == 2*MaxBindings || size > maxBindingBytes {
			return nil, nil
		}
		writes = append(writes,
			store.Write{Key: key, Part: store.Spec, Expect: entry.SpecRevision, CheckOnly: true},
			store.Write{Key: key, Part: store.Status, Expect: entry.StatusRevision, Value: value})
	}
	return writes, nil
}

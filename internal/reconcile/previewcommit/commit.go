package previewcommit

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

// Committer commits previews: it makes the decision again, compares it with the one that was shown,
// and returns the writes that store it.
type Committer struct {
	Decisions Decisions
	Fleet     *fleet.Fleet
	// EncodeStatus returns the stored form of an object's status.
	EncodeStatus func(object api.Object) ([]byte, error)
}

// Decisions returns decisions as they would be made now.
type Decisions interface {
	// Preview returns the status that a placement would get if it were stored as given, with its
	// UID, generation and current status, and the explanation.
	Preview(placement *api.Placement) (status api.PlacementStatus, explanation *api.Explanation, err error)
	// PreviewWorkload is Preview for a workload.
	PreviewWorkload(ctx context.Context, workload *api.Workload) (status api.WorkloadStatus, explanation *api.Explanation, err error)
	// PreviewPolicy returns what would happen to every workload that follows a policy, or would if
	// the policy were stored as given. It knows at least what the fleet shows.
	PreviewPolicy(ctx context.Context, policy *api.PropagationPolicy) (map[api.Key]api.PreviewedWorkload, error)
}

// Writes returns the writes that commit what was previewed for an object: the status of the object,
// which must be at a revision, or those of the workloads of a policy. previewed is the object as it
// was shown, with bindings for a policy. The error is a StalePreviewError if the decision would differ
// now.
func (c *Committer) Writes(ctx context.Context, previewed api.Object, bindings []Binding, object api.Object, statusRevision int64) ([]store.Write, error) {
	switch object := object.(type) {
	case *api.Placement:
		was, ok := previewed.(*api.Placement)
		if !ok {
			return nil, nil
		}
		now, _, err := c.Decisions.Preview(object)
		if err != nil {
			return nil, err
		}
		if object.Status, err = placement(&was.Status, now); err != nil {
			return nil, err
		}
	case *api.Workload:
		was, ok := previewed.(*api.Workload)
		if !ok {
			return nil, nil
		}
		now, _, err := c.Decisions.PreviewWorkload(ctx, object)
		if err != nil {
			return nil, err
		}
		if err := workload(&was.Status, &now); err != nil {
			return nil, err
		}
		object.Status = now
	case *api.PropagationPolicy:
		return c.writesOfBindings(ctx, bindings, object)
	default:
		return nil, nil
	}
	value, err := c.EncodeStatus(object)
	if err != nil {
		return nil, fmt.Errorf("encode the previewed decision: %w", err)
	}
	return []store.Write{{Key: api.KeyOf(object), Part: store.Status, Expect: statusRevision, Value: value}}, nil
}

// Limits of what is written together with a policy: each binding takes two of the 128 operations of
// a transaction, the policy and its preview take the rest.
const (
	MaxBindings     = 60
	maxBindingBytes = 512 << 10
)

// writesOfBindings returns the writes that store the previewed bindings of workloads together with
// their policy. If there are more workloads than fit, it returns none: they are decided again once
// the policy is written.
func (c *Committer) writesOfBindings(ctx context.Context, previewed []Binding, policy *api.PropagationPolicy) ([]store.Write, error) {
	for {
		before := c.Fleet.Snapshot()
		workloads, err := c.Decisions.PreviewPolicy(ctx, policy)
		if err != nil {
			return nil, err
		}
		if err := compareBindings(previewed, Bindings(workloads)); err != nil {
			return nil, err
		}
		writes, err := c.bindingWrites(before, workloads)
		if err != nil || len(writes) == 0 {
			return nil, err
		}
		// What is the same before and after the bindings were made is what they were based on.
		if after := c.Fleet.Snapshot(); same(before, after, maps.Keys(workloads)) {
			return writes, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("preview workloads that keep changing: %w", err)
		}
	}
}

// same reports whether two snapshots contain the same objects for some keys.
func same(before, after *fleet.Snapshot, keys iter.Seq[api.Key]) bool {
	for key := range keys {
		if before.Get(key) != after.Get(key) {
			return false
		}
	}
	return true
}

// bindingWrites returns the writes of every status that changes, on the condition that the workload
// is as in the snapshot.
func (c *Committer) bindingWrites(snapshot *fleet.Snapshot, workloads map[api.Key]api.PreviewedWorkload) ([]store.Write, error) {
	var writes []store.Write
	size := 0
	for _, key := range sortedKeys(workloads) {
		entry := snapshot.Get(key)
		if entry == nil {
			continue // it is newer than the snapshot, so this is retried
		}
		was, err := c.EncodeStatus(entry.Object)
		if err != nil {
			return nil, fmt.Errorf("encode the present binding: %w", err)
		}
		value, err := c.EncodeStatus(workloads[key].Object)
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

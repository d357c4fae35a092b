package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/promise"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// bindingsWith is what becomes of workloads when a policy is written, in the
// order of their names.
func (ps *previews) bindingsWith(ctx context.Context, policy *api.PropagationPolicy) ([]promise.Binding, map[api.Key]api.PreviewedWorkload, error) {
	workloads, err := ps.decisions.PreviewPolicy(ctx, policy)
	if err != nil {
		return nil, nil, err
	}
	return promise.Bindings(workloads), workloads, nil
}

func sortedKeys[V any](byKey map[api.Key]V) []api.Key {
	return slices.SortedFunc(maps.Keys(byKey), api.Key.Compare)
}

// The most that is written together with a policy: each binding takes two of the
// 128 operations of a transaction, the policy and its preview take the rest.
const (
	maxBindingWrites = 60
	maxBindingBytes  = 512 << 10
)

// keepBindings returns the writes that give workloads the previewed bindings
// together with their policy. Of more workloads than fit there are none: they
// are decided anew once the policy is written.
func (ps *previews) keepBindings(ctx context.Context, promised []promise.Binding, policy *api.PropagationPolicy) ([]store.Write, error) {
	ctx, cancel := context.WithTimeout(ctx, simulationTime)
	defer cancel()
	for {
		before := ps.fleet.Snapshot()
		bindings, workloads, err := ps.bindingsWith(ctx, policy)
		if err != nil {
			return nil, err
		}
		if err := promise.Policy(promised, bindings); err != nil {
			return nil, err
		}
		writes, err := ps.bindingWrites(before, workloads)
		if err != nil || len(writes) == 0 {
			return nil, err
		}
		// What is the same before and after the bindings were made is what they were
		// made from.
		if after := ps.fleet.Snapshot(); same(before, after, maps.Keys(workloads)) {
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
func (ps *previews) bindingWrites(snapshot *fleet.Snapshot, workloads map[api.Key]api.PreviewedWorkload) ([]store.Write, error) {
	var writes []store.Write
	size := 0
	for _, key := range sortedKeys(workloads) {
		entry := snapshot.Get(key)
		if entry == nil {
			continue // it is newer than the snapshot, so this is tried again
		}
		was, err := ps.codec.EncodeStatus(entry.Object)
		if err != nil {
			return nil, fmt.Errorf("encode the present binding: %w", err)
		}
		value, err := ps.codec.EncodeStatus(workloads[key].Object)
		if err != nil {
			return nil, fmt.Errorf("encode the previewed binding: %w", err)
		}
		if bytes.Equal(was, value) {
			continue
		}
		if size += len(value); len(writes) == 2*maxBindingWrites || size > maxBindingBytes {
			return nil, nil
		}
		writes = append(writes,
			store.Write{Key: key, Part: store.Spec, Expect: entry.SpecRevision, CheckOnly: true},
			store.Write{Key: key, Part: store.Status, Expect: entry.StatusRevision, Value: value})
	}
	return writes, nil
}

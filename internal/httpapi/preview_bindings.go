package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// previewedBinding is what becomes of a workload when a policy is written.
type previewedBinding struct {
	api.PreviewedBinding
	// Scheduled says that the workload has a place for all of its replicas then.
	Scheduled bool `json:"scheduled"`
}

// bindingsWith is what becomes of workloads when a policy is written, in the
// order of their names.
func (ps *previews) bindingsWith(ctx context.Context, policy *api.PropagationPolicy) ([]previewedBinding, map[api.Key]api.PreviewedWorkload, error) {
	workloads, err := ps.decisions.PreviewPolicy(ctx, policy)
	if err != nil {
		return nil, nil, err
	}
	bindings := make([]previewedBinding, 0, len(workloads))
	for _, key := range sortedKeys(workloads) {
		w := workloads[key]
		bindings = append(bindings, previewedBinding{
			PreviewedBinding: api.PreviewedBinding{
				Workload: key.Path(), Claimed: w.Claimed, Summary: w.Summary,
				CurrentReplicas: replicasByCluster(&w.Current), Replicas: replicasByCluster(&w.Object.Status),
			},
			Scheduled: holds(w.Object.Status.Conditions, api.ConditionScheduled),
		})
	}
	return bindings, workloads, nil
}

func sortedKeys[V any](byKey map[api.Key]V) []api.Key {
	return slices.SortedFunc(maps.Keys(byKey), api.Key.Compare)
}

// showBindings adds to the preview of a policy what a reader may know of its
// workloads, and sums that up.
func showBindings(who auth.Identity, shown *api.Preview, bindings []previewedBinding) {
	claimed, moved, left := 0, 0, 0
	shown.Satisfied = true
	for _, b := range bindings {
		if !who.SeesWorkload(b.Workload) {
			continue
		}
		shown.Bindings = append(shown.Bindings, b.PreviewedBinding)
		if !b.Claimed {
			left++
			continue
		}
		claimed++
		shown.Satisfied = shown.Satisfied && b.Scheduled
		if !maps.Equal(b.CurrentReplicas, b.Replicas) {
			moved++
		}
	}
	shown.Summary = fmt.Sprintf("%d %s would follow the policy, %d of them on other clusters or with other replicas than now", claimed, plural("workload", claimed), moved)
	if left > 0 {
		shown.Summary += fmt.Sprintf("; %d would follow it no longer", left)
	}
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
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
func (ps *previews) keepBindings(ctx context.Context, promised []previewedBinding, policy *api.PropagationPolicy) ([]store.Write, error) {
	ctx, cancel := context.WithTimeout(ctx, simulationTime)
	defer cancel()
	for {
		before := ps.fleet.Snapshot()
		bindings, workloads, err := ps.bindingsWith(ctx, policy)
		if err != nil {
			return nil, err
		}
		if err := sameBindings(promised, bindings); err != nil {
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

// sameBindings is an error that names a workload whose binding is not the one
// that was shown.
func sameBindings(promised, now []previewedBinding) error {
	was, is := byWorkload(promised), byWorkload(now)
	names := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(names)
	for _, name := range names {
		a, b := was[name], is[name]
		if a == nil || b == nil || a.Claimed != b.Claimed || !maps.Equal(a.Replicas, b.Replicas) {
			workload := "workload " + strconv.Quote(name)
			return changed(workload+" "+a.text(), workload+" "+b.text())
		}
	}
	return nil
}

func byWorkload(bindings []previewedBinding) map[string]*previewedBinding {
	byName := make(map[string]*previewedBinding, len(bindings))
	for i := range bindings {
		byName[bindings[i].Workload] = &bindings[i]
	}
	return byName
}

// text renders a binding for a message, nil for one that there is not.
func (b *previewedBinding) text() string {
	switch {
	case b == nil:
		return "not under the policy"
	case !b.Claimed:
		return "no longer under the policy, on " + replicasText(b.Replicas)
	}
	return "on " + replicasText(b.Replicas)
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

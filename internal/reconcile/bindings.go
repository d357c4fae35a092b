package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/claim"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// bindings are the workloads of a planner: the policy that each follows, where it runs, and what
// makes that stale. The picture is the planner's.
type bindings struct {
	*picture

	workloads map[api.Key]*workloadBinding
	claims    *claim.Index
	binder    binding.Binder
	scopes    scopes
	occupants occupants[*workloadBinding]
	followers *btree.BTreeG[follower]
	changed   []api.Key // of whom anything changed since the last pass that a fork has to know
	now       time.Time // of the pass
	observed  observedSplits
	braked    bool // evictions from clusters that are offline are held back
	failures  failures
	holding   map[*workloadBinding]struct{} // whose moves are held
	spares    spares

	// explained, if not nil, receives the explanations of a pass's decisions for the workloads that
	// it contains as keys.
	explained map[api.Key]*api.Explanation
}

func newBindings(p *picture) *bindings {
	b := &bindings{
		picture:   p,
		workloads: map[api.Key]*workloadBinding{},
		claims:    claim.New(),
		scopes:    scopes{newCohorts[*workloadBinding, *scope](), p},
		occupants: occupants[*workloadBinding]{},
		followers: newFollowers(),
		holding:   map[*workloadBinding]struct{}{},
	}
	p.running = b
	return b
}

// ClustersOf implements engine.Bindings.
func (b *bindings) ClustersOf(workload api.Key) []api.WorkloadCluster {
	w, ok := b.workloads[workload]
	if !ok {
		return nil
	}
	return w.status.Clusters
}

// changePolicy applies a new version of a policy; nil deletes it.
func (b *bindings) changePolicy(key api.Key, policy *api.PropagationPolicy) {
	if policy == nil {
		b.reclaim(b.claims.RemovePolicy(key), key.Path())
	} else {
		b.reclaim(b.claims.PutPolicy(policy), key.Path())
	}
}

// keepHeld records whether a move of a workload is held.
func (b *bindings) keepHeld(w *workloadBinding, held bool) {
	if w.held = held; held {
		b.holding[w] = struct{}{}
	} else {
		delete(b.holding, w)
	}
}

// touchHeld marks the workloads whose moves are held and that may use one of some rows on which others
// hold something else now: what they would be may differ.
func (b *bindings) touchHeld(rows []int) {
	for w := range b.holding {
		if !w.stale && slices.ContainsFunc(w.scopes, func(s *scope) bool { return s.admitsAny(rows) }) {
			b.queue.mark(w)
		}
	}
}

// reclaim makes workloads determine their policy again: those that a policy selects or selected,
// and those that follow it.
func (b *bindings) reclaim(affected []api.Key, path string) {
	ask := func(w *workloadBinding) {
		w.unclaimed = true
		b.queue.mark(w)
	}
	for _, key := range affected {
		if w, ok := b.workloads[key]; ok {
			ask(w)
		}
	}
	for key := range following(b.followers, path) {
		ask(b.workloads[key])
	}
}

// remeasure marks the waiting workloads that follow a policy, as far as of includes them, so that
// the numbers in their reasons become current.
func (b *bindings) remeasure(path string, of func(workload api.Key) bool) {
	for key := range following(b.followers, path) {
		if w := b.workloads[key]; w != nil && w.pending && of(key) {
			b.queue.mark(w)
		}
	}
}

// putWorkload applies a new workload, or a new spec of one.
func (b *bindings) putWorkload(w *workloadBinding, object *api.Workload, specRevision int64) {
	key := api.KeyOf(object)
	needs, err := ledger.NewNeeds(object)
	if err != nil {
		b.logger.Error("a stored workload cannot be decided; its binding does not change", "workload", key.Path(), "error", err)
		return
	}
	b.claims.PutWorkload(object)
	if w == nil {
		w = &workloadBinding{object: object, status: object.Status, bindingState: bindingState{needs: needs}}
		b.workloads[key] = w
		b.index(w, &api.WorkloadStatus{})
		b.moves.account(key, "", nil, w.status.Policy, w.status.Moves)
		b.hold(w) // before any other is decided
	} else if now := &object.Status; now.ObservedGeneration == object.Metadata.Generation && now.ObservedGeneration > w.status.ObservedGeneration {
		// The binding was committed together with the spec: it was previewed.
		before := w.status
		w.status, w.needs, w.move = *now, needs, nil
		w.keepObserved(&before)
		b.moves.account(key, before.Policy, before.Moves, w.status.Policy, w.status.Moves)
		b.index(w, &before)
		b.hold(w)
	}
	if object.Spec.Priority < w.object.Spec.Priority {
		b.wakePreempting()
	}
	w.rewritten(w.object)
	// Until the binding is made again, hold what the running replicas were chosen for.
	w.object, w.specRevision, w.needs = object, specRevision, needs
	w.unclaimed = true
	w.p = nil // compiled from another spec
	b.queue.mark(w)
}

// seeWorkload applies a status of a known spec.
func (b *bindings) seeWorkload(w *workloadBinding, object *api.Workload) {
	if sameBinding(&object.Status, &w.status) {
		w.object = object
		w.status = object.Status // shares the memory of the fleet's copy
	}
}

func (b *bindings) removeWorkload(key api.Key) {
	w, ok := b.workloads[key]
	if !ok {
		return
	}
	w.gone = true
	b.claims.RemoveWorkload(key)
	before := w.status
	w.status = api.WorkloadStatus{}
	b.moves.account(key, before.Policy, before.Moves, "", nil)
	b.waits.hold(key, nil)
	delete(b.holding, w)
	b.hold(w)
	b.index(w, &before)
	b.scopes.exit(w)
	delete(b.workloads, key)
}

// index updates occupants and followers for a status.
func (b *bindings) index(w *workloadBinding, before *api.WorkloadStatus) {
	b.occupants.move(w, maps.Keys(clustersOf(before)), maps.Keys(clustersOf(&w.status)))
	if w.status.Policy == before.Policy {
		return
	}
	b.followers.Delete(follower{before.Policy, w.key()})
	if w.status.Policy != "" {
		b.followers.ReplaceOrInsert(follower{w.status.Policy, w.key()})
	}
}

// report applies a report about the health of a workload on a cluster, if it contains a change. A
// repeated one matters if it may end an eviction, or a step of a rollout.
func (b *bindings) report(w *workloadBinding, r api.HealthReport, now time.Time) {
	list, changed := withReport(w.status.Health, r, now, func(was *api.ClusterHealth) bool {
		outdated := func(e api.Eviction) bool { return !timeOf(was.ReportedAt).After(timeOf(e.Since)) }
		return slices.ContainsFunc(w.status.Evictions, outdated) || awaitsReport(w.status.Rollout, was)
	})
	if changed {
		w.status.Health = list
		w.reported = true
		b.queue.mark(w)
	}
}

package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/claim"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// workloadPlanner has the workloads of a planner: the policy that each follows, where it runs, and what
// makes that stale. The basis is the planner's.
type workloadPlanner struct {
	*basis

	workloads map[api.Key]*workloadBinding
	claims    *claim.Index
	binder    binding.Binder
	scopes    scopes
	occupants occupants[*workloadBinding]
	followers *btree.BTreeG[follower]
	// preempting are those that wait and may displace others.
	preempting map[*workloadBinding]struct{}
	changed    []api.Key // of whom anything changed since the last pass that a fork has to know
	now        time.Time // of the pass
	observed   observedSplits
	braked     bool // evictions from clusters that are offline are held back
	failures   failures
	spares     spares

	// explained, if not nil, receives the explanations of a pass's decisions for the workloads that
	// it contains as keys.
	explained map[api.Key]*api.Explanation
}

// workloadBinding is one workload and its binding.
type workloadBinding struct {
	queueEntry
	bindingState
	object *api.Workload
	// status is the last decided binding, which may be ahead of the store.
	status api.WorkloadStatus
	scopes []*scope // of p.Groups
	// sentences say why clusters do not fit; nil if not computed yet.
	sentences []*sentence
	// gained is an upper bound on how much the room has grown since the last binding.
	gained   int64
	reported bool // its health was reported, and is not written yet
	split    splitNews
}

// bindingState is what a fork needs to know of a workload besides its object. What it refers to is
// immutable.
type bindingState struct {
	specRevision int64
	policy       *api.PropagationPolicy // the claim; nil if no policy selects the workload
	reason       string                 // why that policy
	p            *binding.Propagation   // nil if nothing determines where the workload goes
	alike        string                 // equal for workloads that get the same result if they have no binding yet

	// lack and backLack are those of the last binding.
	lack, backLack int64
	// cramped says that a cluster would get more of it if it had more room, and overflowed that an
	// earlier tier would.
	cramped, overflowed bool
	// rivals says that there were workloads that it could have displaced, and that this was not
	// enough. Those that came later have only taken free room.
	rivals bool
	// committed says that the binding was previewed and committed together with the spec, and has not
	// been written since: what it displaces may still be there.
	committed bool

	unclaimed bool // its policy must be determined again
	pending   bool
	needs     ledger.Needs
	holds     map[string]int64 // replicas held, by cluster, each holding heldNeeds
	heldNeeds ledger.Needs
	machines  map[string]ledger.Needs // what each holds instead, by cluster, if replicas have a flavor
}

func newBindings(p *basis) *workloadPlanner {
	b := &workloadPlanner{
		basis:     p,
		workloads: map[api.Key]*workloadBinding{},
		claims:    claim.New(),
		scopes:    scopes{newCohorts[*workloadBinding, *scope](), p},
		occupants: occupants[*workloadBinding]{},
		followers: newFollowers(), preempting: map[*workloadBinding]struct{}{},
	}
	p.running = b
	return b
}

// ClustersOf implements engine.Bindings.
func (b *workloadPlanner) ClustersOf(workload api.Key) []api.WorkloadCluster {
	w, ok := b.workloads[workload]
	if !ok {
		return nil
	}
	return w.status.Clusters
}

// changePolicy applies a new version of a policy; nil deletes it.
func (b *workloadPlanner) changePolicy(key api.Key, policy *api.PropagationPolicy) {
	if policy == nil {
		b.reclaim(b.claims.RemovePolicy(key), key.Path())
	} else {
		b.reclaim(b.claims.PutPolicy(policy), key.Path())
	}
}

// reclaim makes workloads determine their policy again: those that a policy selects or selected,
// and those that follow it.
func (b *workloadPlanner) reclaim(affected []api.Key, path string) {
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
func (b *workloadPlanner) remeasure(path string, of func(workload api.Key) bool) {
	for key := range following(b.followers, path) {
		if w := b.workloads[key]; w != nil && w.pending && of(key) {
			b.queue.mark(w)
		}
	}
}

// putWorkload applies a new workload, or a new spec of one.
func (b *workloadPlanner) putWorkload(w *workloadBinding, object *api.Workload, specRevision int64) {
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
		b.hold(w) // before any other is decided
	} else if now := &object.Status; now.ObservedGeneration == object.Metadata.Generation && now.ObservedGeneration > w.status.ObservedGeneration {
		// The binding was committed together with the spec: it was previewed.
		before := w.status
		w.status, w.needs = *now, needs
		w.keepObserved(&before)
		b.index(w, &before)
		b.hold(w)
	} else {
		w.rewritten(w.object, w.status.ObservedGeneration)
	}
	if object.Spec.Priority < w.object.Spec.Priority {
		b.wakePreempting()
	}
	w.object, w.specRevision, w.needs = object, specRevision, needs
	w.unclaimed = true
	w.p = nil // compiled from another spec
	b.hold(w) // what runs counts with its new needs, as after a start
	b.queue.mark(w)
}

// seeWorkload applies a status of a known spec.
func (b *workloadPlanner) seeWorkload(w *workloadBinding, object *api.Workload) {
	if sameBinding(&object.Status, &w.status) {
		w.object = object
		w.status = object.Status // shares the memory of the fleet's copy
	}
}

// sameBinding reports whether two statuses of one workload are equal.
func sameBinding(a, b *api.WorkloadStatus) bool {
	return a.DecisionRevision == b.DecisionRevision && a.ObservedGeneration == b.ObservedGeneration &&
		a.ObservedRescheduleRequests == b.ObservedRescheduleRequests && a.Policy == b.Policy && a.PolicyGeneration == b.PolicyGeneration &&
		columns.SameTime(a.ScheduledAt, b.ScheduledAt) && len(a.Preemptions) == len(b.Preemptions) &&
		slices.EqualFunc(a.Evictions, b.Evictions, func(x, y api.Eviction) bool {
			return x.Cluster == y.Cluster && columns.SameTime(x.Since, y.Since)
		}) &&
		slices.EqualFunc(a.EarlierAffinities, b.EarlierAffinities, func(x, y api.EarlierAffinity) bool {
			return x.AffinityName == y.AffinityName && columns.SameTime(x.FeasibleSince, y.FeasibleSince)
		}) &&
		slices.EqualFunc(a.Health, b.Health, func(x, y api.ClusterHealth) bool {
			return x.Cluster == y.Cluster && x.Status == y.Status && x.Message == y.Message &&
				columns.SameTime(x.Since, y.Since) && columns.SameTime(x.ReportedAt, y.ReportedAt)
		}) &&
		slices.EqualFunc(a.Distribution, b.Distribution, api.ClusterDistribution.Same) &&
		slices.EqualFunc(a.Conditions, b.Conditions, sameCondition)
}

func (b *workloadPlanner) removeWorkload(key api.Key) {
	w, ok := b.workloads[key]
	if !ok {
		return
	}
	w.gone = true
	b.claims.RemoveWorkload(key)
	before := w.status
	w.status = api.WorkloadStatus{}
	b.hold(w)
	b.index(w, &before)
	b.scopes.exit(w)
	delete(b.workloads, key)
	delete(b.preempting, w)
}

// index updates occupants and followers for a status.
func (b *workloadPlanner) index(w *workloadBinding, before *api.WorkloadStatus) {
	b.occupants.move(w, maps.Keys(clustersOf(before)), maps.Keys(clustersOf(&w.status)))
	if w.status.Policy == before.Policy {
		return
	}
	b.followers.Delete(follower{before.Policy, w.key()})
	if w.status.Policy != "" {
		b.followers.ReplaceOrInsert(follower{w.status.Policy, w.key()})
	}
}

// clustersOf returns the clusters that a workload runs on or is leaving, with their replicas.
func clustersOf(s *api.WorkloadStatus) map[string]int64 {
	out := make(map[string]int64, len(s.Clusters)+len(s.Evictions))
	for _, c := range s.Clusters {
		out[c.Name] = c.Replicas
	}
	for _, e := range s.Evictions {
		out[e.Cluster] += e.Replicas
	}
	return out
}

// turnOfWorkload orders workloads by importance, and equals by how long they have waited.
func turnOfWorkload(x, y *workloadBinding) int {
	return cmp.Or(
		cmp.Compare(y.object.Spec.Priority, x.object.Spec.Priority),
		columns.TimeOf(x.object.Metadata.CreatedAt).Compare(columns.TimeOf(y.object.Metadata.CreatedAt)),
		x.key().Compare(y.key()),
	)
}

// claim determines which policy a workload follows, and compiles the propagation.
func (b *workloadPlanner) claim(w *workloadBinding) {
	if w.unclaimed {
		w.unclaimed = false
		policy, reason := b.claims.Choose(w.object, w.status.Policy)
		w.reason = reason
		if policy != w.policy {
			w.policy, w.p = policy, nil
		}
	}
	if w.p != nil {
		return
	}
	b.scopes.exit(w)
	if !binding.Directed(w.object, w.policy) {
		return
	}
	p, err := binding.NewPropagation(w.object, w.policy)
	if err != nil {
		b.logger.Error("a stored workload cannot be decided; its binding does not change", "workload", w.key().Path(), "error", err)
		w.policy = nil
		return
	}
	w.p = p
	b.scopes.enter(w)
	w.alike = alike(w)
}

// firstEnd returns when the first of some evictions ends because its grace has passed, zero if none does.
func firstEnd(evictions []api.Eviction) (first time.Time) {
	for _, e := range evictions {
		if e.Until != nil && (first.IsZero() || e.Until.Before(first)) {
			first = *e.Until
		}
	}
	return first
}

// decide makes one binding again, and reports whether the status changed, and whether clusters or
// replicas did.
func (b *workloadPlanner) decide(w *workloadBinding, now time.Time) (changed, moved bool) {
	b.focus(w.key())
	followed := w.policy
	b.claim(w)
	redated := b.redate(w, now)
	object := *w.object
	object.Status = w.status
	before := w.status
	if w.p == nil {
		w.status, changed, moved = binding.UnclaimedStatus(b.fleet, &object, w.reason, now)
		b.giveCause(w, followed, &before, now)
		b.setPending(w, false)
		b.queue.agenda.set(w, firstEnd(w.status.Evictions))
		b.index(w, &before)
		b.hold(w) // running replicas may have become larger or smaller
		return w.written() || changed || redated, moved
	}
	present := binding.NewPresent(&object, w.policy)
	waited := w.pending
	w.rivals = false
	out := b.bind(w, present, now)
	w.status, changed, moved = binding.NewBindingStatus(b.fleet, w.p, &object, w.policy, out, now, func(group int) string {
		return w.scopes[group].fits(b.basis, &w.sentences[group], w.p.Groups[group].Query)
	})
	b.giveCause(w, followed, &before, now)
	b.setPending(w, !out.Complete)
	w.lack, w.backLack, w.gained = out.Lack, out.BackLack, 0
	w.cramped, w.overflowed = out.Cramped, out.Overflowed
	w.watch()
	b.index(w, &before)
	b.hold(w)
	if w.committed && w.p.Preempts && binding.AnswersPolicy(&before, w.policy) {
		b.makeRoom(w, now)
		changed = true // so that it is known to be done
	}
	w.committed = false
	b.queue.agenda.set(w, out.NextAt)
	if slices.ContainsFunc(before.Evictions, func(e api.Eviction) bool { return !leaves(&w.status, e.Cluster) }) {
		b.queue.mark(w) // a cluster that has been left is a candidate again
	}
	if slices.ContainsFunc(before.Evictions, func(e api.Eviction) bool { return runsOn(&w.status, e.Cluster) }) {
		b.wakePreempting() // what has been taken back may be displaced, which what is leaving may not
	}
	if changed && w.p.FailsBack() {
		b.queue.mark(w) // whether an earlier group could take it back must be checked from its new position
	}
	if w.pending && !waited && len(w.status.Clusters) > 0 {
		b.queue.mark(w) // who waits need not stay where there is no room
	}
	return w.written() || changed || redated, moved
}

// redate has what another server dated ahead count as from now, and reports whether there
// was anything.
func (b *workloadPlanner) redate(w *workloadBinding, now time.Time) bool {
	if !binding.Redate(&w.status, now) {
		return false
	}
	held := w.heldNeeds
	w.heldNeeds, w.machines = nil, nil // the same is held from now on
	b.holdAs(w, held)
	return true
}

// written reports whether a report has not been written yet, and marks it as written.
func (w *workloadBinding) written() bool {
	news := w.reported || w.split.unwritten
	w.reported, w.split.unwritten = false, false
	return news
}

// leaves reports whether a workload is leaving a cluster.
func leaves(s *api.WorkloadStatus, cluster string) bool {
	return slices.ContainsFunc(s.Evictions, func(e api.Eviction) bool { return e.Cluster == cluster })
}

// runsOn reports whether a workload has a cluster that it is not leaving.
func runsOn(s *api.WorkloadStatus, cluster string) bool {
	return slices.ContainsFunc(s.Clusters, func(c api.WorkloadCluster) bool { return c.Name == cluster })
}

// bind decides where a workload goes that has a policy, or needs none.
func (b *workloadPlanner) bind(w *workloadBinding, present binding.Present, now time.Time) binding.Binding {
	out, ok := b.failures.known(b.version, now, w)
	if _, wanted := b.explained[w.key()]; wanted {
		out, b.explained[w.key()] = b.binder.Explain(b.fleet, w.p, w.views(), b.others(), present, now)
		b.explained[w.key()].Policy, b.explained[w.key()].PolicyReason = w.policyPath(), w.reason
	} else if !ok {
		out = b.binder.Bind(b.fleet, w.p, w.views(), b.others(), nil, present, now)
		b.failures.remember(b.version, now, w, out)
	}
	if !out.Complete && w.p.Preempts {
		if better, done := b.preempt(w, present, now); done {
			if _, wanted := b.explained[w.key()]; wanted {
				b.explained[w.key()] = nil // no longer valid
			}
			return better
		}
	}
	return out
}

// policyPath returns the path of the policy that a workload follows, or "" if it needs none.
func (w *workloadBinding) policyPath() string {
	if w.policy == nil {
		return ""
	}
	return w.policy.Path()
}

// views returns those of the affinity groups, in order.
func (w *workloadBinding) views() []*placement.View {
	views := make([]*placement.View, len(w.scopes))
	for i, s := range w.scopes {
		views[i] = s.view
	}
	return views
}

// report applies a report about the health of a workload on a cluster, if it contains a change.
func (b *workloadPlanner) report(w *workloadBinding, r api.HealthReport, now time.Time) {
	now = now.UTC()
	h := api.ClusterHealth{Cluster: r.Cluster, Status: r.Status, Message: r.Message, Since: &now, ReportedAt: &now}
	list := slices.Clone(w.status.Health)
	i := slices.IndexFunc(list, func(h api.ClusterHealth) bool { return h.Cluster == r.Cluster })
	if i >= 0 {
		was := list[i]
		if was.Status == r.Status {
			h.Since = was.Since
			// A repeated report matters if it may end an eviction.
			outdated := func(e api.Eviction) bool { return !columns.TimeOf(was.ReportedAt).After(columns.TimeOf(e.Since)) }
			if was.Message == r.Message && !slices.ContainsFunc(w.status.Evictions, outdated) {
				return
			}
		}
		list[i] = h
	} else {
		list = append(list, h)
		slices.SortFunc(list, func(a, b api.ClusterHealth) int { return cmp.Compare(a.Cluster, b.Cluster) })
	}
	w.status.Health = list
	w.reported = true
	b.queue.mark(w)
}

// explain evaluates one workload without changing anything.
func (b *workloadPlanner) explain(w *workloadBinding, now time.Time) *api.Explanation {
	object := *w.object
	object.Status = w.status
	reason := w.reason
	if reason == "" {
		_, reason = b.claims.Choose(w.object, w.status.Policy)
	}
	if w.p == nil {
		return unclaimed(&object, reason, b.fleet.Len(), now)
	}
	var binder binding.Binder
	_, x := binder.Explain(b.fleet, w.p, w.views(), b.others(), binding.NewPresent(&object, w.policy), now)
	x.Policy, x.PolicyReason = w.policyPath(), reason
	return x
}

// unclaimed explains a workload that no policy selects.
func unclaimed(w *api.Workload, reason string, total int, now time.Time) *api.Explanation {
	return &api.Explanation{
		Kind: api.KindWorkload, Namespace: w.Metadata.Namespace, Name: w.Metadata.Name, At: now.UTC(),
		Summary: reason + binding.SplitClause(w), PolicyReason: reason, Total: total, Candidates: []api.Candidate{},
	}
}

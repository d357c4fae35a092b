package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// workloadBinding is one workload and its binding.
type workloadBinding struct {
	turn
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

	held      bool // a move is held
	unclaimed bool // its policy must be determined again
	pending   bool
	needs     ledger.Needs
	holds     map[string]int64 // replicas held, by cluster, each holding heldNeeds
	heldNeeds ledger.Needs
	machines  map[string]ledger.Needs // what each holds instead, by cluster, if replicas have a flavor
}

// sameBinding reports whether two statuses of one workload are equal.
func sameBinding(a, b *api.WorkloadStatus) bool {
	return a.DecisionRevision == b.DecisionRevision && a.ObservedGeneration == b.ObservedGeneration &&
		a.ObservedRescheduleRequests == b.ObservedRescheduleRequests && a.Policy == b.Policy && a.PolicyGeneration == b.PolicyGeneration &&
		sameInstant(a.ScheduledAt, b.ScheduledAt) && a.Demand.Equal(b.Demand) && a.Rollout.Same(b.Rollout) && len(a.Preemptions) == len(b.Preemptions) &&
		slices.EqualFunc(a.Evictions, b.Evictions, func(x, y api.Eviction) bool {
			return x.Cluster == y.Cluster && sameInstant(x.Since, y.Since)
		}) &&
		slices.EqualFunc(a.EarlierAffinities, b.EarlierAffinities, func(x, y api.EarlierAffinity) bool {
			return x.AffinityName == y.AffinityName && sameInstant(x.FeasibleSince, y.FeasibleSince)
		}) &&
		slices.EqualFunc(a.Health, b.Health, sameHealth) &&
		slices.EqualFunc(a.Distribution, b.Distribution, api.ClusterDistribution.Same) &&
		slices.EqualFunc(a.Conditions, b.Conditions, sameCondition)
}

// sameHealth reports whether two reports are equal.
func sameHealth(x, y api.ClusterHealth) bool {
	return x.Cluster == y.Cluster && x.Status == y.Status && x.Message == y.Message &&
		sameInstant(x.Since, y.Since) && sameInstant(x.ReportedAt, y.ReportedAt)
}

// clustersOf returns the clusters that a workload runs on, is leaving or is meant to run on, with
// their replicas.
func clustersOf(s *api.WorkloadStatus) map[string]int64 {
	out := make(map[string]int64, len(s.Clusters)+len(s.Evictions))
	for _, c := range s.Clusters {
		out[c.Name] = c.Replicas
	}
	for _, e := range s.Evictions {
		out[e.Cluster] += e.Replicas
	}
	for cluster, replicas := range s.Meant() {
		out[cluster] = max(out[cluster], replicas)
	}
	return out
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// turnOfWorkload orders workloads by importance, and equals by how long they have waited.
func turnOfWorkload(x, y *workloadBinding) int {
	return cmp.Or(
		cmp.Compare(y.object.Spec.Priority, x.object.Spec.Priority),
		timeOf(x.object.Metadata.CreatedAt).Compare(timeOf(y.object.Metadata.CreatedAt)),
		x.key().Compare(y.key()),
	)
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

// policyPath returns the path of the policy that a workload follows, or "" if it needs none.
func (w *workloadBinding) policyPath() string {
	if w.policy == nil {
		return ""
	}
	return w.policy.Path()
}

// movingWorkload returns what determines whether a workload may move. policy is the one that it
// follows, or nil.
func movingWorkload(w *api.Workload, s *api.WorkloadStatus, policy *api.PropagationPolicy) mover {
	d := mover{meta: &w.Metadata, used: s.Moves, chosen: len(s.Clusters)}
	if policy != nil {
		d.policy, d.budget = policy.Path(), policy.Spec.MoveBudget
	}
	return d
}

// views returns those of the affinity groups, in order.
func (w *workloadBinding) views() []*placement.View {
	views := make([]*placement.View, len(w.scopes))
	for i, s := range w.scopes {
		views[i] = s.view
	}
	return views
}

package binding

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
)

// Present is the current binding of a workload.
type Present struct {
	// clusters are those that are meant, and awaited those of them that do not stand yet: they must
	// fit like new ones.
	clusters []api.WorkloadCluster
	awaited  []string
	// standing are those that stand while a rollout is under way, meant or not.
	standing  []api.WorkloadCluster
	affinity  string
	evictions []api.Eviction
	health    []api.ClusterHealth
	earlier   []api.EarlierAffinity
	lost      int64
	// answered says that the binding was made for the current spec and policy.
	answered bool
	// Pending says that the present binding does not meet the request fully.
	Pending bool
	// fresh is an explicit request for a new binding: the first group is tried first, and replicas
	// are divided anew.
	fresh bool
	// Holding returns what may hold the moves of the binding; nil if nothing does.
	Holding func() *movement.Holding
}

// NewPresent returns the binding in a workload's status. policy is the one that the workload
// follows, or nil if it has its own placement.
func NewPresent(w *api.Workload, policy *api.PropagationPolicy) Present {
	s := meant(&w.Spec, &w.Status)
	scheduled := api.FindCondition(s.Conditions, api.ConditionScheduled)
	present := Present{
		Pending:  scheduled != nil && scheduled.Status == api.ConditionFalse,
		clusters: s.Clusters, affinity: s.ObservedAffinity, evictions: s.Evictions, health: s.Health,
		earlier: s.EarlierAffinities, lost: s.LostReplicas,
		answered: s.ObservedGeneration == w.Metadata.Generation && answersPolicy(s, policy),
		awaited:  awaited(&w.Status),
		fresh:    s.ObservedRescheduleRequests != w.Metadata.RescheduleRequests,
	}
	if w.Status.Rollout != nil {
		present.standing = w.Status.Clusters
	}
	return present
}

func awaited(s *api.WorkloadStatus) (names []string) {
	if s.Rollout == nil {
		return nil
	}
	for _, t := range s.Rollout.Target {
		if !slices.ContainsFunc(s.Clusters, func(c api.WorkloadCluster) bool { return c.Name == t.Cluster }) {
			names = append(names, t.Cluster)
		}
	}
	return names
}

func answersPolicy(s *api.WorkloadStatus, policy *api.PropagationPolicy) bool {
	path, uid, generation := policyOf(policy)
	return s.Policy == path && s.PolicyUID == uid && s.PolicyGeneration == generation
}

// policyOf returns how a status identifies the policy that the workload follows. The policy may be
// nil.
func policyOf(policy *api.PropagationPolicy) (path, uid string, generation int64) {
	if policy == nil {
		return "", "", 0
	}
	return policy.Path(), policy.Metadata.UID, policy.Metadata.Generation
}

package health

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// declare puts the taints that the cluster declares into the wanted status. One
// that is there already keeps its time, however its effect is spelled now.
func (c *cluster) declare(now time.Time) {
	var taints []api.ClusterTaint
	for _, t := range c.object.Spec.Taints {
		added := c.declaredAt(now)
		if i := slices.IndexFunc(c.wanted.Taints, func(s api.ClusterTaint) bool { return s.Is(t) }); i >= 0 && c.wanted.Taints[i].TimeAdded != nil {
			added = *c.wanted.Taints[i].TimeAdded
		}
		taints = append(taints, api.ClusterTaint{Key: t.Key, Value: t.Value, Effect: t.Effect, TimeAdded: &added})
	}
	for _, s := range c.wanted.Taints {
		if api.AutomaticTaint(s.Key) {
			taints = append(taints, s)
		}
	}
	c.wanted.Taints = taints
}

// declaredAt is when a taint that is not in the status yet was declared: by the
// change that the status does not answer yet, also where that was made while
// nobody looked.
func (c *cluster) declaredAt(now time.Time) time.Time {
	if m := &c.object.Metadata; m.ModifiedAt != nil && c.wanted.ObservedGeneration < m.Generation {
		return *m.ModifiedAt
	}
	return now.UTC()
}

// automaticTaint is the key of the taint that clusters of a state have; empty =
// none. A cluster that answers again is not back yet.
func automaticTaint(state api.ClusterState) string {
	switch state {
	case api.StateOffline, api.StateConnecting:
		return api.TaintUnreachable
	case api.StateUnhealthy, api.StateNotReady:
		return api.TaintUnhealthy
	case api.StateOnline, api.StatePending:
	}
	return ""
}

// mark puts the taint that follows from the state into the wanted status, with
// the moment since when the cluster is not online, and takes away that of
// another state.
func (c *cluster) mark(now time.Time) {
	var taints []api.ClusterTaint
	for _, s := range c.wanted.Taints {
		if !api.AutomaticTaint(s.Key) {
			taints = append(taints, s)
		}
	}
	if key := automaticTaint(c.wanted.State); key != "" {
		added := now.UTC()
		ready := api.FindCondition(c.wanted.Conditions, api.ConditionReady)
		if ready != nil && ready.Status == api.ConditionFalse && ready.LastTransitionAt != nil {
			added = *ready.LastTransitionAt
		}
		taints = append(taints, api.ClusterTaint{Key: key, Effect: api.EffectNoSelect, TimeAdded: &added})
	}
	c.wanted.Taints = taints
}

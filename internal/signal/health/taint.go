package health

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// declare sets the declared taints in the wanted status. A taint that is already there keeps its
// time, even if its effect is spelled differently.
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

// declaredAt returns when a taint that is not in the status yet was declared: with the change that
// has not been processed yet, even if that was made while no server was running.
func (c *cluster) declaredAt(now time.Time) time.Time {
	if m := &c.object.Metadata; m.ModifiedAt != nil && c.wanted.ObservedGeneration < m.Generation {
		return *m.ModifiedAt
	}
	return now.UTC()
}

// automaticTaint returns the key of the taint for a state, or "". A cluster that is connecting
// still has its taint.
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

// mark sets the taint for the state in the wanted status, with the time since when the cluster is
// not online, and removes those for other states.
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

package health

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// spotObservation is the last observation of the spot nodes of a cluster.
type spotObservation struct {
	uid       string // of the cluster
	status    *api.SpotStatus
	condition api.Condition
}

// Reasons of SpotReady that need no observation.
const (
	reasonNoKubeconfig = "NoKubeconfig"
	reasonNotObserved  = api.ReasonNotObserved
)

// ObservedSpot accepts observations of the on-demand and spot nodes of a cluster, whose UID
// distinguishes it from others of the same name: what exists, and whether everything works; the
// condition's type is not set. It does not wait for the write. For a cluster with spot disabled,
// nothing is shown.
func (m *Monitor) ObservedSpot(name, uid string, status *api.SpotStatus, condition api.Condition) {
	if status != nil {
		own := *status
		status = &own
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// The observation is kept because the observer may know the cluster, or its spot block, before
	// the monitor does.
	m.spots[name] = spotObservation{uid, status, condition}
	c := m.clusters[name]
	if c == nil {
		return
	}
	now := m.Now()
	c.takeSpot(m.spots[name], now)
	if c.dirty() {
		c.flushAt = now
		m.schedule(c)
	}
}

// takeSpot sets what is known of the cluster's spot nodes in the wanted status.
func (c *cluster) takeSpot(o spotObservation, now time.Time) {
	s := &c.wanted
	ready := api.FindCondition(s.Conditions, api.ConditionSpotReady)
	switch {
	case !c.object.SpotEnabled():
		s.Spot = nil
		if ready != nil {
			api.RemoveCondition(&s.Conditions, api.ConditionSpotReady)
		}
		return
	case !c.object.HasKubeconfig():
		s.Spot = nil
		o.condition = api.Condition{
			Status: api.ConditionFalse, Reason: reasonNoKubeconfig,
			Message: "splitting pods requires a kubeconfig: set kubernetes.kubeconfig, or disable spot",
		}
	case o.condition.Status != "" && o.uid == c.object.Metadata.UID:
		s.Spot = o.status
	case ready != nil && ready.Reason != reasonNoKubeconfig:
		return // from before a restart: valid until there is a new observation
	default:
		o.condition = api.Condition{Status: api.ConditionUnknown, Reason: reasonNotObserved, Message: "the cluster has not been observed yet"}
	}
	o.condition.Type = api.ConditionSpotReady
	api.SetCondition(&s.Conditions, o.condition, now)
}

package health

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// spotObservation is what was last said of the spot nodes of a cluster.
type spotObservation struct {
	uid       string // of the cluster
	status    *api.SpotStatus
	condition api.Condition
}

// The reasons of SpotReady that need nobody to look.
const (
	reasonNoKubeconfig = "NoKubeconfig"
	reasonNotObserved  = api.ReasonNotObserved
)

// ObservedSpot takes in what those say who split workloads over the on-demand and
// spot nodes of a cluster, which its uid tells from another of the name: what there
// is, and whether everything works; the condition's type is left out. It does not
// wait for the write. What is said of a cluster that has spot switched off is not
// shown.
func (m *Monitor) ObservedSpot(name, uid string, status *api.SpotStatus, condition api.Condition) {
	if status != nil {
		own := *status
		status = &own
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// It is kept because who says it may have heard of the cluster, or of its spot
	// block, before the monitor.
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

// takeSpot puts what is known of the cluster's spot nodes into the wanted status.
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
		return // from before a restart: it holds until somebody says otherwise
	default:
		o.condition = api.Condition{Status: api.ConditionUnknown, Reason: reasonNotObserved, Message: "the cluster has not been observed yet"}
	}
	o.condition.Type = api.ConditionSpotReady
	api.SetCondition(&s.Conditions, o.condition, now)
}

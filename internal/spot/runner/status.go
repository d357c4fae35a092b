package runner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
)

// Reasons of SpotReady, besides those of the installation.
const (
	reasonNoWebhook  = "NoWebhook"
	reasonConnecting = "Connecting"
)

// followStatus reports the cluster's status until ctx is done.
func (a *agent) followStatus(ctx context.Context) {
	ticker := time.NewTicker(statusEvery)
	defer ticker.Stop()
	ready := false
	for {
		var changed <-chan struct{}
		if a.installer != nil {
			changed = a.installer.Changed() // before the state is read
		}
		condition := a.reportStatus(ctx)
		if now := condition.Status == api.ConditionTrue; now != ready {
			ready = now
			if now {
				a.replaces.LookAtAll() // held-back workloads can continue
			}
		}
		select {
		case <-ticker.C:
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// reportStatus reports the observed state of the cluster. The receiver ignores unchanged states.
func (a *agent) reportStatus(ctx context.Context) api.Condition {
	condition := a.condition()
	condition.Type = api.ConditionSpotReady
	if ctx.Err() == nil && a.target.enabled && !a.runner.AdmitOnly {
		a.runner.Clusters.ObservedSpot(a.name, a.target.uid, a.status(), condition)
	}
	return condition
}

// status counts what is split in the cluster; nil if unknown.
func (a *agent) status() *api.SpotStatus {
	a.mu.Lock()
	i := a.inventory
	a.mu.Unlock()
	if i == nil {
		return nil
	}
	select {
	case <-i.Synced():
	default:
		return nil
	}
	nodes, ending := i.Nodes()
	s := &api.SpotStatus{OnDemandNodes: nodes.OnDemand, SpotNodes: nodes.Spot, EndingNodes: ending}
	for _, report := range a.reported() {
		d := &report.Distribution
		if !isSplit(d) {
			continue
		}
		if d.State == api.DistributionConverged {
			s.Converged++
		}
		s.Workloads++
		s.Pods += d.OnDemand + d.Spot
		s.FallenBack += d.FallenBack
	}
	return s
}

// isSplit reports whether the pods of a workload are being split.
func isSplit(d *api.ClusterDistribution) bool {
	return d.State != api.DistributionUnmanaged && d.State != api.DistributionAbsent
}

// condition says whether new pods are split.
func (a *agent) condition() api.Condition {
	a.mu.Lock()
	i, installer, invalid := a.inventory, a.installer, a.invalid
	a.mu.Unlock()
	not := func(reason, message string) api.Condition {
		return api.Condition{Status: api.ConditionFalse, Reason: reason, Message: message}
	}
	switch {
	case a.runner.Authority == nil:
		return not(reasonNoWebhook, "the server was started without --webhook-listen: no pods are split")
	case invalid != nil:
		return not(api.ReasonInvalidKubeconfig, invalid.Error())
	case i == nil:
		return api.Condition{Status: api.ConditionUnknown, Reason: reasonConnecting}
	}
	failures := i.Failures()
	for _, what := range slices.Sorted(maps.Keys(failures)) {
		reason, message := kube.Describe(what, failures[what])
		return not(reason, message)
	}
	select {
	case <-i.Synced():
	default:
		return api.Condition{Status: api.ConditionUnknown, Reason: reasonConnecting, Message: "the objects in the cluster are being listed"}
	}
	state := installer.State()
	if !state.Ready {
		c := not(state.Reason, state.Message)
		c.Detail = state.Detail
		return c
	}
	return api.Condition{Status: api.ConditionTrue, Reason: state.Reason, Message: strings.TrimSpace(state.Message)}
}

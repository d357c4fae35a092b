package columns

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint/expression"
)

// KubernetesVersionClaim is the claim in which Open Cluster Management's agent and others report
// the version of the Kubernetes API.
const KubernetesVersionClaim = "kubeversion.open-cluster-management.io"

// Condition types of Open Cluster Management's ManagedCluster.
const (
	managedAccepted  = "HubAcceptedManagedCluster"
	managedJoined    = "ManagedClusterJoined"
	managedAvailable = "ManagedClusterConditionAvailable"
)

// ManagedConditions returns the state of a cluster as the conditions of a ManagedCluster in Open
// Cluster Management: whether it is accepted, has joined and is available. Available is False for a
// cluster that responds but is unhealthy, and Unknown for one that does not respond.
func ManagedConditions(c *api.Cluster) []expression.Condition {
	declared := TimeOf(c.Metadata.CreatedAt)
	out := []expression.Condition{{
		Type: managedAccepted, Status: string(api.ConditionTrue), Reason: "HubClusterAdminAccepted",
		Message: "Accepted by hub cluster admin", LastTransitionAt: declared,
	}}
	available := expression.Condition{
		Type: managedAvailable, Status: string(api.ConditionTrue), Reason: "ManagedClusterAvailable",
		Message: "Managed cluster is available", LastTransitionAt: declared,
	}
	state := State(c)
	switch state {
	case api.StateOnline:
	case api.StateUnhealthy, api.StateNotReady:
		available.Status, available.Reason, available.Message = string(api.ConditionFalse), "ManagedClusterKubeAPIServerUnavailable", "Managed cluster is "+string(state)
	default:
		available.Status, available.Reason, available.Message = string(api.ConditionUnknown), "ManagedClusterLeaseUpdateStopped", "Managed cluster is "+string(state)
	}
	if ready := api.FindCondition(c.Status.Conditions, api.ConditionReady); ready != nil {
		if ready.LastTransitionAt != nil {
			available.LastTransitionAt = *ready.LastTransitionAt
		}
		if ready.Message != "" {
			available.Message = ready.Message
		}
	}
	if state != api.StatePending {
		out = append(out, expression.Condition{
			Type: managedJoined, Status: string(api.ConditionTrue), Reason: "ManagedClusterJoined",
			Message: "Managed cluster joined", LastTransitionAt: declared,
		})
	}
	return append(out, available)
}

// sameObservations compares observed facts that have no column.
func sameObservations(a, b *api.Cluster) bool {
	lease := func(c *api.Cluster) api.Duration {
		if c.Spec.Health == nil {
			return ""
		}
		return c.Spec.Health.Interval
	}
	return a.Metadata.UID == b.Metadata.UID && a.Metadata.Generation == b.Metadata.Generation &&
		a.Status.KubernetesVersion == b.Status.KubernetesVersion && State(a) == State(b) && lease(a) == lease(b) &&
		slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, func(x, y api.Condition) bool {
			return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message &&
				TimeOf(x.LastTransitionAt).Equal(TimeOf(y.LastTransitionAt))
		})
}

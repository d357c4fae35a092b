package provider

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// concerned reports whether the decision of an object may depend on objects of a kind. It is asked
// in a plan that writes some: only then the server is.
func concerned(object api.Object, by api.Kind) bool {
	switch by {
	case api.KindMetricsProvider, api.KindMetric:
		return true
	case api.KindOpenStackProject:
		return object.ObjectKind() == api.KindMagnumCluster
	case api.KindMagnumCluster:
		return false
	case api.KindCloud: // gives labels and metrics to the clusters on it
		return object.ObjectKind() != api.KindMagnumCluster
	}
	switch o := object.(type) {
	case *api.Workload, *api.PropagationPolicy:
		return true
	case *api.Placement:
		others := len(o.Spec.ResourceRequests) > 0 || o.Spec.Strategy == api.StrategyPrioritizers
		switch by {
		case api.KindPlacement, api.KindWorkload, api.KindPropagationPolicy:
			return others // what they use of clusters
		case api.KindPlacementScore:
			return others || len(o.Spec.Predicates) > 0
		}
		return true
	}
	return false // hosts are chosen by nothing else
}

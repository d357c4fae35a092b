package provider

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// concerned reports whether the decision of an object may depend on objects of a kind. It is asked
// in a plan that writes some: only then the server is.
func concerned(object api.Object, by api.Kind) bool {
	switch o := object.(type) {
	case *api.MagnumCluster:
		return slices.Contains([]api.Kind{api.KindMetricsProvider, api.KindMetric, api.KindOpenStackProject}, by)
	case *api.Cluster:
		return slices.Contains([]api.Kind{api.KindMetricsProvider, api.KindMetric, api.KindCloud}, by)
	case *api.Placement:
		others := len(o.Spec.ResourceRequests) > 0 || o.Spec.Strategy == api.StrategyPrioritizers
		if slices.Contains([]api.Kind{api.KindPlacement, api.KindWorkload, api.KindPropagationPolicy}, by) {
			return others // what they use of clusters
		}
		if by == api.KindPlacementScore {
			return others || len(o.Spec.Predicates) > 0
		}
	}
	// A cloud gives labels and metrics to the clusters on it.
	return by != api.KindOpenStackProject && by != api.KindMagnumCluster
}

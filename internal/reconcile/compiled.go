package reconcile

import (
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// compiled are queries by the specs that they were compiled from. Specs of one text share their
// memory once they are decoded, so most placements, which are created from a few templates, are
// found here.
type compiled map[origin]compiledSpec

// origin tells specs apart that do not share memory: each has one of the two.
type origin struct {
	namespace string
	metrics   *api.MetricsStrategy
	policy    *api.PrioritizerPolicy
}

// compiledSpec is a spec and a query with it. It keeps the memory that the spec shares, so that no
// other spec can have it.
type compiledSpec struct {
	spec  api.PlacementSpec
	query *placement.Query
}

// maxCompiled is the maximum number of specs.
const maxCompiled = 4096

// query returns the query of a placement. It fails only for a spec that should not have passed
// validation.
func (c compiled) query(p *api.Placement) (*placement.Query, error) {
	from := origin{p.Metadata.Namespace, p.Spec.Metrics, p.Spec.PrioritizerPolicy}
	if known, ok := c[from]; ok && sameMemory(&known.spec, &p.Spec) {
		return known.query.For(p), nil
	}
	q, err := placement.NewQuery(p)
	if err != nil || from.metrics == nil && from.policy == nil {
		return q, err //nolint:wrapcheck // it names the placement
	}
	if len(c) == maxCompiled {
		clear(c)
	}
	c[from] = compiledSpec{p.Spec, q}
	return q, nil
}

// sameMemory reports whether two specs have the same values, in the same memory.
func sameMemory(a, b *api.PlacementSpec) bool {
	return a.NumberOfClusters == b.NumberOfClusters && isSlice(a.ClusterSets, b.ClusterSets) &&
		isSlice(a.ClusterNames, b.ClusterNames) && isSlice(a.ExcludeClusters, b.ExcludeClusters) &&
		a.KubernetesVersion == b.KubernetesVersion && isSlice(a.LabelConstraints, b.LabelConstraints) &&
		isSlice(a.MetricConstraints, b.MetricConstraints) && a.MetricConstraintBasis == b.MetricConstraintBasis &&
		isSlice(a.CustomResources, b.CustomResources) && isSlice(a.Predicates, b.Predicates) &&
		isSlice(a.Tolerations, b.Tolerations) && maps.Equal(a.ResourceRequests, b.ResourceRequests) &&
		isSlice(a.SpreadConstraints, b.SpreadConstraints) && a.Strategy == b.Strategy &&
		a.Metrics == b.Metrics && a.PrioritizerPolicy == b.PrioritizerPolicy && a.Migration == b.Migration &&
		a.RescheduleAfter == b.RescheduleAfter && a.MinImprovement == b.MinImprovement &&
		a.MoveBudget == b.MoveBudget && a.DecisionStrategy == b.DecisionStrategy && a.AutoCluster == b.AutoCluster && a.Rollout == b.Rollout
}

// isSlice reports whether two slices are the same one.
func isSlice[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

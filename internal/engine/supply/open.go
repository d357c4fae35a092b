package supply

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// OpenOf returns what a placement or workload demands. get returns an object, or nil.
func OpenOf(object api.Object, get func(api.Key) api.Object) (o Open, ok bool) {
	o.Key = api.KeyOf(object)
	switch x := object.(type) {
	case *api.Placement:
		o.Demand, o.auto = x.Status.Demand, x.Spec.AutoCluster
		o.uses = func(cluster string) bool { return slices.Contains(x.Status.Clusters, cluster) }
	case *api.Workload:
		o.Demand, o.uses = x.Status.Demand, x.Status.RunsOn
		if x.Status.Policy != "" && o.Demand != nil {
			if policy, ok := get(api.PolicyKey(x.Status.Policy)).(*api.PropagationPolicy); ok {
				o.auto = policy.Spec.AutoCluster
			}
		}
	default:
		return o, false
	}
	return o, true
}

// MadeFor reports whether a cluster was made for a demand, of an object that can see it.
func MadeFor(c *api.Cluster) bool {
	return c.Spec.Demand != nil && c.VisibleTo(c.Spec.Demand.Namespace)
}

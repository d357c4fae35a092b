package reconcile

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// observe returns a copy of an object with its status completed by what moves
// without a write: amounts and metrics. One that has nothing of that is returned as
// it is.
func (s *snapshot) observe(object api.Object) api.Object {
	if k := decidedAs(object.ObjectKind()); k != nil {
		return k.observed(s, object)
	}
	switch o := object.(type) {
	case *api.Cloud:
		if len(o.Spec.Metrics) == 0 {
			return o
		}
		c := *o
		c.Status.Metrics, c.Status.Conditions = placement.ObserveMetrics(s.fleet, o.Spec.Metrics, o.Spec.Namespace, o.Status.Conditions)
		return &c
	case *api.OpenStackProject:
		if len(o.Spec.Metrics) == 0 {
			return o
		}
		c := *o
		c.Status.Metrics, c.Status.Conditions = placement.ObserveMetrics(s.fleet, o.Spec.Metrics, o.Metadata.Namespace, o.Status.Conditions)
		return &c
	}
	return object
}

package reconcile

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// observe returns a copy of an object with its status completed by data that changes without a
// write: amounts and metrics. If there is none, it returns the object itself.
func (s *snapshot) observe(object api.Object) api.Object {
	kind := object.ObjectKind()
	if k := decidedAs(kind); k != nil {
		return k.observed(s, object)
	}
	if k, ok := inputs[kind]; ok {
		return k.observed(s, object)
	}
	return object
}

func (s *snapshot) observeCloud(o *api.Cloud) api.Object {
	if len(o.Spec.Metrics) == 0 {
		return o
	}
	c := *o
	c.Status.Metrics, c.Status.Conditions = placement.ObserveMetrics(s.fleet, o.Spec.Metrics, o.Spec.Namespace, o.Status.Conditions)
	return &c
}

func (s *snapshot) observeProject(o *api.OpenStackProject) api.Object {
	if len(o.Spec.Metrics) == 0 {
		return o
	}
	c := *o
	c.Status.Metrics, c.Status.Conditions = placement.ObserveMetrics(s.fleet, o.Spec.Metrics, o.Metadata.Namespace, o.Status.Conditions)
	return &c
}

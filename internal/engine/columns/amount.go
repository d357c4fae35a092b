package columns

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Resources that the engine treats specially.
const (
	ResourceCPU    = "cpu"
	ResourceMemory = "memory"
	// ResourcePods is required once per replica, if a cluster reports it.
	ResourcePods = "pods"
)

// Amount returns the amount of a resource. A reported amount takes precedence over a declared one.
func Amount(name string, reported, declared api.Quantities) (amount.Milli, bool) {
	var q api.Quantity
	ok := false
	if len(reported) > 0 {
		q, ok = reported[name]
	}
	if !ok && len(declared) > 0 {
		q, ok = declared[name]
	}
	if !ok {
		return amount.Milli{}, false
	}
	milli, err := q.Milli()
	return milli, err == nil
}

// uncommittedOf returns allocatable - allocated of a resource in thousandths. It is 0 if more is
// allocated than allocatable, and Unreported if the cluster has no allocatable amount.
func uncommittedOf(c *api.Cluster, resource string) amount.Milli {
	allocatable, ok := Amount(resource, c.Status.Allocatable, c.Spec.Allocatable)
	if !ok {
		return amount.Unreported
	}
	allocated, _ := Amount(resource, c.Status.Allocated, c.Spec.Allocated)
	return allocatable.Minus(allocated).Rest()
}

// allocatableOf returns the allocatable amount of a resource in thousandths, or Unreported if the
// cluster has none, or no capacity.
func allocatableOf(c *api.Cluster, resource string) amount.Milli {
	if _, whole := Amount(resource, c.Status.Capacity, c.Spec.Capacity); !whole {
		return amount.Unreported
	}
	allocatable, ok := Amount(resource, c.Status.Allocatable, c.Spec.Allocatable)
	if !ok {
		return amount.Unreported
	}
	return allocatable
}

// ResourcesOf calls f for every resource of which the cluster has an allocatable amount.
func ResourcesOf(c *api.Cluster, f func(resource string)) {
	for name := range c.Spec.Allocatable {
		f(name)
	}
	for name := range c.Status.Allocatable {
		if _, ok := c.Spec.Allocatable[name]; !ok {
			f(name)
		}
	}
}

// Reported reports whether a cluster has an allocatable amount of a resource.
func (f *Fleet) Reported(resource string, row int) bool {
	column := f.Uncommitted()[resource]
	return row < column.Len() && column.At(row).Reported()
}

// Positive reports whether an amount is above 0.
func Positive(q api.Quantity) bool {
	milli, err := q.Milli()
	return err == nil && milli.Positive()
}

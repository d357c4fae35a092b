package columns

import (
	"math"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The resources that the engine knows by name.
const (
	ResourceCPU    = "cpu"
	ResourceMemory = "memory"
	// ResourcePods is needed once per replica, where a cluster reports it.
	ResourcePods = "pods"
)

// Unreported marks a resource a cluster says nothing about.
const Unreported = math.MinInt64

// Amount is the figure of a resource, the reported one before the declared.
func Amount(name string, reported, declared api.Quantities) (int64, bool) {
	var q api.Quantity
	ok := false
	if len(reported) > 0 {
		q, ok = reported[name]
	}
	if !ok && len(declared) > 0 {
		q, ok = declared[name]
	}
	if !ok {
		return 0, false
	}
	milli, err := q.Milli()
	return milli, err == nil
}

// uncommittedOf is allocatable - allocated of a resource in thousandths, 0 where
// more is allocated than there is, or unreported where the cluster gives no
// allocatable amount.
func uncommittedOf(c *api.Cluster, resource string) int64 {
	allocatable, ok := Amount(resource, c.Status.Allocatable, c.Spec.Allocatable)
	if !ok {
		return Unreported
	}
	allocated, _ := Amount(resource, c.Status.Allocated, c.Spec.Allocated)
	return max(allocatable-allocated, 0)
}

// allocatableOf is the allocatable amount of a resource in thousandths, or
// unreported where the cluster gives none, or no capacity.
func allocatableOf(c *api.Cluster, resource string) int64 {
	if _, whole := Amount(resource, c.Status.Capacity, c.Spec.Capacity); !whole {
		return Unreported
	}
	allocatable, ok := Amount(resource, c.Status.Allocatable, c.Spec.Allocatable)
	if !ok {
		return Unreported
	}
	return allocatable
}

// ResourcesOf calls f for every resource the cluster has an allocatable amount
// of.
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

// Reported reports whether a cluster tells how much of a resource it has.
func (f *Fleet) Reported(resource string, row int) bool {
	column := f.Uncommitted()[resource]
	return row < len(column) && column[row] != Unreported
}

// Positive reports whether there is any of an amount.
func Positive(q api.Quantity) bool {
	milli, err := q.Milli()
	return err == nil && milli > 0
}

// MaxAmount bounds what is counted of a resource on a cluster, so that sums do not
// overflow where nobody knows how much there is.
const MaxAmount = math.MaxInt64 >> 8

package health

import (
	"context"
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Amounts are reported by somebody other than the cluster: they do not say whether it is online.
type Amounts struct {
	// Allocatable and Allocated are merged into the known amounts by name.
	Allocatable, Allocated api.Quantities
	// Complete says that the report contains every decision made so far, so that reservations end.
	// A report about storage only does not.
	Complete bool
}

// Report accepts amounts. It returns once they are durable, with the revision that shows them.
func (m *Monitor) Report(ctx context.Context, name string, amounts Amounts) (int64, error) {
	c, err := m.change(name, func(c *cluster) error {
		at := m.Now().UTC()
		c.wanted.Allocatable = api.Overlay(c.wanted.Allocatable, amounts.Allocatable)
		c.wanted.Allocated = api.Overlay(c.wanted.Allocated, amounts.Allocated)
		// Resources that such a report leaves out stay unchanged. Those that it contains are no
		// longer gone.
		c.wanted.GoneResources = slices.DeleteFunc(slices.Clone(c.wanted.GoneResources), func(name string) bool {
			_, ok := amounts.Allocatable[name]
			return ok
		})
		if len(c.wanted.GoneResources) == 0 {
			c.wanted.GoneResources = nil
		}
		c.tellGone(at)
		if amounts.Complete {
			c.wanted.CapacityReportedAt = &at
		}
		if c.check.mode == awaited {
			c.watch(checkOf(c.object, &c.wanted), at) // a cluster with amounts exists
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return m.flush(ctx, c)
}

// change modifies the wanted status of a cluster.
func (m *Monitor) change(name string, f func(c *cluster) error) (*cluster, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clusters[name]
	if c == nil {
		return nil, fmt.Errorf("cluster %q: %w", name, ErrNotFound)
	}
	if err := f(c); err != nil {
		return nil, err
	}
	c.wanted.ObservedGeneration = c.object.Metadata.Generation
	return c, nil
}

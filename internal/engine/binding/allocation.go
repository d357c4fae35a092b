package binding

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// allocation is the strategy of a workload with its own placement (spec.allocation): it follows no
// policy, its clusters are sites, and each replica may be a machine of one of several flavors.
// Immutable.
type allocation struct {
	flavors []string       // in order of preference; none = replicas are not machines
	further []machineCount // additional machines of each replica, by flavor name
	alone   bool           // all replicas must be in one region
	// affine and apart are the workloads of its affinity and anti-affinity.
	affine, apart []api.Key
}

// machineCount is a number of machines of a flavor.
type machineCount struct {
	flavor string
	count  int64
}

// newAllocation compiles a workload's requirements on sites into the only affinity group of the
// propagation.
func (p *Propagation) newAllocation(w *api.Workload) error {
	spec := w.Spec.Allocation
	p.allocation = &allocation{flavors: spec.Flavors, alone: spec.RegionStrategy == api.RegionAlone}
	p.strategy = p.allocation
	for _, flavor := range slices.Sorted(maps.Keys(spec.Machines)) {
		p.allocation.further = append(p.allocation.further, machineCount{flavor, spec.Machines[flavor]})
	}
	workload := func(name string) api.Key {
		return api.Key{Kind: api.KindWorkload, Namespace: w.Metadata.Namespace, Name: name}
	}
	for _, name := range spec.StackAffinity {
		p.allocation.affine = append(p.allocation.affine, workload(name))
	}
	for _, name := range spec.StackAntiAffinity {
		p.allocation.apart = append(p.allocation.apart, workload(name))
	}
	if p.mode = division.Discrete; spec.LocationStrategy == api.LocationCentralize {
		p.mode = division.Centralize
	}
	// Replicas on a lost site are replaced at once.
	p.clusterPurge = purge{mode: api.PurgeDirectly}
	q, err := placement.NewGroupQuery(p.key, &filter.Spec{Namespace: w.Metadata.Namespace, Workload: &w.Spec})
	if err != nil {
		return err
	}
	p.Groups = []AffinityGroup{{Query: q}}
	return nil
}

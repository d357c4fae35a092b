package arktos

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// equalMachines are a number of equal machines of a resource group. Each gets one of the
// flavors, the best of which is first.
type equalMachines struct {
	Flavors []string
	Count   int64
}

// maxChoices limits how many choices of flavors are tried for one allocation.
const maxChoices = 128

// chooseFlavors gives every machine the first of its flavors with which the allocation still
// fits: of all choices that fit, it is the one in which the first machines have the
// best flavors. Example: 14 CPUs, and five machines of 4 CPUs or of 2: two of 4 and
// three of 2. fits says whether the workload would be placed as a whole; the choice
// is written to its spec. Where none fits, the spec is that of the last one tried.
//
// Where there are more choices than can be tried, only those are that give all
// machines of a resource one flavor; from the first that fits on, as many as
// possible get a better one.
func chooseFlavors(w *api.Workload, machines []equalMachines, fits func() (bool, error)) (bool, error) {
	c := chooser{workload: w, machines: machines, fits: fits}
	switch {
	case len(machines) == 0:
		return fits()
	case len(machines) == 1 && machines[0].Count == 1:
		return c.single()
	case c.choices() <= maxChoices:
		return c.each(c.none(), 0)
	}
	return c.climb()
}

// chooser tries choices of flavors.
type chooser struct {
	workload *api.Workload
	machines []equalMachines
	fits     func() (bool, error)
	tried    int
}

// choice is how many machines of each resource have each of its flavors.
type choice [][]int64

func (c *chooser) none() choice {
	out := make(choice, len(c.machines))
	for i := range out {
		out[i] = make([]int64, len(c.machines[i].Flavors))
	}
	return out
}

// choices returns the number of choices, or more than can be tried.
func (c *chooser) choices() int64 {
	all := int64(1)
	for _, m := range c.machines {
		// n machines over k flavors: (n+k-1 choose k-1).
		n := int64(1)
		for i := int64(1); i < int64(len(m.Flavors)); i++ {
			if n = n * (m.Count + i) / i; n > maxChoices {
				return n
			}
		}
		if all *= n; all > maxChoices {
			return all
		}
	}
	return all
}

// single handles a single machine: every site uses the first flavor that fits, and if that leaves
// too little room for all replicas, all have one flavor.
func (c *chooser) single() (bool, error) {
	flavors := c.machines[0].Flavors
	c.workload.Spec.Allocation.Flavors = flavors
	ok, err := c.fits()
	if ok || err != nil || len(flavors) == 1 || *c.workload.Spec.Replicas == 1 {
		return ok, err
	}
	for i := range flavors {
		c.workload.Spec.Allocation.Flavors = flavors[i : i+1]
		if ok, err := c.fits(); ok || err != nil {
			return ok, err
		}
	}
	c.workload.Spec.Allocation.Flavors = flavors
	return false, nil
}

// try writes a choice to the spec, and checks whether it fits.
func (c *chooser) try(chosen choice) (bool, error) {
	c.tried++
	a := c.workload.Spec.Allocation
	a.Flavors, a.Machines = nil, map[string]int64{}
	for i, m := range c.machines {
		for j, n := range chosen[i] {
			if n == 0 {
				continue
			}
			if a.Flavors == nil {
				a.Flavors = m.Flavors[j : j+1]
				n--
			}
			if n > 0 {
				a.Machines[m.Flavors[j]] += n
			}
		}
	}
	if len(a.Machines) == 0 {
		a.Machines = nil
	}
	return c.fits()
}

// each tries every choice, those with the best flavors for the first machines first.
func (c *chooser) each(chosen choice, resource int) (bool, error) {
	if resource == len(c.machines) {
		return c.try(chosen)
	}
	return c.spread(chosen, resource, 0, c.machines[resource].Count)
}

// spread tries all assignments of the remaining machines of a resource to flavors from the given
// one on.
func (c *chooser) spread(chosen choice, resource, flavor int, left int64) (bool, error) {
	if flavor == len(chosen[resource])-1 {
		chosen[resource][flavor] = left
		return c.each(chosen, resource+1)
	}
	for n := left; n >= 0; n-- {
		chosen[resource][flavor] = n
		if ok, err := c.spread(chosen, resource, flavor+1, left-n); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// climb starts from one flavor for all machines of each resource, and improves as many as possible.
func (c *chooser) climb() (bool, error) {
	chosen := c.none()
	ok, err := c.uniform(chosen, 0)
	if !ok || err != nil {
		return ok, err
	}
	for i, m := range c.machines {
		worst := slices.IndexFunc(chosen[i], func(n int64) bool { return n > 0 })
		left := m.Count
		for j := range worst {
			low, high := int64(0), left // low fits
			for low < high {
				n := low + (high-low+1)/2
				chosen[i][j], chosen[i][worst] = n, left-n
				ok, err := c.try(chosen)
				switch {
				case err != nil:
					return false, err
				case ok:
					low = n
				default:
					high = n - 1
				}
			}
			left -= low
			chosen[i][j], chosen[i][worst] = low, left
		}
	}
	return c.try(chosen)
}

// uniform assigns one flavor to all machines of each resource, from the given resource on.
func (c *chooser) uniform(chosen choice, resource int) (bool, error) {
	if resource == len(c.machines) {
		return c.try(chosen)
	}
	for j := range chosen[resource] {
		if c.tried >= maxChoices {
			return false, nil
		}
		clear(chosen[resource])
		chosen[resource][j] = c.machines[resource].Count
		if ok, err := c.uniform(chosen, resource+1); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

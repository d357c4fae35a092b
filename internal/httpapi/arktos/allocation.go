package arktos

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// An allocation is a workload of this type.
const (
	allocationAPIVersion = "globalscheduler.com/v1"
	allocationKind       = "Allocation"
	// labelGroup keeps the name of the resource group.
	labelGroup = "globalscheduler.com/resource-group"
)

// IsAllocation reports whether a workload is what this API calls an allocation.
func IsAllocation(w *api.Workload) bool {
	return w.Spec.Allocation != nil && w.Spec.APIVersion == allocationAPIVersion && w.Spec.Kind == allocationKind
}

type allocationBody struct {
	ID            string
	Namespace     string
	ResourceGroup struct {
		Name      string
		Labels    map[string]string
		Resources []resourceBody
		UID       string
		Tenant    string
		Namespace string
	}
	Selector selectorBody
	Replicas *int64
}

// resourceBody is a number of equal machines of a group.
type resourceBody struct {
	Name         string
	ResourceType string
	Flavors      []flavorName
	Storage      map[string]float64 // GB by type, of each machine
	NeedEIP      bool
	Count        *int64
}

// ParseAllocation reads an allocation, alone or as {"allocation": …}. newID makes
// the id of one that has none, and known says whether any site has a flavor.
//
// Each replica of the workload is a resource group. The machines that it consists of
// are returned beside it, for Choose to give each of them one of its flavors; the
// workload itself has those of its first machine.
func ParseAllocation(data []byte, namespace string, newID func() string, known func(flavor string) bool) (*api.Workload, []Machines, error) {
	inner, err := unwrap(data, "allocation")
	if err != nil {
		return nil, nil, err
	}
	var body allocationBody
	if err := decode(inner, &body); err != nil {
		return nil, nil, err
	}
	var errs api.FieldErrors
	sums := requests{}
	var machines []Machines
	all := int64(0)
	if len(body.ResourceGroup.Resources) == 0 {
		errs.Add("resource_group.resources", "is required")
	}
	for i := range body.ResourceGroup.Resources {
		r := &body.ResourceGroup.Resources[i]
		at := "resource_group.resources[" + strconv.Itoa(i) + "]"
		count := int64(1)
		if r.Count != nil {
			count = *r.Count
		}
		if count < 1 || count > maxCount {
			errs.Add(at+".count", "%d must be from 1 to %d", count, maxCount)
			continue
		}
		for _, volumeType := range slices.Sorted(maps.Keys(r.Storage)) {
			under := at + ".storage[" + strconv.Quote(volumeType) + "]"
			amount, message := quantity(r.Storage[volumeType], gibibytes)
			if message == "" {
				message = sums.add(api.ResourceStoragePrefix+volumeType, amount, count)
			}
			if message != "" {
				errs.Add(under, "%s", message)
			}
		}
		if r.NeedEIP {
			if message := sums.add(api.ResourceFloatingIPs, "1", count); message != "" {
				errs.Add(at+".need_eip", "%s", message)
			}
		}
		if named := flavorNames(r.Flavors); len(named) > 0 {
			if count > 1 && !slices.ContainsFunc(named, known) {
				errs.Add(at+".flavors", "no cluster has %s", strings.Join(named, ", "))
			}
			if all += count; all > api.MaxMachines {
				errs.Add(at+".count", "a group must have at most %d machines", api.MaxMachines)
			}
			machines = append(machines, Machines{Flavors: named, Count: count})
		}
	}
	replicas := int64(1)
	if body.Replicas != nil {
		replicas = *body.Replicas
	}
	if replicas < 1 || replicas > maxReplicas {
		errs.Add("replicas", "%d must be from 1 to %d", replicas, maxReplicas)
	}
	w := &api.Workload{
		Metadata: api.Metadata{Name: body.ID, Namespace: body.Namespace, Labels: maps.Clone(body.ResourceGroup.Labels)},
		Spec: api.WorkloadSpec{
			APIVersion: allocationAPIVersion, Kind: allocationKind, Replicas: &replicas,
			ReplicaRequests: sums.quantities(), Allocation: body.Selector.allocation(nil),
		},
	}
	if w.Metadata.Name == "" {
		w.Metadata.Name = newID()
	}
	if w.Metadata.Namespace == "" {
		w.Metadata.Namespace = namespace
	}
	if name := body.ResourceGroup.Name; name != "" {
		if w.Metadata.Labels == nil {
			w.Metadata.Labels = map[string]string{}
		}
		w.Metadata.Labels[labelGroup] = name
	}
	if len(machines) > 0 {
		w.Spec.Allocation.Flavors = machines[0].Flavors
	}
	w, err = checked(w)
	return w, machines, also(errs, err)
}

const (
	maxCount = 1000
	// maxReplicas bounds an answer, which lists a group for every replica.
	maxReplicas = 10_000
)

// Allocation is an allocation as this API shows it.
type Allocation struct {
	ID             string          `json:"id"`
	Namespace      string          `json:"namespace"`
	ResourceGroups []ResourceGroup `json:"resource_groups" doc:"One for each replica."`
}

// ResourceGroup is one replica of an allocation.
type ResourceGroup struct {
	Name     string       `json:"name,omitempty"`
	Selected Selected     `json:"selected"`
	Machines []MachinesOf `json:"machines,omitempty" doc:"How many machines of each flavor the group consists of, where there are several."`
}

// MachinesOf is how many machines of a flavor a group consists of.
type MachinesOf struct {
	FlavorID string `json:"flavor_id"`
	Count    int64  `json:"count"`
}

// machinesOf are those of each replica of a workload whose first machine has a
// flavor, by name.
func machinesOf(w *api.Workload, first string) []MachinesOf {
	if w.Spec.Allocation == nil || len(w.Spec.Allocation.Machines) == 0 {
		return nil
	}
	counts := maps.Clone(w.Spec.Allocation.Machines)
	if first != "" {
		counts[first]++
	}
	out := make([]MachinesOf, 0, len(counts))
	for _, flavor := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, MachinesOf{flavor, counts[flavor]})
	}
	return out
}

// Placed are the replicas of a workload that have a site.
func Placed(w *api.Workload) int64 {
	placed := int64(0)
	for _, c := range w.Status.Clusters {
		placed += c.Replicas
	}
	return placed
}

// ShowAllocation is an allocation as this API shows it; cluster is as for ShowPod.
func ShowAllocation(w *api.Workload, cluster func(name string) *api.Cluster) Allocation {
	shown := Allocation{ID: w.Metadata.Name, Namespace: w.Metadata.Namespace, ResourceGroups: []ResourceGroup{}}
	for _, chosen := range w.Status.Clusters {
		group := ResourceGroup{w.Metadata.Labels[labelGroup], selected(chosen, cluster), machinesOf(w, chosen.Flavor)}
		for range min(chosen.Replicas, maxReplicas) {
			shown.ResourceGroups = append(shown.ResourceGroups, group)
		}
	}
	return shown
}

// AllocationAnswer is one allocation.
type AllocationAnswer struct {
	Allocation Allocation `json:"allocation"`
}

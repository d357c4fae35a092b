package arktos

import (
	"cmp"
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
	// labelGroup holds the name of the resource group.
	labelGroup = "globalscheduler.com/resource-group"
)

// isAllocation reports whether a workload is what this API calls an allocation.
func isAllocation(w *api.Workload) bool {
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
	Storage      map[string]float64 // GB by type, per machine
	NeedEIP      bool
	Count        *int64
}

// parseAllocation reads an allocation, alone or as {"allocation": …}. newID makes
// the id of one that has none, and known says whether any site has a flavor.
//
// Each replica of the workload is a resource group. The machines that it consists of
// are returned beside it, for Choose to give each of them one of its flavors; the
// workload itself has those of its first machine.
func parseAllocation(data []byte, namespace string, newID func() string, known func(flavor string) bool) (*api.Workload, []equalMachines, error) {
	inner, err := unwrap(data, "allocation")
	if err != nil {
		return nil, nil, err
	}
	var body allocationBody
	if err := decode(inner, &body); err != nil {
		return nil, nil, err
	}
	group := resourceGroup{requests: requests{}, known: known}
	group.read(body.ResourceGroup.Resources)
	replicas := group.number("replicas", body.Replicas, maxReplicas)
	w := body.workload(&group, replicas, namespace)
	if w.Metadata.Name == "" {
		w.Metadata.Name = newID()
	}
	w, err = checked(w)
	return w, group.machines, also(group.errs, err)
}

// workload returns the workload that represents an allocation.
func (b *allocationBody) workload(group *resourceGroup, replicas int64, namespace string) *api.Workload {
	labels := maps.Clone(b.ResourceGroup.Labels)
	if name := b.ResourceGroup.Name; name != "" {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[labelGroup] = name
	}
	var flavors []string
	if len(group.machines) > 0 {
		flavors = group.machines[0].Flavors
	}
	return &api.Workload{
		Metadata: api.Metadata{Name: b.ID, Namespace: cmp.Or(b.Namespace, namespace), Labels: labels},
		Spec: api.WorkloadSpec{
			APIVersion: allocationAPIVersion, Kind: allocationKind, Replicas: &replicas,
			ReplicaRequests: group.requests.quantities(), Allocation: b.Selector.allocation(flavors),
		},
	}
}

// resourceGroup adds up the resources of a group, and collects errors.
type resourceGroup struct {
	requests requests
	machines []equalMachines
	count    int64 // total number of machines
	errs     api.FieldErrors
	// known reports whether any site has a flavor.
	known func(flavor string) bool
}

func (g *resourceGroup) read(resources []resourceBody) {
	if len(resources) == 0 {
		g.errs.Add("resource_group.resources", "is required")
	}
	for i := range resources {
		r := &resources[i]
		at := "resource_group.resources[" + strconv.Itoa(i) + "]"
		count := g.number(at+".count", r.Count, maxCount)
		if count < 1 || count > maxCount {
			continue
		}
		g.addStorage(at, r.Storage, count)
		if r.NeedEIP {
			g.check(at+".need_eip", g.requests.add(api.ResourceFloatingIPs, "1", count))
		}
		if named := flavorNames(r.Flavors); len(named) > 0 {
			g.addMachines(at, equalMachines{Flavors: named, Count: count})
		}
	}
}

// number returns a number from 1 to a limit, by default 1.
func (g *resourceGroup) number(field string, given *int64, most int64) int64 {
	if given == nil {
		return 1
	}
	if *given < 1 || *given > most {
		g.errs.Add(field, "%d must be from 1 to %d", *given, most)
	}
	return *given
}

func (g *resourceGroup) check(field, message string) {
	if message != "" {
		g.errs.Add(field, "%s", message)
	}
}

// addStorage adds the volumes of a number of machines, in GB by volume type.
func (g *resourceGroup) addStorage(at string, storage map[string]float64, count int64) {
	for _, volumeType := range slices.Sorted(maps.Keys(storage)) {
		amount, message := quantity(storage[volumeType], gibibytes)
		if message == "" {
			message = g.requests.add(api.ResourceStoragePrefix+volumeType, amount, count)
		}
		g.check(at+".storage["+strconv.Quote(volumeType)+"]", message)
	}
}

func (g *resourceGroup) addMachines(at string, machines equalMachines) {
	if machines.Count > 1 && !slices.ContainsFunc(machines.Flavors, g.known) {
		g.errs.Add(at+".flavors", "no cluster has %s", strings.Join(machines.Flavors, ", "))
	}
	g.machines = append(g.machines, machines)
	if g.count += machines.Count; g.count > api.MaxMachines {
		g.errs.Add(at+".count", "a group must have at most %d machines", api.MaxMachines)
	}
}

const (
	maxCount = 1000
	// maxReplicas limits the size of a response, which lists a group for every replica.
	maxReplicas = 10_000
)

// Allocation is an allocation in this API.
type Allocation struct {
	ID             string          `json:"id"`
	Namespace      string          `json:"namespace"`
	ResourceGroups []ResourceGroup `json:"resource_groups" doc:"One for each replica."`
}

// ResourceGroup is one replica of an allocation.
type ResourceGroup struct {
	Name     string       `json:"name,omitempty"`
	Selected Selected     `json:"selected"`
	Machines []MachinesOf `json:"machines,omitempty" doc:"Number of machines of each flavor in the group, if there are several."`
}

// MachinesOf is how many machines of a flavor a group has.
type MachinesOf struct {
	FlavorID string `json:"flavor_id"`
	Count    int64  `json:"count"`
}

// machinesOf returns the machines of each replica by flavor name; first is the flavor of the first
// machine.
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

// placedReplicas are the replicas of a workload that have a site.
func placedReplicas(w *api.Workload) int64 {
	placed := int64(0)
	for _, c := range w.Status.Clusters {
		placed += c.Replicas
	}
	return placed
}

// showAllocation is an allocation as this API shows it; cluster is as for ShowPod.
func showAllocation(w *api.Workload, cluster func(name string) *api.Cluster) Allocation {
	shown := Allocation{ID: w.Metadata.Name, Namespace: w.Metadata.Namespace, ResourceGroups: []ResourceGroup{}}
	for _, chosen := range w.Status.Clusters {
		group := ResourceGroup{w.Metadata.Labels[labelGroup], selected(chosen, cluster), machinesOf(w, chosen.Flavor)}
		for range min(chosen.Replicas, maxReplicas) {
			shown.ResourceGroups = append(shown.ResourceGroups, group)
		}
	}
	return shown
}

// AllocationAnswer is a response with one allocation.
type AllocationAnswer struct {
	Allocation Allocation `json:"allocation"`
}

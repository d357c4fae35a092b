package globalscheduler

import (
	"maps"
	"slices"
	"strconv"

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

// Size is the size of a flavor.
type Size struct {
	VCPUs  int64
	Memory api.Quantity
}

// ParseAllocation reads an allocation, alone or as {"allocation": …}. newID makes
// the id of one that has none, and sizes tells how large flavors are.
//
// Each replica of the workload is a resource group. Its first machine takes the
// best of its flavors that a site has room for; every further machine of the group
// counts by the size of its first flavor.
func ParseAllocation(data []byte, namespace string, newID func() string, sizes func(flavor string) (Size, bool)) (*api.Workload, error) {
	inner, err := unwrap(data, "allocation")
	if err != nil {
		return nil, err
	}
	var body allocationBody
	if err := decode(inner, &body); err != nil {
		return nil, err
	}
	var errs api.FieldErrors
	sums := requests{}
	var flavors []string
	if len(body.ResourceGroup.Resources) == 0 {
		errs.Add("resource_group.resources", "is required")
	}
	first := true
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
		named := flavorNames(r.Flavors)
		if len(named) == 0 {
			continue
		}
		if first {
			flavors, first = named, false
			count--
		}
		if count == 0 {
			continue
		}
		size, known := sizes(named[0])
		if !known {
			errs.Add(at+".flavors", "the size of flavor %q is not known: of a group, only one machine may be of such a flavor", named[0])
			continue
		}
		for _, message := range []string{
			sums.add(api.ResourceCPU, api.Quantity(strconv.FormatInt(size.VCPUs, 10)), count),
			sums.add(api.ResourceMemory, size.Memory, count),
		} {
			if message != "" {
				errs.Add(at+".count", "%s", message)
			}
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
			ReplicaRequests: sums.quantities(), Allocation: body.Selector.allocation(flavors),
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
	w, err = checked(w)
	return w, also(errs, err)
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
	Name     string   `json:"name,omitempty"`
	Selected Selected `json:"selected"`
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
		group := ResourceGroup{w.Metadata.Labels[labelGroup], selected(chosen, cluster)}
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

// Max is the larger of each part.
func (s Size) Max(other Size) Size {
	if other.VCPUs > s.VCPUs {
		s.VCPUs = other.VCPUs
	}
	had, errHad := s.Memory.Milli()
	has, errHas := other.Memory.Milli()
	if errHas == nil && (errHad != nil || has > had) {
		s.Memory = other.Memory
	}
	return s
}

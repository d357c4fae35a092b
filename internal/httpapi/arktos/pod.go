package arktos

import (
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A pod is a workload of this type with one replica and an allocation.
const (
	podAPIVersion = "v1"
	podKind       = "Pod"
)

// isPod reports whether a workload is what this API calls a pod.
func isPod(w *api.Workload) bool {
	return w.Spec.Allocation != nil && w.Spec.APIVersion == podAPIVersion && w.Spec.Kind == podKind
}

// podBody is the plain form of a pod.
type podBody struct {
	Name      string
	Namespace string
	Labels    map[string]string
	Flavor    flavorName
	Flavors   []flavorName
	CPU       *float64
	Memory    *float64 // MiB
	Storage   map[string]float64
	EIP       *float64
	Selector  selectorBody
	Priority  int64
}

// podManifest is a pod manifest of Arktos; only the parts relevant for placement are read.
type podManifest struct {
	Metadata struct {
		Name      string
		Namespace string
		Labels    map[string]string
	}
	Spec struct {
		VirtualMachine     machineBody
		Containers         []machineBody
		ResourceCommonInfo commonBody
		Selector           selectorBody
	}
}

type machineBody struct {
	Flavors            []flavorName
	FlavorRef          flavorName
	ResourceCommonInfo *commonBody
	Resources          struct{ Requests, Limits map[string]amountText }
}

type commonBody struct {
	Count    int64
	Selector selectorBody
}

// amountText is a quantity that may be written as a number.
type amountText api.Quantity

// UnmarshalJSON implements json.Unmarshaler.
func (a *amountText) UnmarshalJSON(data []byte) error {
	if value := jsontext.Value(data); value.Kind() == '0' {
		*a = amountText(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(a))
}

// parsePod reads a pod: the manifest of Arktos, with metadata and spec, or the
// plain form, alone or as {"pod": …}. namespace is that of a pod that names none.
func parsePod(data []byte, namespace string) (*api.Workload, error) {
	inner, err := unwrap(data, "pod")
	if err != nil {
		return nil, err
	}
	parts, err := membersOf(inner)
	if err != nil {
		return nil, err
	}
	if _, ok := parts["spec"]; ok {
		return parseManifest(inner, namespace)
	}
	var body podBody
	if err := decode(inner, &body); err != nil {
		return nil, err
	}
	var a amounts
	a.set("cpu", api.ResourceCPU, body.CPU, pieces)
	a.set("memory", api.ResourceMemory, body.Memory, mebibytes)
	a.set("eip", api.ResourceFloatingIPs, body.EIP, pieces)
	for _, volumeType := range slices.Sorted(maps.Keys(body.Storage)) {
		size := body.Storage[volumeType]
		a.set("storage."+volumeType, api.ResourceStoragePrefix+volumeType, &size, gibibytes)
	}
	flavors := flavorNames(body.Flavors)
	if body.Flavor != "" {
		if len(flavors) > 0 {
			a.errs.Add("flavor", "must be absent because flavors is given")
		}
		flavors = []string{string(body.Flavor)}
	}
	w, err := pod(api.Metadata{Name: body.Name, Namespace: body.Namespace, Labels: body.Labels}, namespace, body.Selector.allocation(flavors), a.quantities)
	w.Spec.Priority = body.Priority
	return w, also(a.errs, err)
}

func parseManifest(data []byte, namespace string) (*api.Workload, error) {
	var body podManifest
	if err := decodeLoosely(data, &body); err != nil {
		return nil, err
	}
	var errs api.FieldErrors
	sums := requests{}
	machines := append([]machineBody{body.Spec.VirtualMachine}, body.Spec.Containers...)
	info := body.Spec.ResourceCommonInfo
	var flavors []string
	for i := range machines {
		m := &machines[i]
		at := "spec.virtualMachine"
		if i > 0 {
			at = "spec.containers[" + strconv.Itoa(i-1) + "]"
		}
		if named := flavorNames(m.Flavors); len(named) > 0 {
			flavors = named
		} else if m.FlavorRef != "" && len(flavors) == 0 {
			flavors = []string{string(m.FlavorRef)}
		}
		if m.ResourceCommonInfo != nil {
			info = *m.ResourceCommonInfo
		}
		// As in Kubernetes, a limit without a request is also the request.
		asked := maps.Clone(m.Resources.Limits)
		if asked == nil {
			asked = map[string]amountText{}
		}
		maps.Copy(asked, m.Resources.Requests)
		for _, resource := range slices.Sorted(maps.Keys(asked)) {
			if message := sums.add(resource, api.Quantity(asked[resource]), 1); message != "" {
				errs.Add(at+".resources.requests["+strconv.Quote(resource)+"]", "%s", message)
			}
		}
	}
	if info.Count < 0 || info.Count > 1 {
		errs.Add("spec.virtualMachine.resourceCommonInfo.count", "%d must be 1: several machines are an allocation", info.Count)
	}
	selector := &info.Selector
	if given := body.Spec.Selector.allocation(nil); !empty(given) {
		selector = &body.Spec.Selector
	}
	m := body.Metadata
	w, err := pod(api.Metadata{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels}, namespace, selector.allocation(flavors), sums.quantities())
	return w, also(errs, err)
}

// empty reports whether a selector has no conditions.
func empty(a *api.AllocationSpec) bool {
	return a.GeoLocation == nil && a.Operator == "" && a.SiteID == "" && a.LocationStrategy == "" && a.RegionStrategy == "" &&
		len(a.Regions)+len(a.StackAffinity)+len(a.StackAntiAffinity) == 0
}

func pod(meta api.Metadata, namespace string, allocation *api.AllocationSpec, asked api.Quantities) (*api.Workload, error) {
	if meta.Namespace == "" {
		meta.Namespace = namespace
	}
	one := int64(1)
	return checked(&api.Workload{Metadata: meta, Spec: api.WorkloadSpec{
		APIVersion: podAPIVersion, Kind: podKind, Replicas: &one, ReplicaRequests: asked, Allocation: allocation,
	}})
}

// also joins errors about numbers with other errors.
func also(errs api.FieldErrors, err error) error {
	if fields, ok := err.(api.FieldErrors); ok { //nolint:errorlint // returned by Err, which returns the list itself
		errs.Join(fields)
	}
	return errs.Err()
}

// Pod is a pod in this API.
type Pod struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Status    string `json:"status" enum:"Bound,Pending"`
	Message   string `json:"message,omitempty" doc:"Why the pod is not bound."`
	Selected
}

// States of a pod.
const (
	PodBound   = "Bound"
	PodPending = "Pending"
)

// Selected is the site of a pod or replica.
type Selected struct {
	SiteID           string `json:"site_id,omitempty"`
	Region           string `json:"region,omitempty"`
	AvailabilityZone string `json:"availability_zone,omitempty"`
	ClusterName      string `json:"cluster_name,omitempty"`
	ClusterNamespace string `json:"cluster_namespace,omitempty"`
	FlavorID         string `json:"flavor_id,omitempty"`
}

// showPod is a pod as this API shows it. cluster finds clusters by name; it
// returns nil for those that are gone, or not to be seen.
func showPod(w *api.Workload, cluster func(name string) *api.Cluster) Pod {
	shown := Pod{ID: w.Metadata.UID, Name: w.Metadata.Name, Namespace: w.Metadata.Namespace, Status: PodPending}
	if len(w.Status.Clusters) > 0 {
		shown.Status = PodBound
		shown.Selected = selected(w.Status.Clusters[0], cluster)
		return shown
	}
	shown.Message = waiting(w)
	return shown
}

// waiting says why a workload has no site.
func waiting(w *api.Workload) string {
	c := api.FindCondition(w.Status.Conditions, api.ConditionScheduled)
	if w.Status.ObservedGeneration != w.Metadata.Generation || c == nil {
		return "the decision has not been made yet"
	}
	return c.Message
}

func selected(chosen api.WorkloadCluster, cluster func(name string) *api.Cluster) Selected {
	s := Selected{ClusterName: chosen.Name, FlavorID: chosen.Flavor}
	c := cluster(chosen.Name)
	if c == nil {
		return s
	}
	s.ClusterNamespace = c.Spec.Namespace
	site, ok := siteOf(c)
	s.Region, s.AvailabilityZone = site.Region, site.Zone
	if ok {
		s.SiteID = site.ID()
	}
	return s
}

// PodAnswer is a response with one pod.
type PodAnswer struct {
	Pod Pod `json:"pod"`
}

// PodList is a list of pods by namespace and name.
type PodList struct {
	Pods     []Pod  `json:"pods"`
	Continue string `json:"continue,omitempty" doc:"Token of the next page. Absent on the last one."`
}

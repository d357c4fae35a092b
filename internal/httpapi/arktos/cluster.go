package arktos

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Claims of a cluster that hold data that only this API has.
const (
	claimIPAddress   = "ipaddress"
	claimServerPrice = "serverprice"
)

type clusterBody struct {
	Name             string
	Namespace        string   // extension: the owner
	Namespaces       []string // extension: several owners
	Labels           map[string]string
	IPAddress        string
	GeoLocation      api.GeoLocation
	Region           jsontext.Value // {region, availabilityzone}, or only the name
	AvailabilityZone string
	Operator         string
	Flavors          []clusterFlavorBody
	Storage          []storageBody
	EIPCapacity      *float64
	CPUCapacity      *float64
	MemCapacity      *float64
	ServerPrice      *float64
}

type clusterFlavorBody struct {
	FlavorID      string
	TotalCapacity *int64
	// Sizes are an extension: with them, the counts are derived from what is available.
	VCPUs int64
	RAM   *float64
}

// parseCluster reads the registration of a cluster: the spec of the Cluster custom
// resource, alone, or as {"cluster": …}, or with metadata and spec. The cluster is
// not validated but for what this API requires.
func parseCluster(data []byte) (*api.Cluster, error) {
	inner, err := unwrap(data, "cluster")
	if err != nil {
		return nil, err
	}
	parts, err := membersOf(inner)
	if err != nil {
		return nil, err
	}
	var body clusterBody
	if spec, ok := parts["spec"]; ok {
		var metadata struct {
			Name   string
			Labels map[string]string
		}
		if raw, ok := parts["metadata"]; ok {
			if err := decodeLoosely(raw, &metadata); err != nil {
				return nil, err
			}
		}
		inner = spec
		body.Name, body.Labels = metadata.Name, metadata.Labels
	}
	if err := decodeLoosely(inner, &body); err != nil {
		return nil, err
	}
	return body.cluster()
}

func (b *clusterBody) cluster() (*api.Cluster, error) {
	var errs api.FieldErrors
	site, err := b.site(&errs)
	if err != nil {
		return nil, err
	}
	for _, required := range []struct{ field, value string }{
		{"name", b.Name}, {"ipaddress", b.IPAddress}, {"region.region", site.Region}, {"region.availabilityzone", site.AvailabilityZone},
	} {
		if required.value == "" {
			errs.Add(required.field, "is required")
		}
	}
	allocatable, allocated := b.amounts(&errs)
	c := &api.Cluster{
		Metadata: api.Metadata{Name: b.Name, Labels: b.Labels},
		Spec: api.ClusterSpec{
			Namespace: b.Namespace, Namespaces: b.Namespaces, Region: site.Region, Zones: []string{site.AvailabilityZone},
			Claims: b.claims(), Allocatable: allocatable, Allocated: allocated, Flavors: b.flavors(&errs),
		},
	}
	if len(errs) > 0 {
		return nil, errs
	}
	c.SetDefaults()
	return c, nil
}

// clusterSite is the location of a cluster.
type clusterSite struct{ Region, AvailabilityZone string }

func (b *clusterBody) site(errs *api.FieldErrors) (clusterSite, error) {
	site := clusterSite{AvailabilityZone: b.AvailabilityZone}
	switch b.Region.Kind() {
	case '"':
		return site, decodeLoosely(b.Region, &site.Region)
	case '{':
		return site, decodeLoosely(b.Region, &site)
	case 0, 'n':
	default:
		errs.Add("region", "must be an object with region and availabilityzone")
	}
	return site, nil
}

// amounts returns the cluster's resources, of which nothing is in use.
func (b *clusterBody) amounts(errs *api.FieldErrors) (allocatable, allocated api.Quantities) {
	var a amounts
	a.set("cpucapacity", api.ResourceCPU, given(b.CPUCapacity), pieces)
	a.set("memcapacity", api.ResourceMemory, given(b.MemCapacity), mebibytes)
	a.set("eipcapacity", api.ResourceFloatingIPs, given(b.EIPCapacity), pieces)
	a.setStorage("storage", slices.DeleteFunc(slices.Clone(b.Storage), func(s storageBody) bool { return s.StorageCapacity != nil && *s.StorageCapacity == 0 }))
	errs.Join(a.errs)
	for name := range a.quantities {
		if allocated == nil {
			allocated = api.Quantities{}
		}
		allocated[name] = "0"
	}
	return a.quantities, allocated
}

func (b *clusterBody) claims() map[string]string {
	claims := b.GeoLocation.Claims()
	for claim, value := range map[string]string{api.ClaimOperator: b.Operator, claimIPAddress: b.IPAddress} {
		if value != "" {
			claims[claim] = value
		}
	}
	if b.ServerPrice != nil {
		claims[claimServerPrice] = format(*b.ServerPrice)
	}
	return claims
}

func (b *clusterBody) flavors(errs *api.FieldErrors) []api.ClusterFlavor {
	var flavors []api.ClusterFlavor
	for i, f := range b.Flavors {
		at := "flavors[" + strconv.Itoa(i) + "]"
		if f.FlavorID == "" {
			errs.Add(at+".flavorid", "is required")
			continue
		}
		flavor := api.ClusterFlavor{Name: f.FlavorID, VCPUs: f.VCPUs, Count: f.TotalCapacity}
		if f.RAM != nil {
			memory, message := quantity(*f.RAM, mebibytes)
			if message != "" {
				errs.Add(at+".ram", "%s", message)
			}
			flavor.Memory = memory
		}
		flavors = append(flavors, flavor)
	}
	return flavors
}

// given returns a capacity that is set: the custom resource has 0 if it is not.
func given(capacity *float64) *float64 {
	if capacity == nil || *capacity == 0 {
		return nil
	}
	return capacity
}

// RegisteredCluster is a cluster in this API.
type RegisteredCluster struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	Namespace   string           `json:"namespace,omitempty" doc:"Owner of the cluster: only pods in this namespace see it."`
	Namespaces  []string         `json:"namespaces,omitempty" doc:"Owners of the cluster, if there are several."`
	SiteID      string           `json:"site_id" doc:"<region>--<zone>"`
	State       api.ClusterState `json:"state"`
	IPAddress   string           `json:"ipaddress,omitempty"`
	GeoLocation *api.GeoLocation `json:"geolocation,omitempty"`
	Region      Region           `json:"region"`
	Operator    string           `json:"operator,omitempty"`
	Flavors     []Flavor         `json:"flavors,omitempty" doc:"By name."`
	CPUCapacity int64            `json:"cpucapacity,omitempty" doc:"What workloads may use, as declared or pushed."`
	MemCapacity int64            `json:"memcapacity,omitempty" doc:"MiB"`
	EIPCapacity int64            `json:"eipcapacity,omitempty"`
	Storage     []Storage        `json:"storage,omitempty" doc:"By type."`
	ServerPrice string           `json:"serverprice,omitempty"`
	Available   api.Quantities   `json:"available,omitempty" doc:"What is currently available, by resource."`
}

// Region is the location of a cluster.
type Region struct {
	Region           string `json:"region"`
	AvailabilityZone string `json:"availabilityzone"`
}

// Flavor is a machine size of a cluster.
type Flavor struct {
	FlavorID      string `json:"flavorid"`
	VCPUs         int64  `json:"vcpus,omitempty"`
	RAM           int64  `json:"ram,omitempty" doc:"MiB"`
	TotalCapacity *int64 `json:"totalcapacity,omitempty" doc:"Capacity as registered."`
	Count         *int64 `json:"count,omitempty" doc:"Number of machines that there is currently room for."`
}

// Storage is an amount of one volume type.
type Storage struct {
	TypeID          string `json:"typeid"`
	StorageCapacity int64  `json:"storagecapacity" doc:"GB"`
}

// showCluster is the cluster of a site as this API shows it. Its status has to be
// completed.
func showCluster(s zoneSite) RegisteredCluster {
	c := s.Cluster
	claims := c.Spec.Claims
	shown := RegisteredCluster{
		ID: c.Metadata.UID, Name: c.Metadata.Name, Namespace: c.Spec.Namespace, Namespaces: c.Spec.Namespaces, SiteID: s.ID(),
		State: cmp.Or(c.Status.State, api.StateOnline), IPAddress: claims[claimIPAddress], Operator: claims[api.ClaimOperator],
		Region: Region{s.Region, s.Zone}, ServerPrice: claims[claimServerPrice], Available: c.Status.Available,
	}
	geo := api.GeoLocation{Country: claims[api.ClaimCountry], Area: claims[api.ClaimArea], Province: claims[api.ClaimProvince], City: claims[api.ClaimCity]}
	if geo != (api.GeoLocation{}) {
		shown.GeoLocation = &geo
	}
	allocatable, _ := declared(c)
	shown.CPUCapacity = number(allocatable[api.ResourceCPU], pieces)
	shown.MemCapacity = number(allocatable[api.ResourceMemory], mebibytes)
	shown.EIPCapacity = number(allocatable[api.ResourceFloatingIPs], pieces)
	for _, name := range slices.Sorted(maps.Keys(allocatable)) {
		if volumeType, ok := strings.CutPrefix(name, api.ResourceStoragePrefix); ok {
			shown.Storage = append(shown.Storage, Storage{volumeType, number(allocatable[name], gibibytes)})
		}
	}
	flavors := map[string]Flavor{}
	for _, f := range c.Spec.Flavors {
		flavors[f.Name] = Flavor{FlavorID: f.Name, VCPUs: f.VCPUs, RAM: number(f.Memory, mebibytes), TotalCapacity: f.Count}
	}
	for name, count := range c.Status.Flavors {
		f := flavors[name]
		f.FlavorID, f.Count = name, &count
		flavors[name] = f
	}
	for _, name := range slices.Sorted(maps.Keys(flavors)) {
		shown.Flavors = append(shown.Flavors, flavors[name])
	}
	return shown
}

// ClusterAnswer is a response with one cluster.
type ClusterAnswer struct {
	Cluster RegisteredCluster `json:"cluster"`
}

// ClusterList is a list of clusters by name.
type ClusterList struct {
	Clusters []RegisteredCluster `json:"clusters"`
}

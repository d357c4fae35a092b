package arktos

import (
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// pushedFigures are what is available at one site, or at every site of a region.
type pushedFigures struct {
	Region string // "" if Zone is the ID of a site
	Zone   string // as written; "" = every site of the region
	// Available are amounts by resource, with the resource names of clusters.
	Available api.Quantities
}

type zoneBody struct {
	AvailabilityZone string
	CPUCapacity      *float64
	MemCapacity      *float64
	EIPCapacity      *float64
	ResourceType     string // always "default"
}

type regionBody struct {
	RegionName      string
	CPUMemResources []zoneBody
	VolumeResources []storageBody
	EIPCapacity     *float64
}

// parseRegion reads a push about the region that the path names. Its body may be
// wrapped in "siteresource" or "regionresource".
func parseRegion(region string, data []byte) ([]pushedFigures, error) {
	inner, err := unwrap(data, "siteresource", "regionresource")
	if err != nil {
		return nil, err
	}
	var body regionBody
	if err := decode(inner, &body); err != nil {
		return nil, err
	}
	if body.RegionName == "" {
		body.RegionName = region
	}
	if body.RegionName != region {
		return nil, api.FieldErrors{{Field: "RegionName", Message: strconv.Quote(body.RegionName) + " must be " + strconv.Quote(region) + ", as in the path"}}
	}
	figures, errs := body.figures("")
	return figures, errs.Err()
}

// parseRegions reads a push about several regions:
// {"regionresources": [{"regionname": …}, …]}.
func parseRegions(data []byte) ([]pushedFigures, error) {
	inner, err := unwrap(data, "siteresource", "regionresource")
	if err != nil {
		return nil, err
	}
	var body struct {
		RegionResources []regionBody
		regionBody
	}
	if err := decode(inner, &body); err != nil {
		return nil, err
	}
	var all []pushedFigures
	var errs api.FieldErrors
	named := map[string]bool{}
	regions, prefix := body.RegionResources, true
	if body.RegionName != "" {
		regions, prefix = append(regions, body.regionBody), len(regions) > 0
	}
	for i := range regions {
		at := ""
		if prefix {
			at = "regionresources[" + strconv.Itoa(i) + "]."
		}
		name := regions[i].RegionName
		switch {
		case name == "":
			errs.Add(at+"regionname", "is required")
			continue
		case named[name]:
			errs.Add(at+"regionname", "%q is listed before", name)
			continue
		}
		named[name] = true
		figures, wrong := regions[i].figures(at)
		if len(wrong) > 0 {
			errs.Join(wrong)
			continue
		}
		all = append(all, figures...)
	}
	return all, errs.Err()
}

// figures returns those of the zones, then those of the whole region, which are included even if
// empty, because the region must exist.
func (b *regionBody) figures(prefix string) ([]pushedFigures, api.FieldErrors) {
	var all []pushedFigures
	var errs api.FieldErrors
	zones := map[string]bool{}
	for i := range b.CPUMemResources {
		z := &b.CPUMemResources[i]
		at := prefix + "CPUMemResources[" + strconv.Itoa(i) + "]."
		switch {
		case z.AvailabilityZone == "":
			errs.Add(at+"AvailabilityZone", "is required")
			continue
		case zones[z.AvailabilityZone]:
			errs.Add(at+"AvailabilityZone", "%q is listed before", z.AvailabilityZone)
			continue
		}
		zones[z.AvailabilityZone] = true
		var a amounts
		a.set(at+"CpuCapacity", api.ResourceCPU, z.CPUCapacity, pieces)
		a.set(at+"MemCapacity", api.ResourceMemory, z.MemCapacity, mebibytes)
		a.set(at+"EipCapacity", api.ResourceFloatingIPs, z.EIPCapacity, pieces)
		errs.Join(a.errs)
		all = append(all, pushedFigures{b.RegionName, z.AvailabilityZone, a.quantities})
	}
	var a amounts
	a.setStorage(prefix+"VolumeResources", b.VolumeResources)
	a.set(prefix+"EipCapacity", api.ResourceFloatingIPs, b.EIPCapacity, pieces)
	errs.Join(a.errs)
	return append(all, pushedFigures{b.RegionName, "", a.quantities}), errs
}

type siteBody struct {
	SiteID      string
	CPUCapacity *float64
	MemCapacity *float64
	EIPCapacity *float64
	Storage     []storageBody
}

// parseSites reads a push about sites, each of which is named by its id:
// {"SiteResources": [{"SiteID": …}, …]}, or a single one.
func parseSites(data []byte) ([]pushedFigures, error) {
	inner, err := unwrap(data, "siteresource", "siteresourcesspec", "siteresourcespec")
	if err != nil {
		return nil, err
	}
	var body struct {
		SiteResources []siteBody
		siteBody
	}
	if err := decode(inner, &body); err != nil {
		return nil, err
	}
	sites, prefix := body.SiteResources, true
	if body.SiteID != "" {
		sites, prefix = append(sites, body.siteBody), len(sites) > 0
	}
	var all []pushedFigures
	var errs api.FieldErrors
	named := map[string]bool{}
	for i := range sites {
		at := ""
		if prefix {
			at = "SiteResources[" + strconv.Itoa(i) + "]."
		}
		b := &sites[i]
		switch {
		case b.SiteID == "":
			errs.Add(at+"SiteID", "is required")
			continue
		case named[b.SiteID]:
			errs.Add(at+"SiteID", "%q is listed before", b.SiteID)
			continue
		}
		named[b.SiteID] = true
		var a amounts
		a.set(at+"CPUCapacity", api.ResourceCPU, b.CPUCapacity, pieces)
		a.set(at+"MemCapacity", api.ResourceMemory, b.MemCapacity, mebibytes)
		a.set(at+"EipCapacity", api.ResourceFloatingIPs, b.EIPCapacity, pieces)
		a.setStorage(at+"Storage", b.Storage)
		errs.Join(a.errs)
		all = append(all, pushedFigures{"", b.SiteID, a.quantities})
	}
	return all, errs.Err()
}

// changedFigures are the available amounts that differ from what is known of a cluster.
// What is pushed is free: nothing of it counts as in use any more.
func changedFigures(c *api.Cluster, available api.Quantities) api.Quantities {
	allocatable, allocated := declared(c)
	changed := api.Quantities{}
	for name, amount := range available {
		known, ok := allocatable[name]
		if !ok || !equal(known, amount) || !equal(allocated[name], "0") {
			changed[name] = amount
		}
	}
	return changed
}

// completed reports whether a push counts all that was placed before it: processors
// and memory are among it, and one of them has changed. Figures that are as they
// were have not seen anything yet.
func completed(available, changed api.Quantities) bool {
	_, cpu := available[api.ResourceCPU]
	_, memory := available[api.ResourceMemory]
	_, cpuChanged := changed[api.ResourceCPU]
	_, memoryChanged := changed[api.ResourceMemory]
	return cpu && memory && (cpuChanged || memoryChanged)
}

// declared returns the amounts of a cluster: reported ones override those in the spec by name.
func declared(c *api.Cluster) (allocatable, allocated api.Quantities) {
	return api.Overlay(c.Spec.Allocatable, c.Status.Allocatable), api.Overlay(c.Spec.Allocated, c.Status.Allocated)
}

// equal compares amounts; an absent one is 0.
func equal(a, b api.Quantity) bool {
	if a == "" {
		a = "0"
	}
	x, errX := a.Milli()
	y, errY := b.Milli()
	return errX == nil && errY == nil && x == y
}

// PushResult says what a push changed.
type PushResult struct {
	Result string         `json:"result" enum:"ok"`
	Sites  []PushedAmount `json:"sites" doc:"Sites whose values changed, by cluster."`
}

// PushedAmount contains the changes of one site.
type PushedAmount struct {
	SiteID    string         `json:"site_id"`
	Cluster   string         `json:"cluster_name"`
	Available api.Quantities `json:"available" doc:"By resource. Contains only what changed."`
}

// Result is a response without data.
type Result struct {
	Result string `json:"result" enum:"ok"`
}

// resultOK is the result of what was done.
const resultOK = "ok"

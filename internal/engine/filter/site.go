package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// site requires what an allocation demands of its sites: that the cluster is a site, its location
// and operator, and its machines.
type site struct{}

func (site) Name() string { return "site" }

func (site) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.Workload == nil || s.Workload.Allocation == nil {
		return made, nil
	}
	for _, demand := range siteDemands(s.Workload.Allocation) {
		made = append(made, &meetsDemand{demand: demand})
	}
	return made, nil
}

// meetsDemand requires that a site meets one demand.
type meetsDemand struct {
	site
	demand siteDemand
}

func (c *meetsDemand) Key(k key.Writer)       { c.demand.key(k) }
func (c *meetsDemand) Reads() columns.Aspects { return c.demand.reads() }
func (c *meetsDemand) On() string             { return c.demand.on() }
func (c *meetsDemand) Rejection(n int) string { return c.demand.rejection(n) }

func (c *meetsDemand) Apply(l *Evaluation, keep columns.Bitmap) {
	c.demand.narrow(l.Fleet, keep, l.scratch)
	keep.Each(func(row int) {
		if !c.demand.met(l.Fleet.Cluster(row), false) {
			keep.Clear(row)
		}
	})
}

func (c *meetsDemand) Admits(l *Evaluation, row int, current bool) bool {
	return c.demand.met(l.Fleet.Cluster(row), current)
}

func (c *meetsDemand) Reason(l *Evaluation, row int) string {
	return c.demand.mismatch(l.Fleet.Cluster(row))
}

// siteDemand is one demand of an allocation on sites.
type siteDemand interface {
	// key writes the kind of the demand, followed by its values as a set.
	key(k key.Writer)
	// reads returns the aspects of a cluster that determine whether the demand is met.
	reads() columns.Aspects
	on() string
	rejection(n int) string
	// narrow removes clusters that an index shows not to meet the demand. It may keep others that
	// do not.
	narrow(f *columns.Fleet, keep, scratch columns.Bitmap)
	// met reports whether a cluster meets the demand. current says that the workload already runs
	// there.
	met(c *api.Cluster, current bool) bool
	mismatch(c *api.Cluster) string
}

// siteDemands returns the demands of an allocation.
func siteDemands(a *api.AllocationSpec) []siteDemand {
	demands := []siteDemand{isSite{}}
	if a.SiteID != "" {
		demands = append(demands, siteID(a.SiteID))
	}
	if len(a.Regions) > 0 {
		demands = append(demands, siteRegions(a.Regions))
	}
	claims := a.GeoLocation.Claims()
	if a.Operator != "" {
		claims[api.ClaimOperator] = a.Operator
	}
	for _, claim := range [...]string{api.ClaimCountry, api.ClaimArea, api.ClaimProvince, api.ClaimCity, api.ClaimOperator} {
		if value, asked := claims[claim]; asked {
			demands = append(demands, siteClaim{claim, value})
		}
	}
	if len(a.Flavors) > 0 {
		demands = append(demands, siteFlavors(a.Flavors))
	}
	return demands
}

// isSite requires a region: a cluster without one is not a site.
type isSite struct{}

func (isSite) key(k key.Writer)       { demandKey(k, "site") }
func (isSite) reads() columns.Aspects { return columns.Place }
func (isSite) on() string             { return "region" }
func (isSite) rejection(n int) string {
	return Plural(n, "has", "have") + " no region, which a site needs"
}
func (isSite) narrow(*columns.Fleet, columns.Bitmap, columns.Bitmap) {}
func (isSite) met(c *api.Cluster, _ bool) bool                       { return c.Spec.Region != "" }
func (isSite) mismatch(*api.Cluster) string                          { return "has no region, which a site needs" }

// siteID requires a site ID, or a site of a region if it is only the region part of an ID.
type siteID string

func (s siteID) key(k key.Writer)       { demandKey(k, "site_id", string(s)) }
func (s siteID) reads() columns.Aspects { return columns.Place }
func (s siteID) on() string             { return "site_id" }
func (s siteID) rejection(n int) string {
	return fmt.Sprintf("%s not site %q", Plural(n, "is", "are"), string(s))
}

// region returns the region if the ID stands for all sites of a region.
func (s siteID) region() (string, bool) { return strings.CutSuffix(string(s), api.SiteID("", "")) }

func (s siteID) narrow(f *columns.Fleet, keep, scratch columns.Bitmap) {
	if region, whole := s.region(); whole {
		f.Places()[api.GroupByRegion][region].AndInto(keep, scratch)
	}
}

func (s siteID) met(c *api.Cluster, _ bool) bool {
	if region, whole := s.region(); whole {
		return c.Spec.Region == region
	}
	return slices.ContainsFunc(c.Spec.Zones, func(zone string) bool { return api.SiteID(c.Spec.Region, zone) == string(s) })
}

func (s siteID) mismatch(c *api.Cluster) string {
	return fmt.Sprintf("is %s, wanted site %q", whereabouts(c), string(s))
}

// whereabouts returns the sites that a cluster represents.
func whereabouts(c *api.Cluster) string {
	if len(c.Spec.Zones) == 0 {
		return fmt.Sprintf("in region %q, in no zone", c.Spec.Region)
	}
	ids := make([]string, len(c.Spec.Zones))
	for i, zone := range c.Spec.Zones {
		ids[i] = fmt.Sprintf("%q", api.SiteID(c.Spec.Region, zone))
	}
	return "site " + strings.Join(ids, ", ")
}

// siteRegions requires one of some regions, or zones of them.
type siteRegions []api.AllocationRegion

func (s siteRegions) key(k key.Writer) {
	k.Text("demand", "regions")
	k.Each("wanted", len(s), func(k key.Writer, i int) {
		k.Text("region", s[i].Region)
		k.Set("zones", s[i].AvailabilityZones)
	})
}

func (s siteRegions) reads() columns.Aspects { return columns.Place }
func (s siteRegions) on() string             { return "regions" }
func (s siteRegions) rejection(n int) string {
	return Plural(n, "is", "are") + " in none of the regions"
}

func (s siteRegions) narrow(f *columns.Fleet, keep, scratch columns.Bitmap) {
	clear(scratch)
	for i := range s {
		f.Places()[api.GroupByRegion][s[i].Region].OrInto(scratch)
	}
	keep.And(scratch)
}

func (s siteRegions) met(c *api.Cluster, _ bool) bool {
	return slices.ContainsFunc(s, func(r api.AllocationRegion) bool {
		return r.Region == c.Spec.Region && (len(r.AvailabilityZones) == 0 ||
			slices.ContainsFunc(c.Spec.Zones, func(zone string) bool { return slices.Contains(r.AvailabilityZones, zone) }))
	})
}

func (s siteRegions) mismatch(c *api.Cluster) string {
	wanted := make([]string, len(s))
	for i, r := range s {
		if wanted[i] = r.Region; len(r.AvailabilityZones) > 0 {
			wanted[i] += " (" + strings.Join(r.AvailabilityZones, ", ") + ")"
		}
	}
	return fmt.Sprintf("is %s, wanted %s", whereabouts(c), strings.Join(wanted, " or "))
}

// siteClaim requires the value of a claim: the location or the operator of a site.
type siteClaim struct{ claim, value string }

func (s siteClaim) key(k key.Writer)       { demandKey(k, s.claim, s.value) }
func (s siteClaim) reads() columns.Aspects { return columns.Claims }
func (s siteClaim) on() string             { return s.claim }
func (s siteClaim) rejection(n int) string {
	return fmt.Sprintf("%s not have %s %q", Plural(n, "does", "do"), s.claim, s.value)
}

func (s siteClaim) narrow(f *columns.Fleet, keep, scratch columns.Bitmap) {
	f.Claims().Of(s.claim).Values[s.value].AndInto(keep, scratch)
}

func (s siteClaim) met(c *api.Cluster, _ bool) bool { return c.Spec.Claims[s.claim] == s.value }

func (s siteClaim) mismatch(c *api.Cluster) string {
	if value, told := c.Spec.Claims[s.claim]; told {
		return fmt.Sprintf("%s is %q, wanted %q", s.claim, value, s.value)
	}
	return fmt.Sprintf("has no claim %s, wanted %q", s.claim, s.value)
}

// siteFlavors requires machines of any of some flavors. If a site no longer has any, what runs
// there stays.
type siteFlavors []string

func (s siteFlavors) key(k key.Writer)       { demandKey(k, "flavors", s...) }
func (s siteFlavors) reads() columns.Aspects { return columns.Flavors }
func (s siteFlavors) on() string             { return "flavors" }
func (s siteFlavors) rejection(n int) string {
	return Plural(n, "has", "have") + " none of the flavors"
}

func (s siteFlavors) narrow(*columns.Fleet, columns.Bitmap, columns.Bitmap) {}

func (s siteFlavors) met(c *api.Cluster, current bool) bool {
	return current || slices.ContainsFunc(c.Spec.Flavors, func(f api.ClusterFlavor) bool { return slices.Contains(s, f.Name) })
}

func (s siteFlavors) mismatch(*api.Cluster) string {
	return "has none of the flavors " + strings.Join(s, ", ")
}

// demandKey writes a demand for any of some strings.
func demandKey(k key.Writer, demand string, wanted ...string) {
	k.Text("demand", demand)
	k.Set("wanted", wanted)
}

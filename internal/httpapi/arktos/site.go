package arktos

import (
	"cmp"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Site is a cluster that stands for one availability zone of a region.
type Site struct {
	Cluster      *api.Cluster
	Region, Zone string
}

// SiteOf reads the site out of a cluster: what is declared before what was
// observed, and that before the zone of a cloud that it stands for. ok is false
// where the cluster has no region, or not exactly one zone; site then has what
// there is.
func SiteOf(c *api.Cluster) (site Site, ok bool) {
	region := cmp.Or(c.Spec.Region, c.Status.Region)
	zones := c.Spec.Zones
	if len(zones) == 0 {
		zones = c.Status.Zones
	}
	if o := c.Spec.OpenStack; o != nil {
		region = cmp.Or(region, o.Region)
		if len(zones) == 0 {
			zones = []string{o.AvailabilityZone}
		}
	}
	site = Site{Cluster: c, Region: region}
	if len(zones) != 1 {
		return site, false
	}
	site.Zone = zones[0]
	return site, region != ""
}

// ID names the site: <region>--<zone>.
func (s Site) ID() string { return api.SiteID(s.Region, s.Zone) }

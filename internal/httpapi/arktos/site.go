package arktos

import (
	"cmp"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// zoneSite is a cluster that stands for one availability zone of a region.
type zoneSite struct {
	Cluster      *api.Cluster
	Region, Zone string
}

// siteOf reads the site out of a cluster: what is declared before what was
// observed, and that before the zone of a cloud that it stands for. ok is false
// where the cluster has no region, or not exactly one zone; site then has what
// there is.
func siteOf(c *api.Cluster) (site zoneSite, ok bool) {
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
	site = zoneSite{Cluster: c, Region: region}
	if len(zones) != 1 {
		return site, false
	}
	site.Zone = zones[0]
	return site, region != ""
}

// ID returns the site's ID: <region>--<zone>.
func (s zoneSite) ID() string { return api.SiteID(s.Region, s.Zone) }

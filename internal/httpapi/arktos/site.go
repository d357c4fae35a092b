package arktos

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// zoneSite is a cluster that stands for one availability zone of a region.
type zoneSite struct {
	Cluster      *api.Cluster
	Region, Zone string
}

// siteOf reads the site out of a cluster. ok is false where the cluster has no
// region, or not exactly one zone; site then has what there is.
func siteOf(c *api.Cluster) (site zoneSite, ok bool) {
	site = zoneSite{Cluster: c, Region: c.Region()}
	zones := c.Zones()
	if len(zones) != 1 {
		return site, false
	}
	site.Zone = zones[0]
	return site, site.Region != ""
}

// ID returns the site's ID: <region>--<zone>.
func (s zoneSite) ID() string { return api.SiteID(s.Region, s.Zone) }

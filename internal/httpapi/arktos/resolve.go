package arktos

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// siteReport is what a push says about one site.
type siteReport struct {
	Site      zoneSite
	Available api.Quantities
}

// unknownError says that a push is about a region or a zone that no cluster
// stands for.
type unknownError struct{ What string }

// Error names what is unknown.
func (e *unknownError) Error() string {
	return e.What + " is not known: there is no cluster with that region and zone"
}

// sharedError says that a push is about a site that several clusters stand for:
// each of them would count what is there only once.
type sharedError struct {
	ID       string
	Clusters []string
}

// Error names the site and the clusters.
func (e *sharedError) Error() string {
	return fmt.Sprintf("several clusters (%[2]s) represent site %[1]q, so its available resources cannot be assigned to one of them", e.ID, strings.Join(e.Clusters, ", "))
}

// collectedError says that a push is about a site whose figures are those of a
// cloud.
type collectedError struct{ Site zoneSite }

// Error names the cluster and its cloud.
func (e *collectedError) Error() string {
	return fmt.Sprintf("cluster %q takes the capacity of site %q from cloud %q, so nothing can be pushed for it", e.Site.Cluster.Metadata.Name, e.Site.ID(), e.Site.Cluster.Spec.OpenStack.Cloud)
}

// resolveSites finds the sites that figures are about, ordered by their clusters. What
// is said about a site goes before what is said about its region. Where one of the
// figures is about nothing that is known, no report is returned at all.
func resolveSites(figures []pushedFigures, sites []zoneSite) ([]siteReport, error) {
	known := newDirectory(sites)
	reports := map[string]*siteReport{} // by cluster
	for _, f := range figures {
		if f.Zone == "" {
			continue
		}
		s, err := known.site(f)
		if err != nil {
			return nil, err
		}
		name := s.Cluster.Metadata.Name
		if reports[name] != nil {
			return nil, api.FieldErrors{{Field: "AvailabilityZone", Message: fmt.Sprintf("%q is already listed, as another spelling of site %q", f.Zone, s.ID())}}
		}
		reports[name] = &siteReport{Site: s, Available: maps.Clone(f.Available)}
	}
	for _, f := range figures {
		if f.Zone != "" {
			continue
		}
		if len(known.regions[f.Region]) == 0 {
			return nil, &unknownError{fmt.Sprintf("region %q", f.Region)}
		}
		if len(f.Available) == 0 {
			continue
		}
		for _, s := range known.regions[f.Region] {
			if s.Cluster.Spec.OpenStack != nil {
				continue // its storage comes from its cloud too
			}
			if _, err := known.site(pushedFigures{Region: s.Region, Zone: s.Zone}); err != nil {
				return nil, err
			}
			r := reports[s.Cluster.Metadata.Name]
			if r == nil {
				r = &siteReport{Site: s}
				reports[s.Cluster.Metadata.Name] = r
			}
			r.Available = api.Overlay(f.Available, r.Available)
		}
	}
	out := make([]siteReport, 0, len(reports))
	for _, name := range slices.Sorted(maps.Keys(reports)) {
		out = append(out, *reports[name])
	}
	return out, nil
}

// spellings are the ways to name a site, in order of precedence: the name of a zone comes before
// combined names.
var spellings = []func(s zoneSite) string{
	func(s zoneSite) string { return s.Zone },
	zoneSite.ID,
	func(s zoneSite) string { return s.Region + "|" + s.Zone },
	func(s zoneSite) string { return s.Region + "-" + s.Zone },
}

// directory finds sites by the names used in pushes.
type directory struct {
	regions map[string][]zoneSite
	// named holds the sites by region and name for each spelling, and by ID under the region "".
	named []map[[2]string][]zoneSite
}

func newDirectory(sites []zoneSite) *directory {
	d := &directory{regions: map[string][]zoneSite{}, named: make([]map[[2]string][]zoneSite, len(spellings))}
	for _, s := range sites {
		d.regions[s.Region] = append(d.regions[s.Region], s)
	}
	for i, spelling := range spellings {
		d.named[i] = make(map[[2]string][]zoneSite, len(sites))
		for _, s := range sites {
			name := spelling(s)
			d.named[i][[2]string{s.Region, name}] = append(d.named[i][[2]string{s.Region, name}], s)
			if i == 1 || i == 2 {
				d.named[i][[2]string{"", name}] = append(d.named[i][[2]string{"", name}], s)
			}
		}
	}
	return d
}

// site returns the site of a push.
func (d *directory) site(f pushedFigures) (zoneSite, error) {
	for _, named := range d.named {
		meant := named[[2]string{f.Region, f.Zone}]
		if len(meant) == 0 {
			continue
		}
		if len(meant) > 1 {
			shared := &sharedError{ID: meant[0].ID()}
			for _, s := range meant {
				shared.Clusters = append(shared.Clusters, s.Cluster.Metadata.Name)
			}
			return zoneSite{}, shared
		}
		if meant[0].Cluster.Spec.OpenStack != nil {
			return zoneSite{}, &collectedError{meant[0]}
		}
		return meant[0], nil
	}
	if f.Region == "" {
		return zoneSite{}, &unknownError{fmt.Sprintf("site %q", f.Zone)}
	}
	return zoneSite{}, &unknownError{fmt.Sprintf("zone %q of region %q", f.Zone, f.Region)}
}

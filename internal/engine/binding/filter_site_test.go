package binding

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// allocated returns an allocated workload with one replica.
func allocated(spec api.AllocationSpec) *api.Workload {
	w := &api.Workload{Metadata: api.Metadata{Name: "web", UID: "uid-web", Generation: 1}}
	w.Spec = api.WorkloadSpec{APIVersion: "v1", Kind: "Pod", Replicas: new(int64(1)), Allocation: &spec}
	w.SetDefaults()
	return w
}

// explainWorkload returns the explanation of an allocated workload.
func explainWorkload(t interface{ Fatal(...any) }, f *columns.Fleet, w *api.Workload, others ledger.Others) (Binding, *api.Explanation) {
	p, err := NewPropagation(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b Binder
	return b.Explain(f, p, []*placement.View{placement.NewView(f, p.Groups[0].Query, others, nil)}, others, NewPresent(w, nil), epoch)
}

func TestSiteFilter(t *testing.T) {
	west := func(c *api.ClusterSpec) { c.Region, c.Zones = "West", []string{"az1", "az2"} }
	zoneless := func(c *api.ClusterSpec) { c.Region = "West" }
	claims := func(pairs ...string) func(*api.ClusterSpec) {
		return func(c *api.ClusterSpec) {
			west(c)
			c.Claims = map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				c.Claims[pairs[i]] = pairs[i+1]
			}
		}
	}
	regions := func(list ...api.AllocationRegion) api.AllocationSpec { return api.AllocationSpec{Regions: list} }
	china := api.AllocationSpec{GeoLocation: &api.GeoLocation{Country: "China", City: "Beijing"}}
	for _, tt := range []struct {
		name    string
		spec    api.AllocationSpec
		site    func(*api.ClusterSpec)
		current bool
		reason  string // "" = fits
		fits    string
	}{
		{name: "a site", site: west},
		{name: "a site without zones", site: zoneless},
		{name: "no site", site: func(*api.ClusterSpec) {}, reason: "has no region, which a site needs", fits: "1 has no region, which a site needs"},

		{name: "one zone", spec: api.AllocationSpec{SiteID: "West--az2"}, site: west},
		{name: "another zone", spec: api.AllocationSpec{SiteID: "West--az3"}, site: west,
			reason: `is site "West--az1", "West--az2", wanted site "West--az3"`, fits: `1 is not site "West--az3"`},
		{name: "whole region", spec: api.AllocationSpec{SiteID: "West--"}, site: west},
		{name: "whole region, site without zones", spec: api.AllocationSpec{SiteID: "West--"}, site: zoneless},
		{name: "one zone, site without zones", spec: api.AllocationSpec{SiteID: "West--az1"}, site: zoneless,
			reason: `is in region "West", in no zone, wanted site "West--az1"`, fits: `1 is not site "West--az1"`},
		{name: "prefix of the region's name", spec: api.AllocationSpec{SiteID: "Wes--"}, site: west,
			reason: `is site "West--az1", "West--az2", wanted site "Wes--"`, fits: `1 is not site "Wes--"`},
		{name: "prefix of the zone's name", spec: api.AllocationSpec{SiteID: "West--az"}, site: west,
			reason: `is site "West--az1", "West--az2", wanted site "West--az"`, fits: `1 is not site "West--az"`},

		{name: "one of the regions", spec: regions(api.AllocationRegion{Region: "East"}, api.AllocationRegion{Region: "West"}), site: west},
		{name: "none of the regions", spec: regions(api.AllocationRegion{Region: "East"}, api.AllocationRegion{Region: "west"}), site: west,
			reason: `is site "West--az1", "West--az2", wanted East or west`, fits: "1 is in none of the regions"},
		{name: "one of the zones", spec: regions(api.AllocationRegion{Region: "West", AvailabilityZones: []string{"az0", "az2"}}), site: west},
		{name: "none of the zones", spec: regions(api.AllocationRegion{Region: "West", AvailabilityZones: []string{"az3"}}, api.AllocationRegion{Region: "East", AvailabilityZones: []string{"az1"}}), site: west,
			reason: `is site "West--az1", "West--az2", wanted West (az3) or East (az1)`, fits: "1 is in none of the regions"},

		{name: "all geo claims match", spec: china, site: claims("country", "China", "city", "Beijing", "area", "North")},
		{name: "one geo claim differs", spec: china, site: claims("country", "China", "city", "beijing"), reason: `city is "beijing", wanted "Beijing"`, fits: `1 does not have city "Beijing"`},
		{name: "missing geo claim", spec: china, site: claims("city", "Beijing"), reason: `has no claim country, wanted "China"`, fits: `1 does not have country "China"`},
		{name: "same operator", spec: api.AllocationSpec{Operator: "globalscheduler"}, site: claims("operator", "globalscheduler")},
		{name: "other operator", spec: api.AllocationSpec{Operator: "globalscheduler"}, site: claims("operator", "other"), reason: `operator is "other", wanted "globalscheduler"`, fits: `1 does not have operator "globalscheduler"`},

		{name: "one of the flavors", spec: api.AllocationSpec{Flavors: []string{"large", "small"}}, site: func(c *api.ClusterSpec) {
			west(c)
			c.Flavors = []api.ClusterFlavor{{Name: "small", VCPUs: 1, Memory: "1Gi"}}
		}},
		{name: "none of the flavors", spec: api.AllocationSpec{Flavors: []string{"large", "small"}}, site: west, reason: "has none of the flavors large, small", fits: "1 has none of the flavors"},
		{name: "none of the flavors, present cluster", spec: api.AllocationSpec{Flavors: []string{"large", "small"}}, site: west, current: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			tt.site(&w.cluster("c1", nil).Spec)
			load := allocated(tt.spec)
			if tt.current {
				load.Status.Clusters = []api.WorkloadCluster{{Name: "c1", Replicas: 1, Flavor: "large"}}
			}
			_, x := explainWorkload(t, w.fleet(), load, ledger.Others{})
			c := x.Candidates[0]
			if (c.Filter == "site") != (tt.reason != "") || tt.reason != "" && c.Reason != tt.reason {
				t.Errorf("filter %q, reason %q, want reason %q", c.Filter, c.Reason, tt.reason)
			}
			if want := "0 of 1 cluster fit: " + tt.fits; tt.fits != "" && x.Summary != want {
				t.Errorf("summary %q, want %q", x.Summary, want)
			}
			if tt.reason == "" && !c.Selected {
				t.Errorf("not selected although it fits: %s", c.Reason)
			}
		})
	}
}

// drawSite draws a cluster that may represent a site.
func drawSite(t *rapid.T, name string) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: name}}
	s := &c.Spec
	s.Region = rapid.SampledFrom([]string{"", "East", "West", "West2"}).Draw(t, "region")
	s.Zones = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"az1", "az2"}), 0, 2, rapid.ID).Draw(t, "zones")
	s.Claims = rapid.MapOfN(rapid.SampledFrom([]string{api.ClaimCountry, api.ClaimCity, api.ClaimOperator}), rapid.SampledFrom([]string{"x", "y"}), 0, 2).Draw(t, "claims")
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"small", "large"}), 0, 2, rapid.ID).Draw(t, "flavors") {
		s.Flavors = append(s.Flavors, api.ClusterFlavor{Name: name, Count: new(rapid.Int64Range(0, 4).Draw(t, "count"))})
	}
	if rapid.Bool().Draw(t, "sized") {
		s.Allocatable = api.Quantities{"storage/ssd": api.Quantity(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "storage")))}
	}
	return c
}

func drawAllocated(t *rapid.T) *api.Workload {
	part := func(name string) string { return rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, name) }
	spec := api.AllocationSpec{
		SiteID:           rapid.SampledFrom([]string{"", "", "West--", "West--az1", "West"}).Draw(t, "site"),
		GeoLocation:      &api.GeoLocation{Country: part("country"), City: part("city")},
		Operator:         part("operator"),
		Flavors:          rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"small", "large"}), 0, 2, rapid.ID).Draw(t, "asks for"),
		LocationStrategy: rapid.SampledFrom([]api.LocationStrategy{api.LocationCentralize, api.LocationDiscrete}).Draw(t, "strategy"),
		RegionStrategy:   rapid.SampledFrom([]api.RegionStrategy{"", api.RegionAlone}).Draw(t, "alone"),
	}
	if rapid.Bool().Draw(t, "regions") {
		spec.Regions = []api.AllocationRegion{{Region: "East"}, {Region: "West", AvailabilityZones: []string{"az2"}}}
	}
	w := allocated(spec)
	w.Spec.Replicas = new(rapid.Int64Range(1, 12).Draw(t, "replicas"))
	return w
}

// TestSiteFilterAgrees checks that the filter gives the same result for all sites at once as for each on its own, also
// after changes.
func TestSiteFilterAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &columns.Fleet{}
		p, err := NewPropagation(drawAllocated(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		q := p.Groups[0].Query
		for range rapid.IntRange(1, 3).Draw(t, "versions") {
			changes := columns.Changes{Clusters: map[string]*api.Cluster{}}
			for i := range rapid.IntRange(1, 6).Draw(t, "sites") {
				name := fmt.Sprintf("c%d", i)
				changes.Clusters[name] = drawSite(t, name)
			}
			f, _ = f.With(changes, epoch)
			mask := placement.NewView(f, q, ledger.Others{}, nil).Mask
			for row := range f.Slots() {
				if admitted := placement.Admits(f, q, nil, row, false); admitted != mask.Has(row) {
					t.Fatalf("%+v: Admits() = %t, Mask.Has() = %t", f.Cluster(row).Spec, admitted, mask.Has(row))
				}
			}
		}
	})
}

// TestSitesInAnyOrder checks that the decision does not depend on the order in which sites were added.
func TestSitesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawAllocated(t)
		sites := make([]*api.Cluster, rapid.IntRange(1, 7).Draw(t, "sites"))
		for i := range sites {
			sites[i] = drawSite(t, fmt.Sprintf("c%d", i))
		}
		told := func(sites []*api.Cluster) string {
			f := &columns.Fleet{}
			for _, c := range sites {
				f, _ = f.With(columns.Changes{Clusters: map[string]*api.Cluster{c.Metadata.Name: c}}, epoch)
			}
			out, x := explainWorkload(t, f, w, ledger.Others{})
			status, _, _ := NewBindingStatus(f, mustPropagation(t, w), w, nil, out, epoch, func(int) string { return "" })
			text := fmt.Sprint(out.Complete, x.Summary)
			for _, c := range status.Clusters {
				text += fmt.Sprintf("; %d %s on %s", c.Replicas, c.Flavor, c.Name)
			}
			for _, c := range x.Candidates {
				text += "; " + c.Cluster + " " + c.Reason
			}
			return text
		}
		first := told(sites)
		if again := told(rapid.Permutation(sites).Draw(t, "order")); again != first {
			t.Fatalf("%s\nwith the sites in another order: %s", first, again)
		}
	})
}

func mustPropagation(t *rapid.T, w *api.Workload) *Propagation {
	p, err := NewPropagation(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSiteExplanation checks that the explanation gives the scores of a site, its capacity and flavor, and the reason
// for its share.
func TestSiteExplanation(t *testing.T) {
	w := newWorld()
	for name, region := range map[string]string{"a": "West", "b": "West", "c": "East"} {
		s := &w.cluster(name, nil).Spec
		s.Region, s.Zones = region, []string{"az1"}
		s.Allocatable, s.Allocated = api.Quantities{"cpu": "8", "memory": "16Gi", "storage/ssd": "100Gi", "storage/hdd": "300Gi", "floating_ips": "10"}, api.Quantities{"cpu": "2", "storage/ssd": "100Gi"}
		s.Flavors = []api.ClusterFlavor{{Name: "small", VCPUs: 2, Memory: "2Gi"}}
	}
	w.clusters["b"].Spec.Allocated["cpu"] = "6"
	load := allocated(api.AllocationSpec{Flavors: []string{"large", "small"}, RegionStrategy: api.RegionAlone, LocationStrategy: api.LocationCentralize})
	load.Spec.Replicas = new(int64(3))
	out, x := explainWorkload(t, w.fleet(), load, ledger.Others{})
	if !out.Complete || x.Summary != "1 cluster chosen: a 3; 3 of 3 clusters fit" {
		t.Fatalf("complete %t, summary %q, want 3 of 3 replicas on a", out.Complete, x.Summary)
	}
	reasons := map[string]string{}
	for _, c := range x.Candidates {
		reasons[c.Cluster] = fmt.Sprintf("%d: %s", *c.Available, c.Reason)
	}
	want := map[string]string{
		"a": "3: 3 of 3 in the order of the scores, and is full, with flavor small",
		"b": "1: better sites have room enough; replicas would have flavor small",
		"c": "3: all replicas are in region West; replicas would have flavor small",
	}
	if !maps.Equal(reasons, want) {
		t.Errorf("reasons %q,\nwant %q", reasons, want)
	}
	// All memory is free, 75 percent of the CPU and of the storage, and all addresses: (1000 + 750 + 375 + 100) / 26.
	scores := ""
	for _, part := range x.Candidates[0].Scores {
		scores += fmt.Sprintf("%s %g of %g, weight %g adds %g; ", part.Name, part.Value, *part.Raw, part.Weight, part.Share)
	}
	if want := "StackAffinity 50 of 0, weight 1 adds 50; Flavor 5 of 2, weight 1 adds 5; SiteResourcesLeastAllocated 85 of 2225, weight 1 adds 85; "; scores != want || *x.Candidates[0].Score != 140 {
		t.Errorf("score %g: %s\nwant %s", *x.Candidates[0].Score, scores, want)
	}
}

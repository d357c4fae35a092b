package arktos

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Amounts are never rounded up, so that no more is given away than exists. Rounding loses less than the smallest amount
// that the unit can express.
func TestAmountsAreRoundedDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Float64Range(0, 1e6).Draw(t, "number")
		u := rapid.SampledFrom([]unit{pieces, mebibytes, gibibytes}).Draw(t, "unit")
		q, message := quantity(n, u)
		milli, err := q.Milli()
		if message != "" || err != nil {
			t.Fatalf("%q %s %v", q, message, err)
		}
		one, part := map[unit]float64{pieces: 1000, mebibytes: 1000 << 20, gibibytes: 1000 << 30}[u], map[unit]float64{pieces: 1, mebibytes: 1000 << 10, gibibytes: 1000 << 20}[u]
		if lost := n*one - milli.Float(); lost < -1 || lost > part+1 {
			t.Errorf("quantity(%v) = %q, which is too low by %v", n, q, lost)
		}
		if whole := float64(int64(n)); whole == n && number(q, u) != int64(n) {
			t.Errorf("quantity(%v) = %q, which is read as %d", n, q, number(q, u))
		}
	})
	for _, wrong := range []float64{-1, 1e13, -0.001} {
		if q, message := quantity(wrong, pieces); message == "" {
			t.Errorf("quantity(%v) = %q, want an error", wrong, q)
		}
	}
}

func drawSites(t *rapid.T) []zoneSite {
	var sites []zoneSite
	seen := map[[2]string]bool{}
	name := rapid.SampledFrom([]string{"West", "East", "az1", "az2", "West-az1", "East-az2", "West--az1", "a-b"})
	for i := range rapid.IntRange(1, 6).Draw(t, "sites") {
		region, zone := name.Draw(t, "region"), name.Draw(t, "zone")
		if seen[[2]string{region, zone}] {
			continue
		}
		seen[[2]string{region, zone}] = true
		sites = append(sites, zoneSite{&api.Cluster{Metadata: api.Metadata{Name: fmt.Sprintf("c%d", i)}}, region, zone})
	}
	return sites
}

// A zone is found by its name in its region, whatever the other zones are called. A zone found by another spelling is
// in the named region.
func TestSitesAreFoundByTheirNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := drawSites(t)
		for _, s := range sites {
			reports, err := resolveSites([]pushedFigures{{s.Region, s.Zone, api.Quantities{"cpu": "1"}}}, sites)
			if err != nil || len(reports) != 1 || reports[0].Site != s {
				t.Fatalf("%s: %+v %v", s.ID(), reports, err)
			}
			for _, spelled := range []string{s.ID(), s.Region + "|" + s.Zone, s.Region + "-" + s.Zone} {
				reports, err := resolveSites([]pushedFigures{{s.Region, spelled, nil}}, sites)
				if err == nil && reports[0].Site.Region != s.Region {
					t.Errorf("%s in region %s was read as %+v", spelled, s.Region, reports)
				}
				if unknown := (*unknownError)(nil); errors.As(err, &unknown) {
					t.Errorf("%s in region %s: %v", spelled, s.Region, err)
				}
			}
		}
	})
}

// A push for a region applies to all of its sites and no others. A push for a site takes precedence, in any order.
func TestRegionsReachTheirSites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := drawSites(t)
		special := rapid.SampledFrom(sites).Draw(t, "special")
		figures := []pushedFigures{{special.Region, special.Zone, api.Quantities{"storage/ssd": "1Gi"}}, {special.Region, "", api.Quantities{"storage/ssd": "9Gi"}}}
		if rapid.Bool().Draw(t, "turned") {
			slices.Reverse(figures)
		}
		reports, err := resolveSites(figures, sites)
		if err != nil {
			t.Fatal(err)
		}
		reached := map[string]api.Quantity{}
		for _, r := range reports {
			reached[r.Site.Cluster.Metadata.Name] = r.Available["storage/ssd"]
		}
		for _, s := range sites {
			want := api.Quantity("")
			if s.Region == special.Region {
				want = "9Gi"
			}
			if s == special {
				want = "1Gi"
			}
			if got := reached[s.Cluster.Metadata.Name]; got != want {
				t.Errorf("%s: got %q, want %q", s.ID(), got, want)
			}
		}
	})
}

// Repeating a push changes nothing.
func TestPushesAreIdempotent(t *testing.T) {
	amount := rapid.SampledFrom([]api.Quantity{"0", "1", "1000m", "1Gi", "1024Mi", "2Gi"})
	amounts := rapid.MapOf(rapid.SampledFrom([]string{"cpu", "memory", "storage/ssd"}), amount)
	rapid.Check(t, func(t *rapid.T) {
		c := &api.Cluster{
			Spec:   api.ClusterSpec{Allocatable: amounts.Draw(t, "declared"), Allocated: amounts.Draw(t, "declared in use")},
			Status: api.ClusterStatus{Allocatable: amounts.Draw(t, "reported"), Allocated: amounts.Draw(t, "reported in use")},
		}
		pushed := api.Quantities(amounts.Draw(t, "pushed"))
		free := api.Quantities{}
		for name := range pushed {
			free[name] = "0"
		}
		changed := changedFigures(c, pushed)
		_, cpu := changed["cpu"]
		_, memory := changed["memory"]
		if completed(pushed, changed) != ((cpu || memory) && pushed["cpu"] != "" && pushed["memory"] != "") {
			t.Errorf("completed() is wrong for the changes %v of the push %v", changed, pushed)
		}
		after := *c
		after.Status.Allocatable, after.Status.Allocated = api.Overlay(c.Status.Allocatable, pushed), api.Overlay(c.Status.Allocated, free)
		if again := changedFigures(&after, pushed); len(again) > 0 {
			t.Errorf("the same push changes %v, after %v", again, changed)
		}
		allocatable, _ := declared(c)
		for name, q := range pushed {
			if _, said := changed[name]; !said && !equal(allocatable[name], q) {
				t.Errorf("%s: %q is lost, allocatable is %q", name, q, allocatable[name])
			}
		}
	})
}

// A cluster as returned by the API can be registered again and is equal.
func TestShownClustersCanBeRegistered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "a", "Austin", "o-1"})
		whole := rapid.Int64Range(0, 1e6)
		count := whole.Draw(t, "count")
		registered := RegisteredCluster{
			Name: "c", IPAddress: rapid.SampledFrom([]string{"10.0.0.1", "fd00::1"}).Draw(t, "ip"), Operator: text.Draw(t, "operator"), Region: Region{"West", "az1"},
			CPUCapacity: whole.Draw(t, "cpu"), MemCapacity: whole.Draw(t, "memory"), EIPCapacity: whole.Draw(t, "addresses"),
			Flavors: []Flavor{{FlavorID: "m1", VCPUs: whole.Draw(t, "vcpus"), RAM: whole.Draw(t, "ram"), TotalCapacity: &count}},
			Storage: []Storage{{"ssd", rapid.Int64Range(1, 1e6).Draw(t, "storage")}},
		}
		if city := text.Draw(t, "city"); city != "" {
			registered.GeoLocation = &api.GeoLocation{City: city}
		}
		document, err := json.Marshal(ClusterAnswer{registered})
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseCluster(document)
		if err != nil || len(c.Validate()) > 0 {
			t.Fatalf("%s: %v %v", document, err, c.Validate())
		}
		site, _ := siteOf(c)
		shown := showCluster(site)
		if shown.SiteID != "West--az1" || shown.State != api.StateOnline {
			t.Errorf("site %+v, want West--az1, online", shown)
		}
		shown.SiteID, shown.State = "", ""
		if !reflect.DeepEqual(shown, registered) {
			t.Errorf("got %+v, want %+v", shown, registered)
		}
	})
}

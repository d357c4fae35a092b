package openstack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func gib(n float64) size { return size{gib: n, known: true} }

// TestPoolAmount checks how a pool counts, as Cinder's scheduler does.
func TestPoolAmount(t *testing.T) {
	endless := size{infinite: true}
	for name, c := range map[string]struct {
		pool             pool
		want             amount
		endless, unheard bool
	}{
		"thick":                              {pool: pool{total: gib(100), free: gib(70), provisioned: gib(20)}, want: amount{100, 100, 30}},
		"thick that does not say its free":   {pool: pool{total: gib(100), provisioned: gib(20)}, want: amount{100, 100, 20}},
		"thin":                               {pool: pool{total: gib(100), free: gib(95), provisioned: gib(150), thin: true, ratio: 20}, want: amount{100, 2000, 150}},
		"thin without a ratio":               {pool: pool{total: gib(100), free: gib(95), provisioned: gib(50), thin: true}, want: amount{100, 100, 50}},
		"a ratio of a pool that is not thin": {pool: pool{total: gib(100), free: gib(50), ratio: 20}, want: amount{100, 100, 50}},
		"thin that does not say what is provisioned": {pool: pool{total: gib(100), free: gib(40), thin: true, ratio: 2}, want: amount{100, 200, 60}},
		"reserved":                  {pool: pool{total: gib(105), free: gib(105), reserved: 10}, want: amount{105, 95, 0}},
		"all reserved":              {pool: pool{total: gib(100), free: gib(100), reserved: 100}, want: amount{100, 0, 0}},
		"parts of a GiB":            {pool: pool{total: gib(100.9), free: gib(50.1)}, want: amount{100, 100, 51}},
		"more used than there is":   {pool: pool{total: gib(100), free: gib(0), provisioned: gib(300), thin: true, ratio: 2}, want: amount{100, 200, 300}},
		"infinite":                  {pool: pool{total: endless, free: endless}, endless: true},
		"infinite free":             {pool: pool{free: endless}, endless: true},
		"infinite free, known size": {pool: pool{total: gib(100), free: endless}, want: amount{100, 100, 0}},
		"unknown size":              {pool: pool{free: gib(10), provisioned: gib(5)}, unheard: true},
		"unknown use":               {pool: pool{total: gib(100)}, unheard: true},
	} {
		got, infinite, ok := c.pool.amount()
		if got != c.want || infinite != c.endless || ok == c.unheard {
			t.Errorf("%s: got %+v, %t, %t; want %+v, %t, %t", name, got, infinite, ok, c.want, c.endless, !c.unheard)
		}
	}
}

// TestStorage checks that pools are added up by volume type. A type that names the backend of another has the same
// pools, and a pool without a type is listed under its backend.
func TestStorage(t *testing.T) {
	pools := []pool{
		{backend: "ceph", total: gib(100), free: gib(60)}, {backend: "ceph", total: gib(50), free: gib(50)},
		{backend: "lvm", total: gib(10), free: gib(10)}, {backend: "lvm", total: size{infinite: true}},
		{backend: "spare", total: gib(7), free: gib(7)}, {backend: "dark"},
	}
	types := []api.CloudVolumeType{
		{Name: "fast", Backend: "ceph"}, {Name: "Fast & Large", Backend: "ceph"}, {Name: "local", Backend: "lvm"},
		{Name: "tape", Backend: "robot"}, {Name: "__DEFAULT__"}, {Name: "dark", Backend: "dark"}, {Name: "***", Backend: "ceph"},
	}
	zones := []api.CloudZone{{Name: "a"}, {Name: "b"}}
	for i := range zones {
		zones[i].Capacity, zones[i].Allocatable, zones[i].Allocated, zones[i].Available = api.Quantities{}, api.Quantities{}, api.Quantities{}, api.Quantities{}
	}
	regional(zones, storage(pools, types), &amount{total: 9, allocatable: 9, used: 12})
	want := map[string]string{
		"hosts": "0", "storage/fast": "150Gi 150Gi 40Gi 110Gi", "storage/Fast---Large": "150Gi 150Gi 40Gi 110Gi",
		"storage/local": "8Pi 8Pi 0 8Pi", "storage/spare": "7Gi 7Gi 0 7Gi", "floating_ips": "9 9 12 0",
	}
	expectZones(t, &api.CloudRegion{Zones: zones}, map[string]map[string]string{"a": want, "b": want})
	report := api.CloudReport{Collector: "c", Sequence: 1, Regions: []api.CloudRegionReport{{Name: "r", Zones: zones}}}
	if err := report.Validate().Err(); err != nil {
		t.Errorf("invalid names of resources: %v", err)
	}
}

// TestResourceNames checks that every volume type gets a valid resource name.
func TestResourceNames(t *testing.T) {
	for name, want := range map[string]string{
		"ssd": "storage/ssd", "SSD (fast)": "storage/SSD--fast", "__DEFAULT__": "storage/DEFAULT", "räume": "storage/r-ume", "": "", "  ": "",
		strings.Repeat("x", 62) + "-y": "storage/" + strings.Repeat("x", 62),
	} {
		if got := resourceOf(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// FuzzSize checks that a size from a driver, in any notation, is parsed as a size or counts as unknown.
func FuzzSize(f *testing.F) {
	for _, seed := range []string{`1`, `"infinite"`, `"unknown"`, `"20.0"`, `null`, `-1`, `1e400`, `"NaN"`, `"Inf"`, `{}`, `[]`, `true`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s size
		if json.Unmarshal(data, &s) != nil {
			return // not JSON
		}
		if s.infinite && s.known || !(s.gib >= 0 && s.gib < 1<<60) || !s.known && s.gib != 0 {
			t.Fatalf("%q was read as %+v", data, s)
		}
		p := pool{backend: "b", total: s, free: s, provisioned: s, thin: true, ratio: s.gib, reserved: s.gib}
		for _, a := range storage([]pool{p, p}, nil) {
			if a.total < 0 || a.total > unlimited || a.allocatable < 0 || a.allocatable > unlimited {
				t.Fatalf("%q results in %+v", data, a)
			}
		}
	})
}

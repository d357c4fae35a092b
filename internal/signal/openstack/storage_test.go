package openstack

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
		"reserved":                {pool: pool{total: gib(105), free: gib(105), reserved: 10}, want: amount{105, 95, 0}},
		"all reserved":            {pool: pool{total: gib(100), free: gib(100), reserved: 100}, want: amount{100, 0, 0}},
		"parts of a GiB":          {pool: pool{total: gib(100.9), free: gib(50.1)}, want: amount{100, 100, 51}},
		"more used than there is": {pool: pool{total: gib(100), free: gib(0), provisioned: gib(300), thin: true, ratio: 2}, want: amount{100, 200, 300}},
		"20 PiB":                  {pool: pool{total: gib(20 << 20), free: gib(11 << 20)}, want: amount{20 << 20, 20 << 20, 9 << 20}},
		"1 PiB, 20 times": {
			pool: pool{total: gib(1 << 20), provisioned: gib(9 << 20), thin: true, ratio: 20}, want: amount{1 << 20, 20 << 20, 9 << 20},
		},
		"more than a quantity can be": {pool: pool{total: gib(8 << 30), free: gib(1)}, endless: true},
		"infinite":                    {pool: pool{total: endless, free: endless}, endless: true},
		"infinite free":               {pool: pool{free: endless}, endless: true},
		"infinite free, known size":   {pool: pool{total: gib(100), free: endless}, want: amount{100, 100, 0}},
		"unknown size":                {pool: pool{free: gib(10), provisioned: gib(5)}, unheard: true},
		"unknown use":                 {pool: pool{total: gib(100)}, unheard: true},
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
		{backend: "ceph", place: "1", total: gib(100), free: gib(60)}, {backend: "ceph", place: "2", total: gib(50), free: gib(50)},
		{backend: "lvm", place: "1", total: gib(10), free: gib(10)}, {backend: "lvm", place: "2", total: size{infinite: true}},
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

// TestSharedStorageCountsOnce checks that pools of several hosts on one storage count once, as each driver of Cinder
// tells. The answers are like those of real drivers.
func TestSharedStorageCountsOnce(t *testing.T) {
	type host struct{ name, location, amounts string }
	const thin = `"thin_provisioning_support": true, "max_over_subscription_ratio": "2.0", `
	for name, c := range map[string]struct {
		hosts []host
		want  string
	}{
		"Ceph": {[]host{
			{"ctl1@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, `"total_capacity_gb": 100.0, "free_capacity_gb": 60.5`},
			{"ctl2@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, `"total_capacity_gb": 100.0, "free_capacity_gb": 59.5`},
			{"ctl3@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, `"total_capacity_gb": 100.0, "free_capacity_gb": 60.5`},
		}, "100Gi 100Gi 41Gi 59Gi"},
		"Ceph, named and configured by host": {[]host{
			{"ctl1@rbd-1#ceph", `"ceph:/etc/ceph/ctl1.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder-1:volumes"`, `"total_capacity_gb": 100, "free_capacity_gb": 60`},
			{"ctl2@rbd-2#volumes", `"site:/etc/ceph/ctl2.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder-2:volumes"`, `"total_capacity_gb": 100, "free_capacity_gb": 60`},
		}, "100Gi 100Gi 40Gi 60Gi"},
		"Ceph, as earlier versions wrote it": {[]host{
			{"ctl1@ceph#ceph", `"ceph:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, `"total_capacity_gb": 100, "free_capacity_gb": 60`},
			{"ctl2@ceph#ceph", `"ceph:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, `"total_capacity_gb": 100, "free_capacity_gb": 60`},
		}, "100Gi 100Gi 40Gi 60Gi"},
		"two pools of a Ceph cluster": {[]host{
			{"ctl1@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, `"total_capacity_gb": 100, "free_capacity_gb": 60`},
			{"ctl1@more#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:more"`, `"total_capacity_gb": 50, "free_capacity_gb": 50`},
		}, "150Gi 150Gi 40Gi 110Gi"},
		"two Ceph clusters": {[]host{
			{"ctl1@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, `"total_capacity_gb": 100, "free_capacity_gb": 60`},
			{"ctl2@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:0c1c9f0c-7d8b-4f4e-9d3f-3f2a8d6f9c11:cinder:volumes"`, `"total_capacity_gb": 100, "free_capacity_gb": 60`},
		}, "200Gi 200Gi 80Gi 120Gi"},
		"one host does not know": {[]host{
			{"ctl1@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, `"total_capacity_gb": "unknown", "free_capacity_gb": "unknown"`},
			{"ctl2@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, `"total_capacity_gb": 100, "free_capacity_gb": 60`},
		}, "100Gi 100Gi 40Gi 60Gi"},
		"hosts that know only their own volumes": {[]host{
			{"ctl1@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, thin + `"total_capacity_gb": 100, "free_capacity_gb": 90, "provisioned_capacity_gb": 30`},
			{"ctl2@ceph#ceph", `"ceph:/etc/ceph/ceph.conf:a7f64266-0894-4f1e-a635-d0aeaca0e993:cinder:volumes"`, thin + `"total_capacity_gb": 100, "free_capacity_gb": 90, "provisioned_capacity_gb": 70`},
		}, "100Gi 200Gi 70Gi 130Gi"},
		"LVM is each host's own": {[]host{
			{"cmp1@lvm#lvm", `"LVMVolumeDriver:cmp1:cinder-volumes:thin:0"`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
			{"cmp2@lvm#lvm", `"LVMVolumeDriver:cmp2:cinder-volumes:thin:0"`, `"total_capacity_gb": 10, "free_capacity_gb": 10`},
		}, "20Gi 20Gi 6Gi 14Gi"},
		"volumes of NetApp with a location": {[]host{
			{"ctl1@ontap#flexvol1", `"ontap-cluster-1:svm1"`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
			{"ctl1@ontap#flexvol2", `"ontap-cluster-1:svm1"`, `"total_capacity_gb": 20, "free_capacity_gb": 20`},
			{"ctl2@ontap#flexvol1", `"ontap-cluster-1:svm1"`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
			{"ctl2@ontap#flexvol2", `"ontap-cluster-1:svm1"`, `"total_capacity_gb": 20, "free_capacity_gb": 20`},
		}, "30Gi 30Gi 6Gi 24Gi"},
		"exports of NetApp": {[]host{
			{"ctl1@ontap#10.0.0.1:/volumes", `null`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
			{"ctl2@ontap#10.0.0.1:/volumes", `null`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
			{"ctl2@ontap#10.0.0.2:/volumes", `null`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
		}, "20Gi 20Gi 12Gi 8Gi"},
		"no location": {[]host{
			{"ctl1@array#pool", `null`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
			{"ctl2@array#pool", `""`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
			{"ctl3@array#pool", `{"serial": 7}`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
		}, "30Gi 30Gi 18Gi 12Gi"},
		"a pool that is listed twice": {[]host{
			{"ctl1@array#pool", `null`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
			{"ctl1@array#pool", `null`, `"total_capacity_gb": 10, "free_capacity_gb": 4`},
		}, "10Gi 10Gi 6Gi 4Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			entries := make([]string, len(c.hosts))
			for i, h := range c.hosts {
				entries[i] = `{"name": "` + h.name + `", "capabilities": {"volume_backend_name": "shared", "location_info": ` + h.location + `, ` + h.amounts + `}}`
			}
			zone := api.CloudZone{Name: "a", Capacity: api.Quantities{}, Allocatable: api.Quantities{}, Allocated: api.Quantities{}, Available: api.Quantities{}}
			for range 2 { // in any order of the hosts
				var shown []shownPool
				if err := json.Unmarshal([]byte("["+strings.Join(entries, ", ")+"]"), &shown); err != nil {
					t.Fatal(err)
				}
				pools := make([]pool, len(shown))
				for i := range shown {
					pools[i] = shown[i].pool()
				}
				regional([]api.CloudZone{zone}, storage(pools, nil), nil)
				expectZones(t, &api.CloudRegion{Zones: []api.CloudZone{zone}}, map[string]map[string]string{"a": {"hosts": "0", "storage/shared": c.want}})
				slices.Reverse(entries)
			}
		})
	}
}

// TestStorageOfAllMagnitudes compares what pools have together with big integers: it is exact, without a limit, or not
// reported.
func TestStorageOfAllMagnitudes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pools []pool
		total, used, endless := new(big.Int), new(big.Int), false
		for i := range rapid.IntRange(1, 9).Draw(t, "pools") {
			size := rapid.Int64Range(0, 1<<rapid.SampledFrom([]int{10, 24, 33, 40}).Draw(t, "bits")).Draw(t, "size")
			free := rapid.Int64Range(0, size).Draw(t, "free")
			pools = append(pools, pool{backend: "b", place: fmt.Sprint(i), total: gib(float64(size)), free: gib(float64(free))})
			if size >= 8<<30 {
				endless = true
				continue
			}
			total.Add(total, big.NewInt(size))
			used.Add(used, big.NewInt(size-free))
		}
		zone := api.CloudZone{Name: "a", Capacity: api.Quantities{}, Allocatable: api.Quantities{}, Allocated: api.Quantities{}, Available: api.Quantities{}}
		regional([]api.CloudZone{zone}, storage(pools, nil), nil)
		if endless && total.Cmp(big.NewInt(unlimited)) < 0 {
			total.SetInt64(unlimited)
		}
		if endless {
			used.SetInt64(0)
		}
		capacity, reported := zone.Capacity["storage/b"]
		if fits := total.Cmp(big.NewInt(8<<30)) < 0; fits != reported {
			t.Fatalf("%s GiB are reported as %q", total, capacity)
		}
		if !reported {
			return
		}
		for what, c := range map[string]struct {
			got  api.Quantity
			want *big.Int
		}{
			"capacity":  {capacity, total},
			"allocated": {zone.Allocated["storage/b"], used},
			"available": {zone.Available["storage/b"], new(big.Int).Sub(total, used)},
		} {
			if got, err := c.got.Milli(); err != nil || got.String() != new(big.Int).Mul(c.want, big.NewInt(1000<<30)).String() {
				t.Fatalf("%s is %q, want %s GiB (%v)", what, c.got, c.want, err)
			}
		}
	})
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
			if a.total < 0 || a.allocatable < 0 || a.used < 0 || max(a.total, a.allocatable, a.used) > 2*mostGiB {
				t.Fatalf("%q results in %+v", data, a)
			}
		}
	})
}

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/arktos"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

const (
	regionsPath     = "/globalscheduler/v1" + "/regionresources"
	sitesPath       = "/globalscheduler/v1" + "/siteresources/update"
	podsPath        = "/globalscheduler/v1" + "/pods"
	allocationsPath = "/globalscheduler/v1" + "/allocations"
)

func startGlobal(t testing.TB) *testServer {
	t.Helper()
	return startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
}

// expect fails unless the response has the given status. Error responses must be problem documents.
func (s *testServer) expect(status int, method, path, body string, header ...string) answer {
	s.t.Helper()
	a := s.do(method, path, body, header...)
	if a.StatusCode != status {
		s.t.Errorf("%s %s %s: %d %s, want %d", method, path, body, a.StatusCode, a.body, status)
	} else if status >= 400 {
		a.problem(s.t)
	}
	return a
}

func TestClustersOfTheGlobalScheduler(t *testing.T) {
	s := startGlobal(t)
	registered := s.mustRegister("west-1", "West", "az1", `,"geolocation":{"city":"Bellevue","province":"Washington","area":"NW","country":"US"},"operator":"globalscheduler",
		"flavors":[{"flavorid":"m1.large","totalcapacity":1000,"vcpus":4,"ram":8192},{"flavorid":"other","totalcapacity":7}],
		"storage":[{"typeid":"ssd","storagecapacity":500.5},{"typeid":"sata","storagecapacity":0}],"eipcapacity":5,"cpucapacity":40,"memcapacity":163840,"serverprice":1.5`)
	if registered.ID == "" || registered.SiteID != "West--az1" || registered.State != api.StateOnline || registered.IPAddress != "10.0.0.1" || registered.ServerPrice != "1.5" ||
		registered.Operator != "globalscheduler" || registered.GeoLocation == nil || registered.GeoLocation.City != "Bellevue" || registered.EIPCapacity != 5 ||
		!slices.Equal(registered.Storage, []arktos.Storage{{TypeID: "ssd", StorageCapacity: 500}}) || registered.Available["memory"] != "160Gi" {
		t.Errorf("unexpected cluster %+v", registered)
	}
	// If the size is known, the count follows from the available amounts.
	if f := registered.Flavors; len(f) != 2 || f[0].Count == nil || *f[0].Count != 10 || *f[0].TotalCapacity != 1000 || f[0].RAM != 8192 {
		t.Errorf("flavors %+v", f)
	}
	s.mustPut("/v1/clusters/east-1", `{"spec":{"namespace":"shop","region":"East","zones":["az1"]}}`)
	s.mustPut("/v1/clusters/wide", `{"spec":{"region":"East","zones":["az2","az3"]}}`)

	list := decodeAs[arktos.ClusterList](t, s.expect(200, http.MethodGet, "/globalscheduler/v1"+"/clusters", ""))
	if len(list.Clusters) != 2 || list.Clusters[0].Name != "east-1" || list.Clusters[0].Namespace != "shop" || list.Clusters[1].ID != registered.ID {
		t.Errorf("unexpected list %+v", list)
	}
	for _, missing := range []string{"/clusters/id/none", "/clusters/name/none", "/clusters/name/wide", "/clusters/name/West--az1"} {
		s.expect(404, http.MethodGet, "/globalscheduler/v1"+missing, "")
		s.expect(404, http.MethodDelete, "/globalscheduler/v1"+missing, "")
	}
	s.expect(200, http.MethodDelete, "/globalscheduler/v1"+"/clusters/id/"+registered.ID, "")
	s.expect(404, http.MethodGet, "/globalscheduler/v1"+"/clusters/id/"+registered.ID, "")
	s.expect(200, http.MethodDelete, "/globalscheduler/v1"+"/clusters/name/east-1", "")

	for _, body := range []string{
		`{"Name":"a","IpAddress":"1.2.3.4","Region":{"Region":"North","AvailabilityZone":"az1"}}`,
		`{"apiVersion":"globalscheduler.com/v1","kind":"Cluster","metadata":{"name":"b","namespace":"default","labels":{"tier":"edge"}},"spec":{"ipaddress":"10.0.0.2","region":{"region":"North","availabilityzone":"az2"},"homescheduler":"x"},"status":"Bound"}`,
		`{"cluster":{"metadata":{"name":"c"},"spec":{"ipaddress":"10.0.0.2","region":{"region":"North","availabilityzone":"az3"}}}}`,
		`{"name":"d","ipaddress":"10.0.0.4","region":"North","availabilityzone":"az4"}`,
	} {
		s.expect(201, http.MethodPost, "/globalscheduler/v1"+"/clusters", body)
	}
	if b := decodeAs[api.Cluster](t, s.do(http.MethodGet, "/v1/clusters/b", "")); b.Metadata.Labels["tier"] != "edge" || b.Spec.Namespace != "" {
		t.Errorf("cluster %+v, want the label tier, and no namespace", b)
	}
	for body, fields := range map[string]int{
		``: 0, `[]`: 0, `{"name":`: 0, "{\"name\":\"\\u0000\"}": 0,
		`{}`: 4, `{"name":"x"}`: 3, `{"name":"x","region":"R","availabilityzone":"z"}`: 1, `{"name":"x","ipaddress":"","region":"R","availabilityzone":"z"}`: 1, `{"name":"No Name","ipaddress":"10.0.0.1","region":"R","availabilityzone":"z"}`: 1,
		`{"name":"x","ipaddress":"10.0.0.1","region":"R","availabilityzone":"z","cpucapacity":-1}`:                      1,
		`{"name":"x","ipaddress":"10.0.0.1","region":"R","availabilityzone":"z","storage":[{"typeid":"a b"},{}]}`:       2,
		`{"name":"x","ipaddress":"10.0.0.1","region":"R","availabilityzone":"z","flavors":[{"totalcapacity":1}]}`:       1,
		`{"name":"x","ipaddress":"10.0.0.1","region":7,"availabilityzone":"z"}`:                                         2,
		`{"name":"x","ipaddress":"10.0.0.1","region":"R","availabilityzone":"z","memcapacity":"many"}`:                  1,
		`{"name":"x","ipaddress":"10.0.0.1","region":"R","availabilityzone":"z","flavors":[{"flavorid":"f","ram":-1}]}`: 1,
	} {
		if p := s.expect(400, http.MethodPost, "/globalscheduler/v1"+"/clusters", body).problem(t); len(p.Errors) != fields {
			t.Errorf("%s: unexpected problem %+v", body, p)
		}
	}
}

func TestPushes(t *testing.T) {
	s := startGlobal(t)
	s.mustRegister("c1", "West", "az1", "")
	s.mustRegister("c2", "West", "West-az2", "")
	s.mustRegister("c3", "East", "az1", "")
	for _, step := range []struct {
		name, method, path, body string
		status                   int
		// resources of the clusters c1, c2 and c3 afterwards: CPU, MiB of memory, GB of SSD
		c1, c2, c3 [3]int64
	}{
		{"empty object", http.MethodPatch, regionsPath + "/West", `{}`, 204, [3]int64{}, [3]int64{}, [3]int64{}},
		{"empty list of regions", http.MethodPatch, regionsPath, `{"regionresources":[]}`, 204, [3]int64{}, [3]int64{}, [3]int64{}},
		{"empty list of sites", http.MethodPatch, sitesPath, `{"SiteResources":[]}`, 204, [3]int64{}, [3]int64{}, [3]int64{}},
		{"zone by name", http.MethodPatch, regionsPath + "/West", `{"CPUMemResources":[{"AvailabilityZone":"az1","CpuCapacity":8,"MemCapacity":1024}]}`, 200, [3]int64{8, 1024}, [3]int64{}, [3]int64{}},
		{"same values again", http.MethodPatch, regionsPath + "/West", `{"CPUMemResources":[{"AvailabilityZone":"az1","CpuCapacity":8.0,"MemCapacity":1.024e3}]}`, 204, [3]int64{8, 1024}, [3]int64{}, [3]int64{}},
		{"zone with the region as a prefix", http.MethodPatch, regionsPath + "/West", `{"cpumemresources":[{"availability_zone":"West-az1","cpucapacity":9}]}`, 200, [3]int64{9, 1024}, [3]int64{}, [3]int64{}},
		{"zone by the ID of its site", http.MethodPatch, regionsPath + "/West", `{"siteresource":{"CPUMEMRESOURCES":[{"AVAILABILITYZONE":"West--West-az2","CPUCAPACITY":5,"MEMCAPACITY":512}]}}`, 200, [3]int64{9, 1024}, [3]int64{5, 512}, [3]int64{}},
		{"zone by the name with which it was registered", http.MethodPatch, regionsPath + "/West", `{"regionresource":{"regionname":"West","CPUMemResources":[{"AvailabilityZone":"West-az2","CpuCapacity":6}]}}`, 200, [3]int64{9, 1024}, [3]int64{6, 512}, [3]int64{}},
		{"volumes only", http.MethodPatch, regionsPath + "/West", `{"VolumeResources":[{"TypeId":"ssd","StorageCapacity":60},{"TypeId":"ssd","StorageCapacity":40}]}`, 200, [3]int64{9, 1024, 100}, [3]int64{6, 512, 100}, [3]int64{}},
		{"the same volumes", http.MethodPatch, regionsPath + "/West", `{"VolumeResources":[{"TypeId":"ssd","StorageCapacity":100}]}`, 204, [3]int64{9, 1024, 100}, [3]int64{6, 512, 100}, [3]int64{}},
		{"several regions with POST", http.MethodPost, regionsPath, `{"regionresources":[{"regionname":"East","cpumemresources":[{"availabilityzone":"az1","cpucapacity":3,"memcapacity":64}],"volumeresources":[{"typeid":"ssd","storagecapacity":7}]},{"regionname":"West","volumeresources":[{"typeid":"ssd","storagecapacity":90}]}]}`,
			200, [3]int64{9, 1024, 90}, [3]int64{6, 512, 90}, [3]int64{3, 64, 7}},
		{"sites", http.MethodPatch, sitesPath, `{"SiteResources":[{"SiteID":"West--az1","CPUCapacity":1,"MemCapacity":2,"Storage":[{"TypeID":"ssd","StorageCapacity":3}]},{"SiteID":"East|az1","CPUCapacity":4}]}`, 200, [3]int64{1, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"a single site", http.MethodPatch, sitesPath, `{"siteresource":{"siteid":"West--az1","cpucapacity":0}}`, 200, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"unknown region", http.MethodPatch, regionsPath + "/North", `{}`, 404, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"unknown zone after a known one", http.MethodPatch, regionsPath + "/West", `{"CPUMemResources":[{"AvailabilityZone":"az1","CpuCapacity":77},{"AvailabilityZone":"az9","CpuCapacity":1}]}`, 404, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"unknown region after a known one", http.MethodPatch, regionsPath, `{"regionresources":[{"regionname":"West","volumeresources":[{"typeid":"ssd","storagecapacity":1}]},{"regionname":"North"}]}`, 404, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"unknown site", http.MethodPatch, sitesPath, `{"SiteResources":[{"SiteID":"az1","CPUCapacity":1}]}`, 404, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"region that differs from the path", http.MethodPatch, regionsPath + "/West", `{"RegionName":"East","VolumeResources":[{"TypeId":"ssd","StorageCapacity":1}]}`, 400, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"same zone twice", http.MethodPatch, regionsPath + "/West", `{"CPUMemResources":[{"AvailabilityZone":"az1","CpuCapacity":77},{"AvailabilityZone":"West-az1","CpuCapacity":1}]}`, 400, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"misspelled field", http.MethodPatch, regionsPath + "/West", `{"CPUMemoryResources":[]}`, 400, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"infinite pool", http.MethodPatch, regionsPath + "/West", `{"VolumeResources":[{"TypeId":"ssd","StorageCapacity":1e999}]}`, 400, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"not a number", http.MethodPatch, regionsPath + "/West", `{"VolumeResources":[{"TypeId":"ssd","StorageCapacity":NaN}]}`, 400, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
		{"examples of the document, as printed", http.MethodPatch, regionsPath + "/West", `{"CPUMemResources":[{"AvailabilityZone":"West-az1","CpuCapacity":800,"MemCapacity":128,},]}`, 400, [3]int64{0, 2, 3}, [3]int64{6, 512, 90}, [3]int64{4, 64, 7}},
	} {
		t.Run(step.name, func(t *testing.T) {
			a := s.do(step.method, step.path, step.body)
			if a.StatusCode != step.status || a.StatusCode == 204 && len(a.body) > 0 {
				t.Fatalf("unexpected answer %d %s", a.StatusCode, a.body)
			}
			if a.StatusCode >= 400 {
				a.problem(t)
			} else if result := (arktos.PushResult{}); a.StatusCode == 200 {
				if result = decodeAs[arktos.PushResult](t, a); result.Result != "ok" || len(result.Sites) == 0 {
					t.Errorf("result %s, want ok, with sites", a.body)
				}
			}
			for name, want := range map[string][3]int64{"c1": step.c1, "c2": step.c2, "c3": step.c3} {
				c := s.siteOf(name)
				got := [3]int64{c.CPUCapacity, c.MemCapacity}
				if len(c.Storage) > 0 {
					got[2] = c.Storage[0].StorageCapacity
				}
				if got != want {
					t.Errorf("%s has %v, want %v", name, got, want)
				}
			}
		})
	}
}

// Replicas placed on a site count against its capacity until a push includes them.
func TestPushesEndReservations(t *testing.T) {
	s := startGlobal(t)
	s.mustRegister("c1", "West", "az1", `,"flavors":[{"flavorid":"m1.large","vcpus":4,"ram":8192,"totalcapacity":1000}]`)
	push := func(cpu, memory int) {
		s.expect(200, http.MethodPatch, regionsPath+"/West", pushZones(map[string][2]int64{"az1": {int64(cpu), int64(memory)}}))
	}
	push(40, 163840)
	if f := s.siteOf("c1").Flavors[0]; *f.Count != 10 {
		t.Errorf("%d machines fit before the first placement, want 10", *f.Count)
	}
	s.expect(201, http.MethodPost, podsPath, `{"name":"p","flavor":"m1.large"}`)
	if c := s.siteOf("c1"); *c.Flavors[0].Count != 9 || c.Available["cpu"] != "36" {
		t.Errorf("site %+v, want 9 machines and 36 CPUs", c)
	}
	s.expect(204, http.MethodPatch, regionsPath+"/West", pushZones(map[string][2]int64{"az1": {40, 163840}}))
	if c := s.siteOf("c1"); c.Available["cpu"] != "36" {
		t.Errorf("a push without changes ended the reservation: %v", c.Available)
	}
	s.expect(200, http.MethodPatch, regionsPath+"/West", `{"CPUMemResources":[{"AvailabilityZone":"az1","CpuCapacity":40,"MemCapacity":163840}],"VolumeResources":[{"TypeId":"ssd","StorageCapacity":1}]}`)
	if c := s.siteOf("c1"); c.Available["cpu"] != "36" || c.Available["storage/ssd"] != "1Gi" {
		t.Errorf("a push of volumes only ended the reservation: %v", c.Available)
	}
	push(36, 155648)
	if c := s.siteOf("c1"); *c.Flavors[0].Count != 9 || c.Available["cpu"] != "36" || c.Available["memory"] != "152Gi" {
		t.Errorf("site %+v, want 9 machines, 36 CPUs and 152 GiB", c)
	}
	// Ten times the capacity: the counts increase again.
	push(400, 1638400)
	if f := s.siteOf("c1").Flavors[0]; *f.Count != 100 {
		t.Errorf("%d machines fit after the site has grown, want 100", *f.Count)
	}
}

func TestPushesForSitesThatAreNotOneCluster(t *testing.T) {
	s := startGlobal(t)
	s.mustPut("/v1/clusters/a", `{"spec":{"region":"West","zones":["az1"]}}`)
	s.mustPut("/v1/clusters/b", `{"spec":{"region":"West","zones":["az1"]}}`)
	if p := s.expect(409, http.MethodPatch, regionsPath+"/West", pushZones(map[string][2]int64{"az1": {1, 1}})).problem(t); !strings.Contains(p.Detail, "a, b") {
		t.Errorf("unexpected detail %s", p.Detail)
	}
	s.expect(409, http.MethodPatch, regionsPath+"/West", `{"VolumeResources":[{"TypeId":"ssd","StorageCapacity":1}]}`)
	s.mustPut("/v1/clouds/paris", `{"spec":{}}`)
	s.mustPut("/v1/clusters/b", `{"spec":{"openstack":{"cloud":"paris","region":"West","availability_zone":"az2"}}}`)
	if p := s.expect(409, http.MethodPatch, regionsPath+"/West", pushZones(map[string][2]int64{"az2": {1, 1}})).problem(t); !strings.Contains(p.Detail, `"paris"`) {
		t.Errorf("unexpected detail %s", p.Detail)
	}
	s.expect(200, http.MethodPatch, regionsPath+"/West", `{"VolumeResources":[{"TypeId":"ssd","StorageCapacity":1}]}`)
	if b := s.siteOf("b"); len(b.Storage) != 0 {
		t.Errorf("site %+v, want no storage", b)
	}
}

func TestConcurrentPushesLoseNothing(t *testing.T) {
	s := startGlobal(t)
	const zones, pushers = 6, 4
	for i := range zones {
		s.mustRegister(fmt.Sprintf("c%d", i), "West", fmt.Sprintf("az%d", i), "")
	}
	var pushing sync.WaitGroup
	for p := range pushers {
		pushing.Go(func() {
			for round := range 5 {
				body := fmt.Sprintf(`{"VolumeResources":[{"TypeId":"t%d","StorageCapacity":%d}],"CPUMemResources":[{"AvailabilityZone":"az%d","CpuCapacity":%d,"MemCapacity":64}]}`, p, round+1, p, round+1)
				if a, err := s.try(context.Background(), http.MethodPatch, regionsPath+"/West?wait=0s", body); err != nil || a.StatusCode != 200 {
					t.Errorf("%d %s %v", a.StatusCode, a.body, err)
				}
			}
		})
	}
	pushing.Wait()
	for i := range zones {
		c := s.siteOf(fmt.Sprintf("c%d", i))
		want := []arktos.Storage{}
		for p := range pushers {
			want = append(want, arktos.Storage{TypeID: fmt.Sprintf("t%d", p), StorageCapacity: 5})
		}
		if !slices.Equal(c.Storage, want) || i < pushers && c.CPUCapacity != 5 {
			t.Errorf("unexpected site %+v", c)
		}
	}
}

func TestSiteIsGivenToOneCluster(t *testing.T) {
	s := startGlobal(t)
	statuses := make([]int, 8)
	var registering sync.WaitGroup
	for i := range statuses {
		registering.Go(func() {
			a, err := s.try(context.Background(), http.MethodPost, "/globalscheduler/v1"+"/clusters?wait=0s", fmt.Sprintf(`{"name":"c%d","ipaddress":"10.0.0.1","region":"West","availabilityzone":"az1"}`, i))
			if err != nil {
				t.Error(err)
				return
			}
			statuses[i] = a.StatusCode
		})
	}
	registering.Wait()
	slices.Sort(statuses)
	if statuses[0] != 201 || statuses[1] != 409 {
		t.Errorf("statuses %v, want 201 and 409", statuses)
	}
}

func TestGlobalSchedulerPermissions(t *testing.T) {
	s := startGlobal(t)
	s.mustPut("/v1/clusters/shop-1", `{"spec":{"namespace":"shop","region":"West","zones":["az1"]}}`)
	s.mustPut("/v1/clusters/bank-1", `{"spec":{"namespace":"bank","region":"West","zones":["az2"]}}`)
	s.mustPut("/v1/clusters/east-1", `{"spec":{"region":"East","zones":["az1"]}}`)
	admin := s.addToken(auth.RoleAdmin)
	tokens := map[string]string{
		"agent": s.addToken(auth.RoleAgent), "shop agent": s.addToken(auth.RoleAgent, "shop"), "viewer": s.addToken(auth.RoleViewer), "editor": s.addToken(auth.RoleEditor),
		"shop editor": s.addToken(auth.RoleEditor, "shop"), "shop viewer": s.addToken(auth.RoleViewer, "shop"),
	}
	west := pushZones(map[string][2]int64{"az1": {1, 1}})
	bank := pushZones(map[string][2]int64{"az2": {1, 1}})
	volumes := `{"VolumeResources":[{"TypeId":"ssd","StorageCapacity":%d}]}`
	for i, c := range []struct {
		who, method, path, body string
		status                  int
	}{
		{"viewer", http.MethodPatch, regionsPath + "/West", west, 403},
		{"viewer", http.MethodPost, podsPath, `{"name":"p"}`, 403},
		{"viewer", http.MethodPost, allocationsPath, `{"allocation":{"resource_group":{"resources":[{}]}}}`, 403},
		{"viewer", http.MethodPost, "/globalscheduler/v1" + "/clusters", `{"name":"x","ipaddress":"10.0.0.1","region":"R","availabilityzone":"z"}`, 403},
		{"viewer", http.MethodDelete, "/globalscheduler/v1" + "/clusters/name/shop-1", ``, 403},
		{"viewer", http.MethodDelete, podsPath + "/name/p", ``, 403},
		{"agent", http.MethodPatch, regionsPath + "/West", west, 200},
		{"agent", http.MethodGet, "/globalscheduler/v1" + "/clusters", ``, 403},
		{"agent", http.MethodGet, podsPath, ``, 403},
		{"agent", http.MethodGet, podsPath + "/name/p", ``, 403},
		{"agent", http.MethodGet, allocationsPath + "/id/p", ``, 403},
		{"agent", http.MethodPost, podsPath, `{"name":"p"}`, 403},
		{"shop agent", http.MethodPatch, regionsPath + "/West", west, 204},
		{"shop agent", http.MethodPatch, regionsPath + "/West", bank, 403},
		{"shop agent", http.MethodPatch, regionsPath + "/East", fmt.Sprintf(volumes, 1), 403},
		{"shop agent", http.MethodPatch, regionsPath + "/North", fmt.Sprintf(volumes, 1), 404},
		{"shop agent", http.MethodPatch, regionsPath + "/West", fmt.Sprintf(volumes, 1), 200},
		{"shop editor", http.MethodPost, "/globalscheduler/v1" + "/clusters", `{"name":"x","ipaddress":"10.0.0.1","region":"R","availabilityzone":"z"}`, 403},
		{"shop editor", http.MethodPost, "/globalscheduler/v1" + "/clusters", `{"name":"x","namespace":"shop","ipaddress":"10.0.0.1","region":"R","availabilityzone":"z"}`, 201},
		{"shop editor", http.MethodPost, "/globalscheduler/v1" + "/clusters", `{"name":"y","namespace":"shop","ipaddress":"10.0.0.1","region":"West","availabilityzone":"az2"}`, 409},
		{"shop editor", http.MethodGet, "/globalscheduler/v1" + "/clusters/name/bank-1", ``, 404},
		{"shop editor", http.MethodDelete, "/globalscheduler/v1" + "/clusters/name/bank-1", ``, 404},
		{"shop editor", http.MethodDelete, "/globalscheduler/v1" + "/clusters/name/east-1", ``, 403},
		{"shop editor", http.MethodPost, podsPath, `{"name":"p"}`, 403},
		{"shop editor", http.MethodPost, podsPath + "?namespace=shop", `{"name":"p"}`, 201},
		{"editor", http.MethodPost, podsPath, `{"name":"p","namespace":"bank"}`, 201},
		{"shop viewer", http.MethodGet, podsPath + "/name/p?namespace=bank", ``, 404},
		{"shop viewer", http.MethodGet, podsPath + "?namespace=bank", ``, 403},
		{"shop viewer", http.MethodGet, allocationsPath + "/id/p?namespace=bank", ``, 403},
		{"shop viewer", http.MethodGet, podsPath + "/name/p?namespace=shop", ``, 200},
		{"shop editor", http.MethodDelete, podsPath + "/name/p?namespace=bank", ``, 403},
	} {
		s.token = tokens[c.who]
		a := s.expect(c.status, c.method, c.path, c.body)
		if strings.Contains(string(a.body), "bank-1") && strings.HasPrefix(c.who, "shop") && !strings.Contains(c.path+c.body, "bank") {
			t.Errorf("%d: %s sees a cluster of another namespace: %s", i, c.who, a.body)
		}
	}
	s.token = tokens["shop viewer"]
	if list := decodeAs[arktos.PodList](t, s.do(http.MethodGet, podsPath, "")); len(list.Pods) != 1 || list.Pods[0].Namespace != "shop" {
		t.Errorf("pods %+v, want the one in shop", list)
	}
	s.token = admin
	if c := s.siteOf("bank-1"); len(c.Storage) != 0 || c.CPUCapacity != 0 {
		t.Errorf("an agent of another namespace wrote %+v", c)
	}
}

// A body without a media type, as curl sends it, is parsed as JSON.
func TestBodiesOfTheGlobalScheduler(t *testing.T) {
	s := startGlobal(t)
	body := `{"name":"c1","ipaddress":"10.0.0.1","region":"West","availabilityzone":"az1"}`
	s.expect(415, http.MethodPost, "/globalscheduler/v1"+"/clusters", body, "Content-Type", "text/plain")
	s.expect(201, http.MethodPost, "/globalscheduler/v1"+"/clusters", body, "Content-Type", "application/x-www-form-urlencoded")
	s.expect(403, http.MethodPost, "/globalscheduler/v1"+"/clusters", `{"name":"c2","ipaddress":"10.0.0.1","region":"West","availabilityzone":"az2"}`,
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site")
	s.expect(413, http.MethodPatch, regionsPath+"/West", `{"CPUMemResources":[`+strings.Repeat(" ", 1<<20)+`]}`)
	s.expect(422, http.MethodPatch, regionsPath+"/West?wait=soon", `{}`)
	s.expect(405, http.MethodPut, regionsPath+"/West", `{}`)
}

func FuzzGlobalSchedulerPush(f *testing.F) {
	fuzzBody(f, http.MethodPatch, regionsPath+"/West", pushZones(map[string][2]int64{"az1": {1, 1}}), `{"siteresource":{"VolumeResources":[{"TypeId":"ssd","StorageCapacity":1}]}}`)
}

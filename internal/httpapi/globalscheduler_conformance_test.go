package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	gs "github.com/scheduler/terraform-provider-scheduler/internal/httpapi/globalscheduler"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// arktosCase is one fact of testdata/arktos.json about the API of Arktos.
type arktosCase struct {
	ID string `json:"id"`
	In struct {
		Method    string              `json:"method"`
		Path      string              `json:"path"`
		Body      json.RawMessage     `json:"body"`
		Known     []string            `json:"known"`
		Duplicate string              `json:"duplicate"`
		Same      []string            `json:"register_two_clusters_same_region_az"`
		Delete    string              `json:"delete_cluster"`
		Unknown   bool                `json:"push_for_unregistered_region_then_schedule"`
		Before    map[string][2]int64 `json:"before"`
		Patch     map[string][2]int64 `json:"patch"`
	} `json:"in"`
	Out struct {
		Status int `json:"status"`
		Sites  map[string]struct {
			VCPU    int64            `json:"vcpu"`
			Memory  int64            `json:"mem"`
			Storage map[string]int64 `json:"storage"`
		} `json:"sites"`
		After       map[string][2]int64 `json:"after"`
		StillPolled bool                `json:"region_still_polled"`
		Scheduler   string              `json:"scheduler"`
	} `json:"out"`
}

// registerSite registers a cluster, and returns its answer.
func (s *testServer) registerSite(name, region, zone, more string) answer {
	return s.do(http.MethodPost, globalSchedulerPath+"/clusters", fmt.Sprintf(`{"cluster":{"name":%q,"ipaddress":"10.0.0.1","region":{"region":%q,"availabilityzone":%q}%s}}`, name, region, zone, more))
}

func (s *testServer) mustRegister(name, region, zone, more string) gs.RegisteredCluster {
	s.t.Helper()
	a := s.registerSite(name, region, zone, more)
	if a.StatusCode != http.StatusCreated {
		s.t.Fatalf("register %s: %d %s", name, a.StatusCode, a.body)
	}
	return decodeAs[gs.ClusterAnswer](s.t, a).Cluster
}

func (s *testServer) siteOf(name string) gs.RegisteredCluster {
	s.t.Helper()
	a := s.do(http.MethodGet, globalSchedulerPath+"/clusters/name/"+name, "")
	if a.StatusCode != http.StatusOK {
		s.t.Fatalf("read %s: %d %s", name, a.StatusCode, a.body)
	}
	return decodeAs[gs.ClusterAnswer](s.t, a).Cluster
}

// pushZones pushes cpu and memory by zone of region West.
func pushZones(figures map[string][2]int64) string {
	var zones []string
	for zone, f := range figures {
		zones = append(zones, fmt.Sprintf(`{"AvailabilityZone":%q,"CpuCapacity":%d,"MemCapacity":%d}`, zone, f[0], f[1]))
	}
	return `{"CPUMemResources":[` + strings.Join(zones, ",") + `]}`
}

// TestArktosConformance runs every case through a whole server.
func TestArktosConformance(t *testing.T) {
	raw, err := os.ReadFile("testdata/arktos.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []arktosCase }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 11 {
		t.Errorf("%d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			s := startWhole(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
			switch {
			case len(c.In.Before) > 0:
				runPartialPush(t, s, c)
			case len(c.In.Same) == 2:
				s.mustRegister("c1", c.In.Same[0], c.In.Same[1], "")
				if a := s.registerSite("c2", c.In.Same[0], c.In.Same[1], ""); a.StatusCode != c.Out.Status || !strings.Contains(a.problem(t).Detail, `"c1"`) {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
			case c.In.Delete != "":
				s.mustRegister(c.In.Delete, "West", "az1", "")
				s.mustRegister("other", "West", "az2", "")
				if a := s.do(http.MethodDelete, globalSchedulerPath+"/clusters/name/"+c.In.Delete, ""); a.StatusCode != http.StatusOK {
					t.Fatalf("%d %s", a.StatusCode, a.body)
				}
				if a := s.do(http.MethodPatch, globalSchedulerPath+"/regionresources/West", pushZones(map[string][2]int64{"az2": {8, 1024}})); (a.StatusCode == http.StatusOK) != c.Out.StillPolled {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
			case c.In.Unknown:
				s.mustRegister("c1", "West", "az1", `,"cpucapacity":8,"memcapacity":1024`)
				if a := s.do(http.MethodPatch, globalSchedulerPath+"/regionresources/Nowhere", pushZones(map[string][2]int64{"az1": {8, 1024}})); a.StatusCode != http.StatusNotFound {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
				pod := decodeAs[gs.PodAnswer](t, s.do(http.MethodPost, globalSchedulerPath+"/pods", `{"name":"p","cpu":1}`)).Pod
				if keeps := pod.Status == gs.PodBound && pod.SiteID == "West--az1"; keeps != (c.Out.Scheduler == "keeps running") {
					t.Errorf("%+v", pod)
				}
			case c.In.Duplicate != "":
				s.mustRegister("c1", "West", "az1", "")
				if a := s.registerSite("c1", "East", "az1", ""); a.StatusCode != c.Out.Status {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
			case strings.HasSuffix(c.In.Path, "{id}"):
				id := s.mustRegister("c1", "West", "az1", "").ID
				if a := s.do(c.In.Method, strings.Replace(c.In.Path, "{id}", id, 1), ""); a.StatusCode != c.Out.Status {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
			default:
				runPush(t, s, c)
			}
		})
	}
}

func runPush(t *testing.T, s *testServer, c arktosCase) {
	for i, id := range c.In.Known {
		region, zone, _ := strings.Cut(id, "--")
		s.mustRegister(fmt.Sprintf("c%d", i), region, zone, "")
	}
	body := string(c.In.Body)
	if text := ""; json.Unmarshal(c.In.Body, &text) == nil {
		body = text // what is not JSON stands in a text
	}
	if a := s.do(c.In.Method, c.In.Path, body); a.StatusCode != c.Out.Status {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	for i, id := range c.In.Known {
		want, ok := c.Out.Sites[id]
		if !ok {
			continue
		}
		got := s.siteOf(fmt.Sprintf("c%d", i))
		var storage []gs.Storage
		for _, volumeType := range []string{"sas", "sata", "ssd"} {
			storage = append(storage, gs.Storage{TypeID: volumeType, StorageCapacity: want.Storage[volumeType]})
		}
		if got.SiteID != id || got.CPUCapacity != want.VCPU || got.MemCapacity != want.Memory || !slices.Equal(got.Storage, storage) {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
		if got.Available["cpu"] != api.Quantity(fmt.Sprint(want.VCPU)) || got.Available["memory"] != api.Quantity(fmt.Sprintf("%dMi", want.Memory)) {
			t.Errorf("%s: available is %v", id, got.Available)
		}
	}
}

func runPartialPush(t *testing.T, s *testServer, c arktosCase) {
	for zone := range c.In.Before {
		s.mustRegister(zone, "West", zone, "")
	}
	for _, figures := range []map[string][2]int64{c.In.Before, c.In.Patch} {
		if a := s.do(http.MethodPatch, globalSchedulerPath+"/regionresources/West", pushZones(figures)); a.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	for zone, want := range c.Out.After {
		if got := s.siteOf(zone); got.CPUCapacity != want[0] || got.MemCapacity != want[1] {
			t.Errorf("%s: %+v, want %v", zone, got, want)
		}
	}
}

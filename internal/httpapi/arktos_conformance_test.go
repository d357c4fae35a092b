package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/arktos"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// arktosIn and arktosOut are a case about the Arktos API.
type arktosIn struct {
	Method    conformance.Field[string]                             `json:"method"`
	Path      conformance.Field[string]                             `json:"path"`
	Body      conformance.Field[json.RawMessage]                    `json:"body"`
	Known     conformance.Field[[]string]                           `json:"known"`
	Duplicate conformance.Field[string]                             `json:"duplicate"`
	Same      conformance.Field[conformance.Pair[string]]           `json:"register_two_clusters_same_region_az"`
	Delete    conformance.Field[string]                             `json:"delete_cluster"`
	Others    conformance.Field[bool]                               `json:"region_has_other_clusters"`
	Unknown   conformance.Field[bool]                               `json:"push_for_unregistered_region_then_schedule"`
	Partial   conformance.Field[bool]                               `json:"partial"`
	Before    conformance.Field[map[string]conformance.Pair[int64]] `json:"before"`
	Patch     conformance.Field[map[string]conformance.Pair[int64]] `json:"patch"`
}

type arktosOut struct {
	Status      int                                `json:"status"`
	Sites       map[string]arktosSite              `json:"sites"`
	After       map[string]conformance.Pair[int64] `json:"after"`
	StillPolled *bool                              `json:"region_still_polled"`
	Scheduler   string                             `json:"scheduler"`
}

type arktosSite struct {
	VCPU    int64            `json:"vcpu"`
	Memory  int64            `json:"mem"`
	Storage map[string]int64 `json:"storage"`
}

// registerSite registers a cluster and returns the response.
func (s *testServer) registerSite(name, region, zone, more string) answer {
	return s.do(http.MethodPost, "/globalscheduler/v1"+"/clusters", fmt.Sprintf(`{"cluster":{"name":%q,"ipaddress":"10.0.0.1","region":{"region":%q,"availabilityzone":%q}%s}}`, name, region, zone, more))
}

func (s *testServer) mustRegister(name, region, zone, more string) arktos.RegisteredCluster {
	s.t.Helper()
	a := s.registerSite(name, region, zone, more)
	if a.StatusCode != http.StatusCreated {
		s.t.Fatalf("register %s: %d %s", name, a.StatusCode, a.body)
	}
	return decodeAs[arktos.ClusterAnswer](s.t, a).Cluster
}

func (s *testServer) siteOf(name string) arktos.RegisteredCluster {
	s.t.Helper()
	a := s.do(http.MethodGet, "/globalscheduler/v1"+"/clusters/name/"+name, "")
	if a.StatusCode != http.StatusOK {
		s.t.Fatalf("read %s: %d %s", name, a.StatusCode, a.body)
	}
	return decodeAs[arktos.ClusterAnswer](s.t, a).Cluster
}

// pushZones pushes CPU and memory by zone of region West.
func pushZones[F ~[2]int64](figures map[string]F) string {
	var zones []string
	for zone, f := range figures {
		zones = append(zones, fmt.Sprintf(`{"AvailabilityZone":%q,"CpuCapacity":%d,"MemCapacity":%d}`, zone, f[0], f[1]))
	}
	return `{"CPUMemResources":[` + strings.Join(zones, ",") + `]}`
}

// TestArktosConformance runs every case against a whole server.
func TestArktosConformance(t *testing.T) {
	t.Parallel()
	play := conformance.Player(playArktos)
	suite := conformance.Suite{
		Driver: "internal/httpapi",
		Play:   map[string]func(*conformance.T, *conformance.Played){"push": play, "cluster_api": play, "pipeline": play},
	}
	suite.Run(t)
}

func playArktos(t *conformance.T, in *arktosIn, out *arktosOut) {
	s := startEndToEnd(t.T, store.Options{DataDir: t.TempDir(), NoFsync: true})
	switch {
	case in.Before.Has():
		runPartialPush(t, s, in, out)
	case in.Same.Has():
		region, zone := in.Same.Get()[0], in.Same.Get()[1]
		s.mustRegister("c1", region, zone, "")
		if a := s.registerSite("c2", region, zone, ""); a.StatusCode != out.Status || !strings.Contains(a.problem(t.T).Detail, `"c1"`) {
			t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
		}
	case in.Delete.Has():
		s.mustRegister(in.Delete.Get(), "West", "az1", "")
		if in.Others.Get() {
			s.mustRegister("other", "West", "az2", "")
		}
		if a := s.do(http.MethodDelete, "/globalscheduler/v1"+"/clusters/name/"+in.Delete.Get(), ""); a.StatusCode != http.StatusOK {
			t.Fatalf("got %d %s, want 200", a.StatusCode, a.body)
		}
		a := s.do(http.MethodPatch, "/globalscheduler/v1"+"/regionresources/West", pushZones(map[string][2]int64{"az2": {8, 1024}}))
		if out.StillPolled == nil || (a.StatusCode == http.StatusOK) != *out.StillPolled {
			t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
		}
	case in.Unknown.Get():
		s.mustRegister("c1", "West", "az1", `,"cpucapacity":8,"memcapacity":1024`)
		if a := s.do(http.MethodPatch, "/globalscheduler/v1"+"/regionresources/Nowhere", pushZones(map[string][2]int64{"az1": {8, 1024}})); a.StatusCode != http.StatusNotFound {
			t.Errorf("got %d %s, want 404", a.StatusCode, a.body)
		}
		pod := decodeAs[arktos.PodAnswer](t.T, s.do(http.MethodPost, "/globalscheduler/v1"+"/pods", `{"name":"p","cpu":1}`)).Pod
		if keeps := pod.Status == arktos.PodBound && pod.SiteID == "West--az1"; keeps != (out.Scheduler == "keeps running") {
			t.Errorf("unexpected pod %+v", pod)
		}
	case in.Duplicate.Has():
		if in.Duplicate.Get() != "name" {
			t.Fatalf("a second %s is not supported", in.Duplicate.Get())
		}
		if in.Method.Get() != http.MethodPost || in.Path.Get() != "/globalscheduler/v1"+"/clusters" {
			t.Fatalf("%s %s does not register a cluster", in.Method.Get(), in.Path.Get())
		}
		s.mustRegister("c1", "West", "az1", "")
		if a := s.registerSite("c1", "East", "az1", ""); a.StatusCode != out.Status {
			t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
		}
	case strings.HasSuffix(in.Path.Get(), "{id}"):
		id := s.mustRegister("c1", "West", "az1", "").ID
		if a := s.do(in.Method.Get(), strings.Replace(in.Path.Get(), "{id}", id, 1), ""); a.StatusCode != out.Status {
			t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
		}
	default:
		runPush(t, s, in, out)
	}
}

func runPush(t *conformance.T, s *testServer, in *arktosIn, out *arktosOut) {
	for i, id := range in.Known.Get() {
		region, zone, _ := strings.Cut(id, "--")
		s.mustRegister(fmt.Sprintf("c%d", i), region, zone, "")
	}
	body := string(in.Body.Get())
	if text := ""; json.Unmarshal(in.Body.Get(), &text) == nil {
		body = text // bodies that are not JSON are strings
	}
	if a := s.do(in.Method.Get(), in.Path.Get(), body); a.StatusCode != out.Status {
		t.Fatalf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	if out.Sites == nil {
		return
	}
	got := map[string]arktosSite{}
	for i := range in.Known.Get() {
		site := s.siteOf(fmt.Sprintf("c%d", i))
		storage := map[string]int64{}
		for _, v := range site.Storage {
			storage[v.TypeID] = v.StorageCapacity
		}
		got[site.SiteID] = arktosSite{VCPU: site.CPUCapacity, Memory: site.MemCapacity, Storage: storage}
		if site.Available["cpu"] != api.Quantity(fmt.Sprint(site.CPUCapacity)) || site.Available["memory"] != api.Quantity(fmt.Sprintf("%dMi", site.MemCapacity)) {
			t.Errorf("%s: available %v, want everything that the site has", site.SiteID, site.Available)
		}
	}
	if !reflect.DeepEqual(got, out.Sites) {
		t.Errorf("sites %+v, want %+v", got, out.Sites)
	}
}

func runPartialPush(t *conformance.T, s *testServer, in *arktosIn, out *arktosOut) {
	if !in.Partial.Get() {
		t.Fatal("a push of all zones is not supported")
	}
	for zone := range in.Before.Get() {
		s.mustRegister(zone, "West", zone, "")
	}
	for _, figures := range []map[string]conformance.Pair[int64]{in.Before.Get(), in.Patch.Get()} {
		if a := s.do(http.MethodPatch, "/globalscheduler/v1"+"/regionresources/West", pushZones(figures)); a.StatusCode != http.StatusOK {
			t.Fatalf("got %d %s, want 200", a.StatusCode, a.body)
		}
	}
	got := map[string]conformance.Pair[int64]{}
	for zone := range in.Before.Get() {
		site := s.siteOf(zone)
		got[zone] = conformance.Pair[int64]{site.CPUCapacity, site.MemCapacity}
	}
	if !maps.Equal(got, out.After) {
		t.Errorf("zones have %v, want %v", got, out.After)
	}
}

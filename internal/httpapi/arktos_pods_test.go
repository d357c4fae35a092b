package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/arktos"
)

// startSites starts a server with three sites: West--az1 and West--az2 have capacity for 3 and 2 machines of m1.large,
// East--az1 for 4.
func startSites(t testing.TB) *testServer {
	s := startGlobal(t)
	flavors := `,"flavors":[{"flavorid":"m1.large","vcpus":4,"ram":8192},{"flavorid":"m1.small","vcpus":1,"ram":2048}],"storage":[{"typeid":"ssd","storagecapacity":250}],"eipcapacity":3`
	s.mustRegister("west-1", "West", "az1", flavors+`,"cpucapacity":12,"memcapacity":65536,"operator":"o1","geolocation":{"country":"US","city":"Bellevue"}`)
	s.mustRegister("west-2", "West", "az2", flavors+`,"cpucapacity":8,"memcapacity":65536,"operator":"o2","geolocation":{"country":"US","city":"Austin"}`)
	s.mustRegister("east-1", "East", "az1", flavors+`,"cpucapacity":16,"memcapacity":65536,"operator":"o1","geolocation":{"country":"FR","city":"Paris"}`)
	return s
}

func (s *testServer) addPodOf(body string) arktos.Pod {
	s.t.Helper()
	return decodeAs[arktos.PodAnswer](s.t, s.expect(201, http.MethodPost, podsPath, body)).Pod
}

func TestPodsGetSites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, site, flavor string }{
		"by site":                {`{"name":"p","flavor":"m1.large","selector":{"site_id":"West--az2"}}`, "West--az2", "m1.large"},
		"by region and zone":     {`{"name":"p","flavors":["m1.large"],"selector":{"regions":[{"region":"West","availability_zone":["az1"]}]}}`, "West--az1", "m1.large"},
		"by place":               {`{"name":"p","flavors":[{"flavor_id":"m1.small"}],"selector":{"geo_location":{"country":"US","city":"Austin"}}}`, "West--az2", "m1.small"},
		"by operator and region": {`{"pod":{"NAME":"p","FLAVOR":"m1.small","SELECTOR":{"OPERATOR":"o1","Regions":[{"Region":"East"}]}}}`, "East--az1", "m1.small"},
		"the flavor there is":    {`{"name":"p","flavors":["m1.huge","m1.large"],"selector":{"site_id":"East--az1"}}`, "East--az1", "m1.large"},
		"amounts":                {`{"name":"p","cpu":13,"memory":1024,"storage":{"ssd":100},"eip":2}`, "East--az1", ""},
		"a manifest of Arktos": {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},"spec":{"resourceType":"vm",
			"virtualMachine":{"name":"vm1","image":"9ecb51b6","keyPairName":"demo","flavors":[{"flavorID":"m1.large"}],
				"resourceCommonInfo":{"count":1,"selector":{"geoLocation":{"city":"","province":"","country":"FR"},"regions":[{"region":"East","availablityZone":["az1"]}]}}},
			"nics":[{"name":"211d3389"}]}}`, "East--az1", "m1.large"},
		"a manifest with containers": {`{"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{"cpu":"7500m"}}},{"resources":{"limits":{"cpu":6,"memory":"1Gi"}}}]}}`, "East--az1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSites(t)
			p := s.addPodOf(c.body)
			if p.Status != arktos.PodBound || p.SiteID != c.site || p.FlavorID != c.flavor || p.Region+"--"+p.AvailabilityZone != c.site || p.Message != "" || p.ID == "" || p.Namespace != "default" {
				t.Errorf("unexpected pod %+v", p)
			}
			if w := decodeAs[api.Workload](t, s.do(http.MethodGet, "/v1/namespaces/default/workloads/p", "")); w.Metadata.UID != p.ID || *w.Spec.Replicas != 1 || w.Spec.Kind != "Pod" {
				t.Errorf("unexpected workload %+v", w)
			}
		})
	}
}

// A pod goes to the site with the highest score, even if another site has more capacity. Its replicas are not divided
// among sites.
func TestStackAffinityOfPods(t *testing.T) {
	s := startSites(t)
	s.addPodOf(`{"name":"database","flavor":"m1.small","selector":{"site_id":"West--az2"}}`)
	if p := s.addPodOf(`{"name":"web","flavor":"m1.small","selector":{"stack_affinity":["database"]}}`); p.SiteID != "West--az2" {
		t.Errorf("beside what it wants: %+v", p)
	}
	if p := s.addPodOf(`{"name":"copy","flavor":"m1.small","selector":{"regions":[{"region":"West"}],"stack_antiaffinity":["database"]}}`); p.SiteID != "West--az1" {
		t.Errorf("pod %+v, want it apart from the stack that it avoids", p)
	}
}

// A pod that fits nowhere waits and says why. It gets a site when there is capacity.
func TestPodsWait(t *testing.T) {
	s := startSites(t)
	p := s.addPodOf(`{"name":"p","namespace":"shop","cpu":20,"selector":{"regions":[{"region":"West"}]}}`)
	if p.Status != arktos.PodPending || p.Message == "" || p.SiteID != "" {
		t.Errorf("pod %+v, want it pending, with a message", p)
	}
	s.expect(200, http.MethodPatch, regionsPath+"/West", pushZones(map[string][2]int64{"az1": {24, 65536}}))
	p = decodeAs[arktos.PodAnswer](t, s.expect(200, http.MethodGet, podsPath+"/name/p?namespace=shop", "")).Pod
	if p.Status != arktos.PodBound || p.SiteID != "West--az1" || p.ClusterName != "west-1" {
		t.Errorf("pod %+v, want it bound to West--az1", p)
	}
	if byID := decodeAs[arktos.PodAnswer](t, s.expect(200, http.MethodGet, podsPath+"/id/"+p.ID, "")).Pod; byID != p {
		t.Errorf("pod %+v by its ID, want the same as by its name", byID)
	}
	s.addPodOf(`{"name":"q"}`)
	s.mustPut("/v1/namespaces/shop/workloads/web", workloadBody)
	list := decodeAs[arktos.PodList](t, s.expect(200, http.MethodGet, podsPath, ""))
	if names := podNames(list); !slices.Equal(names, []string{"default/q", "shop/p"}) || list.Continue != "" {
		t.Errorf("pods %v, want default/q and shop/p", list)
	}
	first := decodeAs[arktos.PodList](t, s.expect(200, http.MethodGet, podsPath+"?limit=1", ""))
	second := decodeAs[arktos.PodList](t, s.expect(200, http.MethodGet, podsPath+"?limit=1&continue="+first.Continue, ""))
	if names := append(podNames(first), podNames(second)...); !slices.Equal(names, []string{"default/q", "shop/p"}) || second.Continue != "" {
		t.Errorf("pods %v page by page, want default/q and shop/p", names)
	}
	s.expect(400, http.MethodGet, podsPath+"?continue=x", "")
	s.expect(404, http.MethodGet, podsPath+"/name/web?namespace=shop", "")
	s.expect(404, http.MethodDelete, podsPath+"/name/web?namespace=shop", "")
	s.expect(404, http.MethodGet, podsPath+"/name/p", "")
	s.expect(409, http.MethodPost, podsPath+"?namespace=shop", `{"name":"p"}`)

	s.expect(200, http.MethodDelete, podsPath+"/id/"+p.ID, "")
	s.expect(404, http.MethodGet, podsPath+"/id/"+p.ID, "")
	s.expect(404, http.MethodDelete, podsPath+"/id/"+p.ID, "")
	s.expect(200, http.MethodDelete, podsPath+"/name/q", "")
	if c := s.siteOf("west-1"); c.Available["cpu"] != "24" {
		t.Errorf("available %v after the deletion of the pod, want 24 CPUs", c.Available)
	}
}

func podNames(list arktos.PodList) []string {
	var names []string
	for _, p := range list.Pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

func TestInvalidPods(t *testing.T) {
	s := startGlobal(t)
	for body, field := range map[string]string{
		``: "", `null`: "", `{`: "", `{"name":"\u0000"}`: "",
		`{}`:                                        "name",
		`{"name":"No Name"}`:                        "name",
		`{"name":"p","namespace":"-"}`:              "namespace",
		`{"name":"p","flavours":["a"]}`:             "flavours",
		`{"name":"p","cpu":-1}`:                     "cpu",
		`{"name":"p","flavor":"a","flavors":["b"]}`: "flavor",
		`{"name":"p","flavors":["a","a"]}`:          "flavors[1]",
		`{"name":"p","storage":{"a b":1}}`:          `requests["storage/a b"]`,
		`{"name":"p","selector":{"strategy":{"location_strategy":"bogus"}}}`:                                        "selector.strategy.location_strategy",
		`{"name":"p","selector":{"strategy":{"region_strategy":"bogus"}}}`:                                          "selector.strategy.region_strategy",
		`{"name":"p","selector":{"regions":[{}]}}`:                                                                  "selector.regions[0].region",
		`{"name":"p","selector":{"stack_affinity":[{"key":"a","operator":"In","values":["b"]}]}}`:                   "selector.stack_affinity[0]",
		`{"metadata":{"name":"p"},"spec":{"virtualMachine":{"resourceCommonInfo":{"count":2}}}}`:                    "spec.virtualMachine.resourceCommonInfo.count",
		`{"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{"cpu":"many","memory":"-1"}}}]}}`: `spec.containers[0].resources.requests["cpu"]`,
		`{"metadata":{"name":"p"},"spec":{"containers":7}}`:                                                         "spec.containers",
	} {
		p := s.expect(400, http.MethodPost, podsPath, body).problem(t)
		if field != "" && (len(p.Errors) == 0 || p.Errors[0].Field != field) || field == "" && len(p.Errors) > 0 {
			t.Errorf("%s: unexpected problem %+v", body, p)
		}
	}
}

func TestAllocations(t *testing.T) {
	t.Parallel()
	large := func(replicas, strategy, more string) string {
		return `{"allocation":{` + more + `"resource_group":{"name":"web","labels":{"a":"b"},"resources":[{"name":"vm","resource_type":"vm","flavors":[{"flavor_id":"m1.large","spot":{"max_price":"1"}}]}]},
			"selector":{"geo_location":{"country":"US"},"strategy":{"location_strategy":"` + strategy + `"}},"replicas":` + replicas + `}}`
	}
	for name, c := range map[string]struct {
		body string
		want map[string]int
	}{
		"centralized":              {large("4", "centralize", ""), map[string]int{"West--az1": 3, "West--az2": 1}},
		"discrete":                 {large("5", "discrete", ""), map[string]int{"West--az1": 3, "West--az2": 2}},
		"one, without a wrapper":   {`{"resource_group":{"resources":[{"flavors":["m1.large"]}]},"selector":{"site_id":"East--az1"}}`, map[string]int{"East--az1": 1}},
		"all in one region":        {`{"replicas":5,"resource_group":{"resources":[{"flavors":["m1.large"]}]},"selector":{"geo_location":{"country":"US"},"strategy":{"region_strategy":"alone"}}}`, map[string]int{"West--az1": 3, "West--az2": 2}},
		"as far as storage goes":   {`{"replicas":2,"resource_group":{"resources":[{"flavors":["m1.small"],"storage":{"ssd":100}}]},"selector":{"site_id":"West--az2"}}`, map[string]int{"West--az2": 2}},
		"several machines a group": {`{"replicas":2,"resource_group":{"resources":[{"flavors":["m1.large"]},{"flavors":["m1.small"],"count":4,"need_eip":false}]},"selector":{"site_id":"East--az1"}}`, map[string]int{"East--az1": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSites(t)
			a := decodeAs[arktos.AllocationAnswer](t, s.expect(201, http.MethodPost, allocationsPath, c.body)).Allocation
			got := map[string]int{}
			for _, group := range a.ResourceGroups {
				got[group.Selected.SiteID]++
				if group.Selected.ClusterName == "" || group.Selected.Region+"--"+group.Selected.AvailabilityZone != group.Selected.SiteID {
					t.Errorf("group %+v, want it on a site", group)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			for site, n := range c.want {
				if got[site] != n {
					t.Errorf("got %v, want %v", got, c.want)
				}
			}
			again := decodeAs[arktos.AllocationAnswer](t, s.expect(200, http.MethodGet, allocationsPath+"/id/"+a.ID, "")).Allocation
			if again.ID != a.ID || len(again.ResourceGroups) != len(a.ResourceGroups) || strings.Contains(c.body, "web") != (again.ResourceGroups[0].Name == "web") {
				t.Errorf("got %+v, want %+v", again, a)
			}
			s.expect(200, http.MethodDelete, allocationsPath+"/id/"+a.ID, "")
			s.expect(404, http.MethodGet, allocationsPath+"/id/"+a.ID, "")
		})
	}
}

// An allocation that does not fit as a whole is not placed at all, and leaves nothing behind.
func TestAllocationsAreAllOrNothing(t *testing.T) {
	s := startSites(t)
	for name, body := range map[string]string{
		"too many":           `{"allocation":{"id":"a","replicas":10,"resource_group":{"resources":[{"flavors":["m1.large"]}]}}}`,
		"too much storage":   `{"allocation":{"id":"a","replicas":4,"resource_group":{"resources":[{"flavors":["m1.small"],"storage":{"ssd":100}}]},"selector":{"regions":[{"region":"West","availability_zone":"az1"}]}}}`,
		"nowhere":            `{"allocation":{"id":"a","resource_group":{"resources":[{"flavors":["m1.large"]}]},"selector":{"operator":"nobody"}}}`,
		"no region alone":    `{"allocation":{"id":"a","replicas":6,"resource_group":{"resources":[{"flavors":["m1.large"]}]},"selector":{"strategy":{"region_strategy":"alone"}}}}`,
		"too many addresses": `{"allocation":{"id":"a","replicas":1,"resource_group":{"resources":[{"flavors":["m1.small"],"need_eip":true,"count":4}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := s.expect(409, http.MethodPost, allocationsPath, body).problem(t)
			if len(p.Errors) != 3 || !slices.ContainsFunc(p.Errors, func(e api.FieldError) bool { return e.Field == "East--az1" && e.Message != "" }) {
				t.Errorf("problem %+v, want an error for each of three sites", p)
			}
			if name == "too many" && !slices.Contains(p.Errors, api.FieldError{Field: "West--az2", Message: "has room for 2"}) {
				t.Errorf("problem %+v, want an error about the room of West--az2", p)
			}
			s.expect(404, http.MethodGet, allocationsPath+"/id/a", "")
			if a := s.do(http.MethodGet, "/v1/workloads", ""); strings.Contains(string(a.body), "Allocation") {
				t.Errorf("workloads were left over: %s", a.body)
			}
		})
	}
	// With all the capacity free again, it fits.
	s.expect(201, http.MethodPost, allocationsPath, `{"allocation":{"id":"a","replicas":9,"resource_group":{"resources":[{"flavors":["m1.large"]}]}}}`)
	if p := s.expect(409, http.MethodPost, allocationsPath, `{"allocation":{"id":"a","resource_group":{"resources":[{}]}}}`).problem(t); !strings.Contains(p.Detail, "exists already") {
		t.Errorf("unexpected problem %+v", p)
	}
	s.expect(201, http.MethodPost, allocationsPath+"?namespace=shop", `{"allocation":{"id":"a","resource_group":{"resources":[{}]}}}`)
	s.expect(200, http.MethodGet, allocationsPath+"/id/a?namespace=shop", "")
	s.expect(404, http.MethodGet, podsPath+"/name/a", "")
}

func TestInvalidAllocations(t *testing.T) {
	s := startGlobal(t)
	for body, field := range map[string]string{
		`[]`: "", `{`: "",
		`{}`:               "resource_group.resources",
		`{"allocation":7}`: "allocation",
		`{"resource_group":{"resources":[{}]},"selector":{"strategy":{"location_strategy":"bogus"}}}`: "selector.strategy.location_strategy",
		`{"resource_group":{"resources":[{}]},"replicas":0}`:                                          "replicas",
		`{"resource_group":{"resources":[{}]},"replicas":1e6}`:                                        "replicas",
		`{"resource_group":{"resources":[{"count":0}]}}`:                                              "resource_group.resources[0].count",
		`{"resource_group":{"resources":[{"storage":{"ssd":-1}}]}}`:                                   `resource_group.resources[0].storage["ssd"]`,
		`{"resource_group":{"resources":[{"flavors":["nobody has"],"count":2}]}}`:                     "resource_group.resources[0].flavors",
		`{"id":"No Id","resource_group":{"resources":[{}]}}`:                                          "name",
	} {
		p := s.expect(400, http.MethodPost, allocationsPath, body).problem(t)
		if field != "" && (len(p.Errors) == 0 || p.Errors[0].Field != field) || field == "" && len(p.Errors) > 0 {
			t.Errorf("%s: unexpected problem %+v", body, p)
		}
	}
}

// If no decision is made in time, nothing is allocated, now or later.
func TestAllocationsWithoutADecision(t *testing.T) {
	s := startServer(t)
	s.decisions.bind = func(w *api.Workload) api.WorkloadStatus { // as if it were decided
		return api.WorkloadStatus{Clusters: []api.WorkloadCluster{{Name: "a", Replicas: *w.Spec.Replicas}}}
	}
	a := s.expect(503, http.MethodPost, allocationsPath, `{"id":"a","resource_group":{"resources":[{}]}}`)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After header")
	}
	s.expect(404, http.MethodGet, allocationsPath+"/id/a", "")
	if p := s.addPodOf(`{"name":"p"}`); p.Status != arktos.PodPending || p.Message != "the decision has not been made yet" {
		t.Errorf("pod %+v, want it pending until it is decided", p)
	}
}

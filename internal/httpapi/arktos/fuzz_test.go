package arktos

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

var hostile = []string{
	``, `null`, `[]`, `0`, `{`, `{}`, `{"siteresource":null}`, `{"siteresource":[]}`, `{"siteresource":{"siteresource":{}}}`, `{"A":1,"a":2}`, "{\"\xff\":1}",
	`{"cpumemresources":[null]}`, `{"cpumemresources":[{"availabilityzone":"a","cpucapacity":1e999}]}`, `{"cpumemresources":[{"availabilityzone":"a","cpucapacity":-0,"memcapacity":0.0000001}]}`,
	`{"volumeresources":[{"typeid":"` + "\u0000" + `","storagecapacity":999999999999.9}]}`,
}

func seed(f *testing.F, documents ...string) {
	for _, d := range append(documents, hostile...) {
		f.Add([]byte(d))
	}
}

// FuzzPush parses pushes of all forms. An accepted push names its target, and only has amounts that are valid for a
// cluster.
func FuzzPush(f *testing.F) {
	seed(f, `{"CPUMemResources":[{"AvailabilityZone":"West-az1","CpuCapacity":800,"MemCapacity":128,"EIPCapacity":1}],"VolumeResources":[{"TypeId":"sata","StorageCapacity":1000.00}]}`,
		`{"regionresources":[{"regionname":"West","cpumemresources":[{"availabilityzone":"az1","cpucapacity":1.5}]}]}`,
		`{"SiteResources":[{"SiteID":"West--az1","CPUCapacity":800,"Storage":[{"TypeID":"ssd","StorageCapacity":3}]}]}`,
		`{"siteresource":{"siteid":"a","cpucapacity":1}}`, `{"regionname":"West","eipcapacity":3}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, parse := range map[string]func() ([]pushedFigures, error){
			"region":  func() ([]pushedFigures, error) { return parseRegion("West", data) },
			"regions": func() ([]pushedFigures, error) { return parseRegions(data) },
			"sites":   func() ([]pushedFigures, error) { return parseSites(data) },
		} {
			figures, err := parse()
			if err != nil {
				if err.Error() == "" {
					t.Errorf("%s: empty error message", name)
				}
				continue
			}
			for _, figure := range figures {
				if figure.Region == "" && figure.Zone == "" {
					t.Errorf("%s: %+v has neither a region nor a zone", name, figure)
				}
				if errs := (&api.Heartbeat{Allocatable: figure.Available}).Validate(); len(errs) > 0 {
					t.Errorf("%s: %v", name, errs)
				}
			}
			site, _ := siteOf(&api.Cluster{Metadata: api.Metadata{Name: "c"}, Spec: api.ClusterSpec{Region: "West", Zones: []string{"az1"}}})
			reports, err := resolveSites(figures, []zoneSite{site})
			if err == nil && len(reports) > 1 || err != nil && reports != nil {
				t.Errorf("%s: %+v %v", name, reports, err)
			}
		}
	})
}

// FuzzCluster parses registrations. Accepted and valid ones can be converted back.
func FuzzCluster(f *testing.F) {
	seed(f, `{"cluster":{"name":"a","ipaddress":"1.2.3.4","geolocation":{"city":"x"},"region":{"region":"West","availabilityzone":"az1"},"flavors":[{"flavorid":"m1","totalcapacity":3,"vcpus":1,"ram":2}],"storage":[{"typeid":"ssd","storagecapacity":1}],"eipcapacity":1,"cpucapacity":1,"memcapacity":1,"serverprice":1e300}}`,
		`{"metadata":{"name":"a"},"spec":{"region":"West","availabilityzone":"az1"}}`, `{"name":"a","region":[]}`, `{"spec":7}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseCluster(data)
		if err != nil {
			return
		}
		site, ok := siteOf(c)
		if !ok {
			t.Fatalf("registered a cluster that is not a site: %+v", c)
		}
		shown := showCluster(site)
		if shown.CPUCapacity < 0 || shown.MemCapacity < 0 {
			t.Errorf("negative capacity: %+v", shown)
		}
		for name, amount := range c.Spec.Allocatable {
			if _, err := amount.Milli(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// FuzzPod parses pods. An accepted pod is a valid workload.
func FuzzPod(f *testing.F) {
	seed(f, `{"name":"p","flavors":["a",{"flavor_id":"b"}],"cpu":1.5,"memory":3,"storage":{"ssd":1},"eip":1,"selector":{"geo_location":{"city":"x"},"regions":[{"region":"r","availability_zone":"z"}],"operator":"o","site_id":"s","strategy":{"location_strategy":"discrete"},"stack_affinity":["q"]}}`,
		`{"metadata":{"name":"p"},"spec":{"virtualMachine":{"flavors":[{"flavorID":"42"}],"resourceCommonInfo":{"count":1,"selector":{"regions":[{"region":"r","availablityZone":["z"]}]}}},"containers":[{"resources":{"requests":{"cpu":1,"memory":"1Gi"},"limits":{"cpu":"1e3"}}}]}}`,
		`{"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{"cpu":"9E","memory":"9223372036854775807"}}},{"resources":{"requests":{"cpu":"9E","memory":"9223372036854775807"}}}]}}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := parsePod(data, "default")
		if err == nil && (!isPod(w) || len(w.Validate()) > 0) {
			t.Errorf("%+v: %v", w, w.Validate())
		}
	})
}

// FuzzAllocation parses allocations. An accepted allocation is a valid workload.
func FuzzAllocation(f *testing.F) {
	seed(f, `{"allocation":{"id":"a","resource_group":{"name":"g","labels":{"a":"b"},"resources":[{"name":"n","resource_type":"vm","flavors":[{"flavor_id":"m1"},"m2"],"storage":{"ssd":10},"need_eip":true,"count":3}]},"selector":{},"replicas":2}}`,
		`{"resource_group":{"resources":[{"flavors":["m1"],"count":1000},{"flavors":["m1"],"count":1000}]},"replicas":10000}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		w, machines, err := parseAllocation(data, "default", func() string { return "new" }, func(name string) bool { return name != "m2" })
		if err != nil {
			return
		}
		tried := 0
		ok, err := chooseFlavors(w, machines, func() (bool, error) {
			if tried++; !isAllocation(w) || len(w.Validate()) > 0 {
				t.Errorf("%+v: %v", w, w.Validate())
			}
			return tried%7 == 0, nil
		})
		if tried == 0 || tried > 10*maxChoices*(len(machines)+1) || err != nil {
			t.Errorf("%d choices tried: %t, %v", tried, ok, err)
		}
	})
}

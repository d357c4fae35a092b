package openstack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// figuresOf formats the amounts of a zone, one line for each resource: capacity, allocatable, allocated, available.
func figuresOf(zone *api.CloudZone) map[string]string {
	out := map[string]string{"hosts": fmt.Sprint(zone.Hosts)}
	for name := range zone.Capacity {
		out[name] = fmt.Sprint(zone.Capacity[name], " ", zone.Allocatable[name], " ", zone.Allocated[name], " ", zone.Available[name])
	}
	return out
}

func expectZones(t *testing.T, got *api.CloudRegion, want map[string]map[string]string) {
	t.Helper()
	for i := range got.Zones {
		zone := &got.Zones[i]
		if !maps.Equal(figuresOf(zone), want[zone.Name]) {
			t.Errorf("zone %s:\ngot  %v\nwant %v", zone.Name, figuresOf(zone), want[zone.Name])
		}
	}
	if len(got.Zones) != len(want) {
		t.Errorf("%d zones, want %d", len(got.Zones), len(want))
	}
}

// The amounts of the recorded OpenStack: 4 hosts in two zones, allocation ratios 4 and 1, 512 MiB reserved on each
// host, and 241 addresses, of which 6 are in use.
func recordedZones() map[string]map[string]string {
	shared := func(figures map[string]string) map[string]string {
		maps.Copy(figures, map[string]string{
			"storage/ssd":  "6000Gi 120000Gi 700Gi 119300Gi",
			"storage/hdd":  "20000Gi 20000Gi 1000Gi 19000Gi",
			"floating_ips": "241 241 6 235",
		})
		return figures
	}
	return map[string]map[string]string{
		"az-a": shared(map[string]string{"hosts": "2", "cpu": "128 512 13 499", "memory": "524288Mi 523264Mi 26624Mi 496640Mi"}),
		"az-b": shared(map[string]string{"hosts": "2", "cpu": "128 512 16 496", "memory": "655360Mi 654336Mi 65536Mi 588800Mi"}),
	}
}

func TestCollect(t *testing.T) {
	got, err := collectOnce(t, newRecorded(t), access())
	if err != nil {
		t.Fatal(err)
	}
	expectZones(t, got, recordedZones())
	var flavors, types []string
	for _, f := range got.Flavors {
		flavors = append(flavors, fmt.Sprint(f.Name, " ", f.VCPUs, " ", f.MemoryMiB, " ", f.DiskGiB, " ", f.Public))
	}
	for _, v := range got.VolumeTypes {
		types = append(types, v.Name+"="+v.Backend)
	}
	if want := "gpu.a100 16 65536 200 true,k8s.node 8 32768 100 true,m1.large 4 8192 80 true,m1.small 1 2048 20 true,red.private 2 4096 10 false"; strings.Join(flavors, ",") != want {
		t.Errorf("flavors %s\nwant %s", strings.Join(flavors, ","), want)
	}
	if want := "__DEFAULT__=,archive=tape,hdd=hdd,ssd=ssd"; strings.Join(types, ",") != want {
		t.Errorf("volume types %s, want %s", strings.Join(types, ","), want)
	}
}

// TestCollectVersions checks that amounts that newer versions of Nova's API omit are read from Placement.
func TestCollectVersions(t *testing.T) {
	for name, set := range map[string]func(*recorded){
		"a server that knows 2.53 at most":       func(o *recorded) { o.maximum = "2.60" },
		"a server that has dropped what we know": func(o *recorded) { o.newest = true },
		"amounts absent at 2.87":                 func(o *recorded) { o.answer("/v2.1/os-hypervisors/detail", "nova-hypervisors-detail-2.88") },
	} {
		t.Run(name, func(t *testing.T) {
			o := newRecorded(t)
			set(o)
			got, err := collectOnce(t, o, access())
			if err != nil {
				t.Fatal(err)
			}
			expectZones(t, got, recordedZones())
		})
	}
}

func TestCollectWithoutAmounts(t *testing.T) {
	o := newRecorded(t)
	o.newest = true
	o.reply("/resource_providers", says(200, `{"resource_providers":[]}`))
	_, err := collectOnce(t, o, access())
	if want := `neither the compute service nor Placement reports the resources of the host "cmp-`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCollectHosts checks that hosts that are down or disabled do not count.
func TestCollectHosts(t *testing.T) {
	for name, c := range map[string]struct{ answer, zone, hosts, cpu, memory string }{
		"dead":     {"nova-hypervisors-detail-2.87-dead-compute", "az-b", "1", "96 384 16 368", "524288Mi 523776Mi 65536Mi 458240Mi"},
		"disabled": {"nova-hypervisors-detail-2.87-disabled-down", "az-a", "1", "64 256 8 248", "262144Mi 261632Mi 16384Mi 245248Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newRecorded(t)
			o.answer("/v2.1/os-hypervisors/detail", c.answer)
			got, err := collectOnce(t, o, access())
			if err != nil {
				t.Fatal(err)
			}
			f := figuresOf(got.Zone(c.zone))
			if f["hosts"] != c.hosts || f["cpu"] != c.cpu || f["memory"] != c.memory {
				t.Errorf("got %v, want %+v", f, c)
			}
		})
	}
}

// TestCollectPages follows pages to the last one.
func TestCollectPages(t *testing.T) {
	o := newRecorded(t)
	pages := map[string]string{
		"": "nova-hypervisors-paged-2.87", "2300645f-191c-45ee-9eaf-4fdad4f2fc6a": "nova-hypervisors-paged-2.87.page2",
	}
	o.reply("/v2.1/os-hypervisors/detail", func(r *http.Request) (int, []byte) {
		name, ok := pages[r.URL.Query().Get("marker")]
		if !ok {
			name = "nova-hypervisors-paged-2.87.page3"
		}
		c := loadCapture(t, name)
		return c.Status, c.Body
	})
	got, err := collectOnce(t, o, access())
	if err != nil {
		t.Fatal(err)
	}
	expectZones(t, got, recordedZones())
	if n := o.requests("/v2.1/os-hypervisors/detail"); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// TestCollectOtherPages covers services that name the next page differently.
func TestCollectOtherPages(t *testing.T) {
	o := newRecorded(t)
	paged := func(path, name string, next func(address string) string) {
		c := loadCapture(t, name)
		var body map[string][]json.RawMessage
		if err := json.Unmarshal(c.Body, &body); err != nil {
			t.Fatal(err)
		}
		var key string
		for k := range body {
			key = k
		}
		o.reply(path, func(r *http.Request) (int, []byte) {
			i := len(r.URL.Query().Get("marker"))
			item, _ := json.Marshal(body[key][i : i+1])
			if i+1 == len(body[key]) {
				return 200, fmt.Appendf(nil, `{%q:%s}`, key, item)
			}
			return 200, fmt.Appendf(nil, `{%q:%s,%s}`, key, item, next("http://"+r.URL.Host+path+"?marker="+strings.Repeat("x", i+1)))
		})
	}
	paged("/v1/clusters/detail", "magnum-clusters-detail", func(next string) string { return fmt.Sprintf(`"next":%q`, next) })
	o.reply("/v3/projects", func(r *http.Request) (int, []byte) {
		if r.URL.Query().Get("page") == "" {
			return 200, []byte(`{"projects":[{"id":"1","name":"a","enabled":true}],"links":{"next":"http://127.0.0.1:5000/v3/projects?page=2"}}`)
		}
		return 200, []byte(`{"projects":[{"id":"2","name":"b","enabled":true}],"links":{"next":null}}`)
	})
	s, err := login(t.Context(), access(), addresspolicy.OnLoopback(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	projects, err := s.projects(t.Context(), api.LiveOptions{})
	if err != nil || len(projects) != 2 {
		t.Errorf("got %v, %v", projects, err)
	}
	magnum := s.service("RegionOne", magnumTypes)
	counts := map[string]int64{}
	if err := s.countClusters(t.Context(), magnum, counts); err != nil || len(counts) != 2 {
		t.Errorf("got %v, %v", counts, err)
	}
}

// TestCollectFailures checks that every error of an OpenStack has a stable message that says what to do, if something
// can be done. None contains the password.
func TestCollectFailures(t *testing.T) {
	endless := func(r *http.Request) (int, []byte) {
		return 200, []byte(`{"hypervisors":[{"id":"` + r.URL.Query().Get("marker") + `"}],"hypervisors_links":[{"rel":"next","href":"http://127.0.0.1:8774/v2.1/os-hypervisors/detail?marker=x` + r.URL.Query().Get("marker") + `"}]}`)
	}
	forbidden := func(name string) func(*recorded) {
		return func(o *recorded) { o.answer("/v2.1/os-hypervisors/detail", name) }
	}
	hypervisors := func(f func(*http.Request) (int, []byte)) func(*recorded) {
		return func(o *recorded) { o.reply("/v2.1/os-hypervisors/detail", f) }
	}
	for name, c := range map[string]struct {
		set    func(*recorded)
		access func(*api.OpenStackSpec)
		region string
		reason string
		want   string
	}{
		"wrong password": {
			access: func(s *api.OpenStackSpec) { s.Password = api.NewSecret("wrong") }, reason: api.ReasonUnauthorized,
			want: `logging in at http://127.0.0.1:5000/v3: the user "admin" of the domain "Default" is rejected: correct openstack.password, or the names of the user and of the project`,
		},
		"wrong application credential": {
			access: func(s *api.OpenStackSpec) {
				*s = api.OpenStackSpec{AuthURL: s.AuthURL, ApplicationCredentialID: "abc", ApplicationCredentialSecret: api.NewSecret("wrong"), Timeout: s.Timeout}
			}, reason: api.ReasonUnauthorized,
			want: `logging in at http://127.0.0.1:5000/v3: the application credential "abc" is rejected: correct openstack.application_credential_id or application_credential_secret`,
		},
		"member": {
			set: forbidden("error-403-member-hypervisors"), reason: api.ReasonUnauthorized,
			want: `listing the hypervisors: the user "admin" of the domain "Default" is not allowed to do that: give the user the role admin in the project, or use another user in openstack`,
		},
		"member of the pools": {
			set: func(o *recorded) {
				o.answer("/v3/acc4504980c04948b4bb3a5c5bdffc48/scheduler-stats/get_pools", "error-403-member-pools")
			},
			reason: api.ReasonUnauthorized,
			want:   `listing the storage pools: the user "admin" of the domain "Default" is not allowed to do that: give the user the role admin in the project, or use another user in openstack`,
		},
		"server error": {
			set:  forbidden("error-500-hypervisors-detail-2.88-dead-compute"),
			want: "listing the hypervisors: the response is 500 Internal Server Error",
		},
		"takes no version":         {set: forbidden("error-406-microversion-2.999"), want: "listing the hypervisors: the response is 406 Not Acceptable"},
		"garbage":                  {set: hypervisors(says(200, "<html>hello</html>")), want: "listing the hypervisors: the response is not from an OpenStack service"},
		"half an answer":           {set: hypervisors(says(200, `{"hypervisors":[{"id":"1"`)), want: "listing the hypervisors: the response is not from an OpenStack service"},
		"other answer":             {set: hypervisors(says(200, `{"servers":[]}`)), want: `listing the hypervisors: the response has no "hypervisors"`},
		"wrong type":               {set: hypervisors(says(200, `{"hypervisors":{"a":1}}`)), want: "listing the hypervisors: the response is not from an OpenStack service"},
		"endless pages":            {set: hypervisors(endless), want: "listing the hypervisors: the list never ends"},
		"endless answer":           {set: hypervisors(says(200, `{"hypervisors":[`+strings.Repeat(" ", maxAnswer))), want: "listing the hypervisors: the response is too large"},
		"hangs":                    {set: hypervisors(hangs), access: func(s *api.OpenStackSpec) { s.Timeout = "20ms" }, want: "listing the hypervisors: no response in time"},
		"next page elsewhere":      {set: hypervisors(says(200, `{"hypervisors":[{"id":"1"}],"hypervisors_links":[{"rel":"next","href":"http://evil/"}]}`)), want: "listing the hypervisors: the response refers to a host that is not in the catalog"},
		"region that is not there": {region: "Nowhere", want: `the identity service lists no public compute service in the region "Nowhere"; it lists one in RegionOne`},
	} {
		inBubble(t, name, func(t *testing.T) {
			o := newRecorded(t)
			if c.set != nil {
				c.set(o)
			}
			spec := access()
			if c.access != nil {
				c.access(spec)
			}
			err := failureOnce(t, o, spec, cmp.Or(c.region, "RegionOne"))
			if err == nil || err.Error() != c.want {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			f, ok := errors.AsType[*Failure](err)
			if reason := cmp.Or(c.reason, api.ReasonRegionFailed); !ok || f.Reason != reason {
				t.Errorf("got %+v, want the reason %s", f, reason)
			}
			for _, secret := range []string{"right", "wrong"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the message contains the secret: %s", err)
				}
			}
		})
	}
}

// failureOnce collects within the configured timeout.
func failureOnce(t *testing.T, o http.RoundTripper, spec *api.OpenStackSpec, name string) error {
	t.Helper()
	s, err := login(t.Context(), spec, addresspolicy.OnLoopback(), o)
	if err != nil {
		return err
	}
	defer s.close()
	c := &collector{spec: spec, lanes: newLanes(1), figures: newMetrics(), now: time.Now, session: s}
	_, err = c.collect(t.Context(), &region{name: name}, false)
	return err
}

// TestCollectSkipsUnchangedData checks that unchanged facts are not requested again.
func TestCollectSkipsUnchangedData(t *testing.T) {
	o := newRecorded(t)
	s, err := login(t.Context(), access(), addresspolicy.OnLoopback(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := &region{name: "RegionOne", session: s}
	for range 3 {
		if _, err := r.collect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const inventories = "/resource_providers/d4688938-eb0c-44c0-98af-7407c346e43c/inventories"
	want := map[string]int{"/v2.1/os-hypervisors/detail": 3, "/v2.1/os-aggregates": 3, "/resource_providers": 3, inventories: 1, "/v2.1/flavors/detail": 1, "/v3/auth/tokens": 1}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got := o.requests(path); got != want[path] {
			t.Errorf("%s: %d requests, want %d", path, got, want[path])
		}
	}
	// Flavors and volume types are read again from time to time.
	for range sizesEvery {
		if _, err := r.collect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := o.requests("/v2.1/flavors/detail"); n != 2 {
		t.Errorf("%[2]d requests for flavors in %[1]d collections, want 2", 3+sizesEvery, n)
	}
	// A changed resource provider has a new generation.
	c := loadCapture(t, "placement-resource-providers")
	o.reply("/resource_providers", says(200, strings.Replace(string(c.Body), `"generation": 5`, `"generation": 6`, 1)))
	if _, err := r.collect(t.Context()); err != nil || o.requests(inventories) != 2 {
		t.Errorf("error %v, %d requests for a provider that changed, want 2", err, o.requests(inventories))
	}
}

// TestCollectAfterAnUpgrade checks that usage that was not needed before an upgrade is requested when it is needed.
func TestCollectAfterAnUpgrade(t *testing.T) {
	o := newRecorded(t)
	s, err := login(t.Context(), access(), addresspolicy.OnLoopback(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := &region{name: "RegionOne", session: s}
	for range 2 {
		got, err := r.collect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		expectZones(t, got, recordedZones())
		o.answer("/v2.1/os-hypervisors/detail", "nova-hypervisors-detail-2.88")
	}
}

// TestDedicatedProcessors covers hosts with shared CPUs, dedicated ones, or both.
func TestDedicatedProcessors(t *testing.T) {
	const host = "/resource_providers/d4688938-eb0c-44c0-98af-7407c346e43c/"
	for name, set := range map[string]func(*recorded){
		"Nova has the amounts": func(*recorded) {},
		"Placement alone":      func(o *recorded) { o.newest = true },
	} {
		t.Run(name, func(t *testing.T) {
			o := newRecorded(t)
			set(o)
			o.reply(host+"inventories", says(200, `{"inventories":{"VCPU":{"total":32,"reserved":2,"allocation_ratio":4.0},"PCPU":{"total":32,"reserved":0,"allocation_ratio":1.0},"MEMORY_MB":{"total":262144,"reserved":512,"allocation_ratio":1.0}}}`))
			o.reply(host+"usages", says(200, `{"usages":{"VCPU":2,"PCPU":4,"MEMORY_MB":16384}}`))
			got, err := collectOnce(t, o, access())
			if err != nil {
				t.Fatal(err)
			}
			// The other host of the zone has 64 with ratio 4, of which 5 are in use. This one uses 6, and Nova also
			// counts the 2 that are reserved.
			if cpu := figuresOf(got.Zone("az-a"))["cpu"]; cpu != "128 408 11 397" {
				t.Errorf("got %s", cpu)
			}
		})
	}
}

// TestFloatingIPs checks that IPv6 addresses and those of internal networks are not floating IPs.
func TestFloatingIPs(t *testing.T) {
	o := newRecorded(t)
	o.reply("/v2.0/network-ip-availabilities", says(200, `{"network_ip_availabilities":[
		{"network_id":"8bdd917b-4ac9-4567-85f4-a2d66f1f17e0","subnet_ip_availability":[{"ip_version":4,"total_ips":10,"used_ips":3},{"ip_version":4,"total_ips":5,"used_ips":5},{"ip_version":6,"total_ips":18446744073709551614,"used_ips":7}]},
		{"network_id":"other","subnet_ip_availability":[{"ip_version":4,"total_ips":100,"used_ips":1}]}]}`))
	got, err := collectOnce(t, o, access())
	if err != nil {
		t.Fatal(err)
	}
	if f := figuresOf(got.Zone("az-b"))["floating_ips"]; f != "15 15 8 7" {
		t.Errorf("got %s", f)
	}
	o.reply("/v2.0/network-ip-availabilities", says(404, `{}`))
	if got, err = collectOnce(t, o, access()); err != nil || figuresOf(got.Zone("az-b"))["floating_ips"] != "" {
		t.Errorf("without the extension: got %v, %v", got, err)
	}
}

// TestOpenStackWithFewServices checks that an OpenStack without storage and networks still has hosts, and that missing services do
// not count as 0.
func TestOpenStackWithFewServices(t *testing.T) {
	for service, lacks := range map[string]string{"volumev3": "storage/ssd", "network": "floating_ips"} {
		o := newRecorded(t)
		o.without = service
		got, err := collectOnce(t, o, access())
		if err != nil {
			t.Fatal(err)
		}
		want := recordedZones()
		for _, zone := range want {
			delete(zone, lacks)
			if service == "volumev3" {
				delete(zone, "storage/hdd")
			}
		}
		expectZones(t, got, want)
	}
	// Without Placement, ratios and reserved amounts are unknown.
	o := newRecorded(t)
	o.without = "placement"
	got, err := collectOnce(t, o, access())
	if err != nil {
		t.Fatal(err)
	}
	if f := figuresOf(got.Zone("az-a")); f["cpu"] != "128 128 13 115" || f["memory"] != "524288Mi 524288Mi 27648Mi 496640Mi" {
		t.Errorf("without Placement: got %v", f)
	}
}

// TestEmptyPage checks that an empty page is the last one, even if it links to another.
func TestEmptyPage(t *testing.T) {
	o := newRecorded(t)
	o.reply("/v2.1/os-aggregates", says(200, `{"aggregates":[],"aggregates_links":[{"rel":"next","href":"http://127.0.0.1:8774/v2.1/os-aggregates?marker=1"}]}`))
	if _, err := collectOnce(t, o, access()); err != nil || o.requests("/v2.1/os-aggregates") != 1 {
		t.Errorf("error %v, %d requests, want 1", err, o.requests("/v2.1/os-aggregates"))
	}
}

// TestTokenRunsOut checks that the collection continues with a new token.
func TestTokenRunsOut(t *testing.T) {
	o := newRecorded(t)
	s, err := login(t.Context(), access(), addresspolicy.OnLoopback(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := &region{name: "RegionOne", session: s}
	for range 2 {
		got, err := r.collect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		expectZones(t, got, recordedZones())
		o.expire()
	}
	o.setPassword("another")
	_, err = r.collect(t.Context())
	if f, ok := errors.AsType[*Failure](err); !ok || f.Reason != api.ReasonUnauthorized || !strings.Contains(f.Message, ": correct openstack.password") {
		t.Errorf("got %v", err)
	}
}

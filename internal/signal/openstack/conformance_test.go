package openstack

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// different are the cases that are answered differently on purpose.
var different = map[string]string{
	"A009": "all zones of a cloud are reported, also those that no cluster refers to: they are what a cluster can be put in next; the figures of the one that the case asks for are as it says",
	"A010": "likewise: the hosts are in the default zone, which is reported, and nothing is said of the zone that the case asks for",
}

type conformanceCase struct {
	ID    string          `json:"id"`
	Group string          `json:"grp"`
	In    json.RawMessage `json:"in"`
	Out   json.RawMessage `json:"out"`
}

// TestConformance: the cases about the collector of Arktos' global scheduler.
func TestConformance(t *testing.T) {
	data, err := os.ReadFile("testdata/conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Count int               `json:"count"`
		Cases []conformanceCase `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	groups := map[string]func(*testing.T, conformanceCase){
		"az_aggregate": checkAggregate, "storage": checkStorage, "eip": checkFloatingIPs, "delta": checkDelta, "reachability": checkReachability,
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) { groups[c.Group](t, c) })
	}
	if len(file.Cases) != file.Count || file.Count == 0 {
		t.Errorf("%d cases of %d", len(file.Cases), file.Count)
	}
}

func decodeCase[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func checkAggregate(t *testing.T, c conformanceCase) {
	in := decodeCase[struct {
		Columns    []string `json:"cols"`
		Hosts      [][]any  `json:"hosts"`
		Aggregates [][]any  `json:"aggregates"`
		Registered []string `json:"registered"`
	}](t, c.In)
	var hypervisors []hypervisor
	for _, row := range in.Hosts {
		cell := map[string]any{}
		for i, name := range in.Columns {
			cell[name] = row[i]
		}
		number := func(name string) float64 {
			if n, ok := cell[name].(float64); ok {
				return n
			}
			return 1 // a ratio that is not given
		}
		of := func(total, used, ratio string) amount {
			return amount{total: int64(number(total)), allocatable: int64(number(total) * number(ratio)), used: int64(number(used))}
		}
		up := true
		if state, ok := cell["state"]; ok {
			up = state == "up"
		}
		if status, ok := cell["status"]; ok {
			up = up && status == "enabled"
		}
		hypervisors = append(hypervisors, hypervisor{
			id: cell["hypervisor_hostname"].(string), host: cell["service.host"].(string), up: up,
			cpu: of("vcpus", "vcpus_used", "cpu_ratio"), memory: of("memory_mb", "memory_mb_used", "mem_ratio"),
		})
	}
	var aggregates []aggregate
	for _, row := range in.Aggregates {
		zone, _ := row[1].(string)
		a := aggregate{zone: zone}
		for _, host := range row[2].([]any) {
			a.hosts = append(a.hosts, host.(string))
		}
		aggregates = append(aggregates, a)
	}
	type figures struct {
		TotalCPU       int64 `json:"total_vcpus"`
		AllocatableCPU int64 `json:"allocatable_vcpus"`
		UsedCPU        int64 `json:"used_vcpus"`
		AvailableCPU   int64 `json:"available_vcpus"`
		TotalMem       int64 `json:"total_mem"`
		AllocatableMem int64 `json:"allocatable_mem"`
		UsedMem        int64 `json:"used_mem"`
		AvailableMem   int64 `json:"available_mem"`
	}
	want := map[string]figures{}
	for zone, raw := range decodeCase[map[string]json.RawMessage](t, c.Out) {
		if zone != "push" && string(raw) != `"unknown"` {
			want[zone] = decodeCase[figures](t, raw)
		}
	}
	zones := map[string]api.CloudZone{}
	for _, zone := range compute(hypervisors, aggregates) {
		zones[zone.Name] = zone
	}
	names := slices.Sorted(maps.Keys(zones))
	if reason := different[c.ID]; (reason == "") != slices.Equal(names, slices.Sorted(maps.Keys(want))) {
		t.Errorf("zones %v, want those of %v (%s)", names, want, reason)
	}
	for name, f := range want {
		z := zones[name]
		mib := func(n int64) api.Quantity { return quantity(n, "Mi") }
		for field, pair := range map[string][2]api.Quantity{
			"total cpu": {z.Capacity["cpu"], quantity(f.TotalCPU, "")}, "allocatable cpu": {z.Allocatable["cpu"], quantity(f.AllocatableCPU, "")},
			"used cpu": {z.Allocated["cpu"], quantity(f.UsedCPU, "")}, "available cpu": {z.Available["cpu"], quantity(f.AvailableCPU, "")},
			"total memory": {z.Capacity["memory"], mib(f.TotalMem)}, "allocatable memory": {z.Allocatable["memory"], mib(f.AllocatableMem)},
			"used memory": {z.Allocated["memory"], mib(f.UsedMem)}, "available memory": {z.Available["memory"], mib(f.AvailableMem)},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s is %s, want %s", name, field, pair[0], pair[1])
			}
		}
	}
}

func checkStorage(t *testing.T, c conformanceCase) {
	in := decodeCase[struct {
		Pools []struct {
			Backend     string `json:"backend"`
			Total       size   `json:"total"`
			Free        size   `json:"free"`
			Provisioned size   `json:"provisioned"`
		} `json:"pools"`
		Types []struct {
			Name    string `json:"name"`
			Backend string `json:"volume_backend_name"`
		} `json:"volume_types"`
		Ratio float64 `json:"max_over_subscription_ratio"`
	}](t, c.In)
	var pools []pool
	for _, p := range in.Pools {
		pools = append(pools, pool{backend: p.Backend, total: p.Total, free: p.Free, provisioned: p.Provisioned, ratio: in.Ratio, thin: in.Ratio > 0})
	}
	var types []api.CloudVolumeType
	for _, v := range in.Types {
		types = append(types, api.CloudVolumeType{Name: v.Name, Backend: v.Backend})
	}
	zones := []api.CloudZone{{Capacity: api.Quantities{}, Allocatable: api.Quantities{}, Allocated: api.Quantities{}, Available: api.Quantities{}}}
	regional(zones, storage(pools, types), nil)
	want := decodeCase[map[string]json.RawMessage](t, c.Out)
	for name, raw := range want {
		available, total := zones[0].Available["storage/"+name], zones[0].Capacity["storage/"+name]
		if string(raw) == `"unlimited"` {
			if available != "8Pi" || total != "8Pi" {
				t.Errorf("%s: %s of %s, want 8Pi", name, available, total)
			}
			continue
		}
		figures := decodeCase[struct{ Total, Available int64 }](t, raw)
		if available != quantity(figures.Available, "Gi") || figures.Total != 0 && total != quantity(figures.Total, "Gi") {
			t.Errorf("%s: %s of %s, want %+v", name, available, total, figures)
		}
	}
	if len(zones[0].Available) != len(want) {
		t.Errorf("got %v, want %s", zones[0].Available, c.Out)
	}
}

func checkFloatingIPs(t *testing.T, c conformanceCase) {
	in := decodeCase[struct {
		Availability struct {
			Total int64 `json:"total_ips"`
			Used  int64 `json:"used_ips"`
		} `json:"network_ip_availability"`
	}](t, c.In)
	sum := floatingIPs([][]addresses{{{version: 4, total: in.Availability.Total, used: in.Availability.Used}}})
	zones := []api.CloudZone{{Capacity: api.Quantities{}, Allocatable: api.Quantities{}, Allocated: api.Quantities{}, Available: api.Quantities{}}}
	regional(zones, nil, &sum)
	want := decodeCase[struct{ Available int64 }](t, c.Out)
	if got := zones[0].Available[api.ResourceFloatingIPs]; got != quantity(want.Available, "") {
		t.Errorf("got %s, want %d", got, want.Available)
	}
}

func checkDelta(t *testing.T, c conformanceCase) {
	in := decodeCase[struct {
		Cache    map[string][2]int64 `json:"cache"`
		Poll     map[string][2]int64 `json:"poll"`
		Interval string              `json:"query_interval"`
	}](t, c.In)
	if in.Interval != "" {
		spec := &api.Cloud{Spec: api.CloudSpec{OpenStack: &api.OpenStackSpec{AuthURL: keystoneURL}}}
		spec.SetDefaults()
		want := decodeCase[struct {
			Seconds float64 `json:"query_interval_s"`
		}](t, c.Out)
		if got := spec.Spec.OpenStack.Interval.Or(0).Seconds(); got != want.Seconds {
			t.Errorf("the interval is %vs, want %vs", got, want.Seconds)
		}
		return
	}
	of := func(figures map[string][2]int64) *api.CloudRegion {
		r := &api.CloudRegion{Name: "r"}
		for _, name := range slices.Sorted(maps.Keys(figures)) {
			r.Zones = append(r.Zones, api.CloudZone{Name: name, Available: api.Quantities{"cpu": quantity(figures[name][0], ""), "memory": quantity(figures[name][1], "Mi")}})
		}
		return r
	}
	from := of(in.Cache)
	if len(in.Cache) > 0 {
		from.ObservedAt = &epoch
	}
	report := difference(from, of(in.Poll))
	want := decodeCase[struct {
		Push map[string][2]int64 `json:"push"`
	}](t, c.Out)
	if want.Push == nil {
		if report != nil {
			t.Errorf("pushed %+v, want nothing", report)
		}
		return
	}
	if got := fmt.Sprint(report.Zones); got != fmt.Sprint(of(want.Push).Zones) {
		t.Errorf("pushed %s, want %v", got, want.Push)
	}
}

func checkReachability(t *testing.T, c conformanceCase) {
	in := decodeCase[struct {
		Failures int `json:"consecutive_failures"`
	}](t, c.In)
	out := decodeCase[struct {
		State string `json:"cluster_state"`
	}](t, c.Out)
	s := api.CloudStatus{}
	for range in.Failures {
		s = apply(s, api.CloudReport{Regions: []api.CloudRegionReport{{Name: "r", Error: "no answer in time"}}}, epoch)
	}
	if got := s.Region("r").Unreachable(); got != strings.HasPrefix(out.State, "unreachable") {
		t.Errorf("unreachable after %d failures: %t, want %s", in.Failures, got, out.State)
	}
}

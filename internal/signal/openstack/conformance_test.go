package openstack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// TestConformance runs the cases about the collector of Arktos's global scheduler.
func TestConformance(t *testing.T) {
	const all = "all zones of a cloud are reported, also those that no cluster refers to: they are what a cluster can be put in next"
	suite := conformance.Suite{
		Driver: "internal/signal/openstack",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"az_aggregate": conformance.Player(checkAggregate),
			"storage":      conformance.Player(checkStorage),
			"eip":          conformance.Player(checkFloatingIPs),
			"delta":        conformance.Player(checkDelta),
			"reachability": conformance.Player(checkReachability),
		},
		Differences: map[string]conformance.Difference{
			"A009": {Instead: `{"West-az2":{"total_vcpus":64,"allocatable_vcpus":64,"used_vcpus":0,"total_mem":262144,"allocatable_mem":262144,"used_mem":4096,"available_vcpus":64,"available_mem":258048}}`, Reason: all},
			"A010": {Instead: `{"nova":{"total_vcpus":128,"allocatable_vcpus":128,"used_vcpus":24,"total_mem":524288,"allocatable_mem":524288,"used_mem":102400,"available_vcpus":104,"available_mem":421888},"push":true}`, Reason: all + "; nothing is said of the zone that the case asks for"},
		},
		Loose: map[string]string{
			"A022/ceph/total +without it": "some cases tell no total",
		},
	}
	suite.Run(t)
}

type aggregateIn struct {
	Columns    conformance.Field[[]string] `json:"cols"`
	Hosts      conformance.Field[[][]any]  `json:"hosts"`
	Aggregates conformance.Field[[][]any]  `json:"aggregates"`
	Registered conformance.Field[[]string] `json:"registered"`
}

// zoneFiguresOf returns the amounts of an observed zone.
func zoneFiguresOf(t *conformance.T, z api.CloudZone) map[string]int64 {
	t.Helper()
	number := func(q api.Quantity, unit string) int64 {
		n, err := strconv.ParseInt(strings.TrimSuffix(string(q), unit), 10, 64)
		if err != nil || string(quantity(n, unit)) != string(q) {
			t.Errorf("%s: %q is not a number of %q", z.Name, q, unit)
		}
		return n
	}
	return map[string]int64{
		"total_vcpus": number(z.Capacity["cpu"], ""), "allocatable_vcpus": number(z.Allocatable["cpu"], ""),
		"used_vcpus": number(z.Allocated["cpu"], ""), "available_vcpus": number(z.Available["cpu"], ""),
		"total_mem": number(z.Capacity["memory"], "Mi"), "allocatable_mem": number(z.Allocatable["memory"], "Mi"),
		"used_mem": number(z.Allocated["memory"], "Mi"), "available_mem": number(z.Available["memory"], "Mi"),
	}
}

func checkAggregate(t *conformance.T, in *aggregateIn, out *map[string]json.RawMessage) {
	var hypervisors []hypervisor
	for _, row := range in.Hosts.Get() {
		cell := map[string]any{}
		for i, name := range in.Columns.Get() {
			cell[name] = row[i]
		}
		number := func(name string) float64 {
			if n, ok := cell[name].(float64); ok {
				return n
			}
			return 1 // the ratio is not set
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
	for _, row := range in.Aggregates.Get() {
		zone, _ := row[1].(string)
		a := aggregate{zone: zone}
		for _, host := range row[2].([]any) {
			a.hosts = append(a.hosts, host.(string))
		}
		aggregates = append(aggregates, a)
	}
	zones := map[string]api.CloudZone{}
	for _, zone := range compute(hypervisors, aggregates) {
		zones[zone.Name] = zone
	}
	want := map[string]map[string]int64{}
	for zone, raw := range *out {
		switch {
		case zone == "push":
			var push bool
			if err := json.Unmarshal(raw, &push); err != nil || push != (len(zones) > 0) {
				t.Errorf("%d zones reported, want %s", len(zones), raw)
			}
		case string(raw) == `"unknown"`:
			if z, known := zones[zone]; known || !slices.Contains(in.Registered.Get(), zone) {
				t.Errorf("%s: got %+v, want nothing", zone, z)
			}
		default:
			want[zone] = decodeCase[map[string]int64](t, raw)
		}
	}
	got := map[string]map[string]int64{}
	for name, zone := range zones {
		got[name] = zoneFiguresOf(t, zone)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("zones %+v, want %+v", got, want)
	}
	for _, zone := range in.Registered.Get() {
		if _, told := (*out)[zone]; !told {
			t.Errorf("the case does not mention zone %s", zone)
		}
	}
}

type storageIn struct {
	Pools conformance.Field[[]struct {
		Name        conformance.Field[string] `json:"name"`
		Backend     conformance.Field[string] `json:"backend"`
		Total       conformance.Field[size]   `json:"total"`
		Free        conformance.Field[size]   `json:"free"`
		Provisioned conformance.Field[size]   `json:"provisioned"`
	}] `json:"pools"`
	Types conformance.Field[[]struct {
		Name    conformance.Field[string] `json:"name"`
		Backend conformance.Field[string] `json:"volume_backend_name"`
	}] `json:"volume_types"`
	Ratio conformance.Field[float64] `json:"max_over_subscription_ratio"`
}

func checkStorage(t *conformance.T, in *storageIn, out *map[string]json.RawMessage) {
	var pools []pool
	for i, p := range in.Pools.Get() {
		if name := p.Name.Get(); name != "" && !strings.Contains(name, "@"+p.Backend.Get()+"#") {
			t.Errorf("pool %s is not one of backend %s", name, p.Backend.Get())
		}
		ratio := in.Ratio.Get()
		pools = append(pools, pool{backend: p.Backend.Get(), place: strconv.Itoa(i), total: p.Total.Get(), free: p.Free.Get(), provisioned: p.Provisioned.Get(), ratio: ratio, thin: ratio > 0})
	}
	var types []api.CloudVolumeType
	for _, v := range in.Types.Get() {
		types = append(types, api.CloudVolumeType{Name: v.Name.Get(), Backend: v.Backend.Get()})
	}
	zones := []api.CloudZone{{Capacity: api.Quantities{}, Allocatable: api.Quantities{}, Allocated: api.Quantities{}, Available: api.Quantities{}}}
	regional(zones, storage(pools, types), nil)
	for name, raw := range *out {
		available, total := zones[0].Available["storage/"+name], zones[0].Capacity["storage/"+name]
		if string(raw) == `"unlimited"` {
			if available != "8Pi" || total != "8Pi" {
				t.Errorf("%s: got %s of %s, want 8Pi", name, available, total)
			}
			continue
		}
		figures := decodeCase[struct {
			Total     *int64
			Available int64
		}](t, raw)
		if available != quantity(figures.Available, "Gi") || figures.Total != nil && total != quantity(*figures.Total, "Gi") {
			t.Errorf("%s: got %s of %s, want %+v", name, available, total, figures)
		}
	}
	if len(zones[0].Available) != len(*out) {
		t.Errorf("got %v, want %v", zones[0].Available, *out)
	}
}

type addressesIn struct {
	Availability conformance.Field[struct {
		Total conformance.Field[int64] `json:"total_ips"`
		Used  conformance.Field[int64] `json:"used_ips"`
	}] `json:"network_ip_availability"`
}

type addressesOut struct {
	Available int64 `json:"available"`
}

func checkFloatingIPs(t *conformance.T, in *addressesIn, out *addressesOut) {
	of := in.Availability.Get()
	sum := floatingIPs([][]addresses{{{version: 4, total: of.Total.Get(), used: of.Used.Get()}}})
	zones := []api.CloudZone{{Capacity: api.Quantities{}, Allocatable: api.Quantities{}, Allocated: api.Quantities{}, Available: api.Quantities{}}}
	regional(zones, nil, &sum)
	if got := zones[0].Available[api.ResourceFloatingIPs]; got != quantity(out.Available, "") {
		t.Errorf("got %s, want %d", got, out.Available)
	}
}

type deltaIn struct {
	Cache    conformance.Field[map[string]conformance.Pair[int64]] `json:"cache"`
	Poll     conformance.Field[map[string]conformance.Pair[int64]] `json:"poll"`
	Volumes  conformance.Field[bool]                               `json:"volumes_changed"`
	Interval conformance.Field[string]                             `json:"query_interval"`
}

type deltaOut struct {
	Push    json.RawMessage `json:"push"`
	Seconds *float64        `json:"query_interval_s"`
}

func checkDelta(t *conformance.T, in *deltaIn, out *deltaOut) {
	if in.Interval.Has() {
		if in.Interval.Get() != "unset" {
			t.Fatalf("interval %s is not supported", in.Interval.Get())
		}
		spec := &api.Cloud{Spec: api.CloudSpec{OpenStack: &api.OpenStackSpec{AuthURL: keystoneURL}}}
		spec.SetDefaults()
		if got := spec.Spec.OpenStack.Interval.Or(0).Seconds(); out.Seconds == nil || got != *out.Seconds {
			t.Errorf("the interval is %vs, want %v", got, out.Seconds)
		}
		return
	}
	if in.Volumes.Get() {
		t.Fatal("a change of volumes is not supported")
	}
	of := func(figures map[string]conformance.Pair[int64]) *api.CloudRegion {
		r := &api.CloudRegion{Name: "r"}
		for _, name := range slices.Sorted(maps.Keys(figures)) {
			r.Zones = append(r.Zones, api.CloudZone{Name: name, Available: api.Quantities{"cpu": quantity(figures[name][0], ""), "memory": quantity(figures[name][1], "Mi")}})
		}
		return r
	}
	from := of(in.Cache.Get())
	if len(in.Cache.Get()) > 0 {
		from.ObservedAt = &epoch
	}
	report := difference(from, of(in.Poll.Get()))
	if string(out.Push) == "null" || out.Push == nil {
		if report != nil {
			t.Errorf("pushed %+v, want nothing", report)
		}
		return
	}
	want := decodeCase[map[string]conformance.Pair[int64]](t, out.Push)
	if report == nil {
		t.Fatalf("no push, want %v", want)
	}
	if got := fmt.Sprint(report.Zones); got != fmt.Sprint(of(want).Zones) {
		t.Errorf("pushed %s, want %v", got, want)
	}
}

type reachabilityIn struct {
	Failures  conformance.Field[int] `json:"consecutive_failures"`
	Threshold conformance.Field[int] `json:"MaxUnreachableNum"`
}

type reachabilityOut struct {
	State string `json:"cluster_state"`
}

func checkReachability(t *conformance.T, in *reachabilityIn, out *reachabilityOut) {
	if in.Threshold.Get() != unreachableAfter(t) {
		t.Errorf("unreachable after %d failures, want %d", unreachableAfter(t), in.Threshold.Get())
	}
	// 3 is Arktos's code for that state.
	if got := map[bool]string{false: "unchanged", true: "unreachable (3)"}[unreachable(in.Failures.Get())]; got != out.State {
		t.Errorf("after %d failures: got %s, want %s", in.Failures.Get(), got, out.State)
	}
}

// unreachable reports whether a region counts as unreachable after a number of failures.
func unreachable(failures int) bool {
	s := api.CloudStatus{}
	for range failures {
		s = apply(s, api.CloudReport{Regions: []api.CloudRegionReport{{Name: "r", Error: "no response in time"}}}, epoch)
	}
	region := s.Region("r")
	return region != nil && region.Unreachable()
}

// unreachableAfter returns the number of failures after which a region counts as unreachable.
func unreachableAfter(t *conformance.T) int {
	for n := range 100 {
		if unreachable(n) {
			return n
		}
	}
	t.Fatal("the region never becomes unreachable")
	return 0
}

func decodeCase[T any](t *conformance.T, data []byte) T {
	t.Helper()
	var v T
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

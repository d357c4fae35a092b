package openstack

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestZoneOfHost checks that a zone may consist of several aggregates, that a host in several of them counts once, and
// that aggregates without a zone have no effect.
func TestZoneOfHost(t *testing.T) {
	host := func(id, name string) hypervisor {
		return hypervisor{id: id, host: name, up: true, cpu: amount{4, 4, 1}, memory: amount{10, 10, 1}}
	}
	got := compute(
		[]hypervisor{host("1", "a"), host("2", "b"), host("3", "c"), host("4", "d"), host("5", "e1"), host("6", "e1"), host("2", "b")},
		[]aggregate{{"z", []string{"a"}}, {"z", []string{"a", "b"}}, {"", []string{"a", "c"}}, {"empty", nil}, {"y", []string{"d", "e1"}}, {"z", []string{"d"}}},
	)
	want := map[string]map[string]string{
		"z":    {"hosts": "2", "cpu": "8 8 2 6", "memory": "20Mi 20Mi 2Mi 18Mi"},
		"nova": {"hosts": "1", "cpu": "4 4 1 3", "memory": "10Mi 10Mi 1Mi 9Mi"},
		// Nova does not allow d in two zones. e1 runs two compute nodes.
		"y": {"hosts": "2", "cpu": "12 12 3 9", "memory": "30Mi 30Mi 3Mi 27Mi"},
	}
	expectZones(t, &api.CloudRegion{Zones: got}, want)
}

// TestZoneWithoutRunningHosts checks that a zone whose hosts are all down has 0 of everything, unlike a zone that does not
// exist.
func TestZoneWithoutRunningHosts(t *testing.T) {
	got := compute([]hypervisor{{id: "1", host: "a", cpu: amount{4, 4, 1}, memory: amount{10, 10, 1}}}, []aggregate{{"z", []string{"a"}}})
	expectZones(t, &api.CloudRegion{Zones: got}, map[string]map[string]string{"z": {"hosts": "0", "cpu": "0 0 0 0", "memory": "0 0 0 0"}})
}

// TestOvercommittedHostReducesItsZone checks that overcommitted resources of a host reduce the sum of its zone.
func TestOvercommittedHostReducesItsZone(t *testing.T) {
	got := compute([]hypervisor{
		{id: "1", host: "a", up: true, cpu: amount{4, 4, 10}, memory: amount{10, 10, 10}},
		{id: "2", host: "b", up: true, cpu: amount{8, 8, 0}, memory: amount{10, 10, 0}},
	}, nil)
	expectZones(t, &api.CloudRegion{Zones: got}, map[string]map[string]string{"nova": {"hosts": "2", "cpu": "12 12 10 2", "memory": "20Mi 20Mi 10Mi 10Mi"}})
}

// TestZonesAddUp checks that, for any aggregates and any order of responses, the zones together have the resources of
// all hosts that are up.
func TestZonesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 10).Draw(t, "hosts")
		var hypervisors []hypervisor
		var cpu, memory amount
		for i, host := range hosts {
			n := rapid.Int64Range(0, 1000)
			h := hypervisor{
				id: fmt.Sprint(i), host: host, up: rapid.Bool().Draw(t, "up"),
				cpu:    amount{n.Draw(t, "cpu"), n.Draw(t, "cpu"), n.Draw(t, "cpu")},
				memory: amount{n.Draw(t, "memory"), n.Draw(t, "memory"), n.Draw(t, "memory")},
			}
			if h.up {
				cpu = cpu.plus(h.cpu)
				memory = memory.plus(h.memory)
			}
			hypervisors = append(hypervisors, h)
		}
		var aggregates []aggregate
		for range rapid.IntRange(0, 4).Draw(t, "aggregates") {
			aggregates = append(aggregates, aggregate{
				zone:  rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "zone"),
				hosts: rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "e"})).Draw(t, "members"),
			})
		}
		zones := compute(hypervisors, aggregates)
		var sum, sumMemory amount
		for i := range zones {
			sum = sum.plus(read(t, &zones[i], "cpu", 1))
			sumMemory = sumMemory.plus(read(t, &zones[i], "memory", 1<<20))
		}
		if sum != cpu || sumMemory != memory {
			t.Fatalf("the zones have %+v and %+v in total, the hosts %+v and %+v", sum, sumMemory, cpu, memory)
		}
		r := rand.New(rand.NewPCG(1, uint64(len(hosts))))
		r.Shuffle(len(hypervisors), func(i, j int) { hypervisors[i], hypervisors[j] = hypervisors[j], hypervisors[i] })
		r.Shuffle(len(aggregates), func(i, j int) { aggregates[i], aggregates[j] = aggregates[j], aggregates[i] })
		if again := compute(hypervisors, aggregates); !reflect.DeepEqual(zones, again) {
			t.Fatalf("with the hosts in another order:\n%+v\nwant\n%+v", again, zones)
		}
	})
}

// read returns an amount of a zone. What is available follows from it.
func read(t *rapid.T, zone *api.CloudZone, resource string, unit int64) amount {
	value := func(q api.Quantity) int64 {
		milli, err := q.Milli()
		if err != nil {
			t.Fatal(err)
		}
		return milli.Units() / unit
	}
	a := amount{total: value(zone.Capacity[resource]), allocatable: value(zone.Allocatable[resource]), used: value(zone.Allocated[resource])}
	if got, want := value(zone.Available[resource]), max(a.allocatable-a.used, 0); got != want {
		t.Fatalf("%s of %s: %d available, want %d", resource, zone.Name, got, want)
	}
	return a
}

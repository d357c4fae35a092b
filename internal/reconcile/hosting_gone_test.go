package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// westWith returns a cloud whose region west has been observed with a zone.
func westWith(zone string) *api.Cloud {
	paris := cloud("paris", "", nil)
	at := epoch.Add(-time.Minute)
	paris.Status.Regions = []api.CloudRegion{{Name: "west", ObservedAt: &at, Zones: []api.CloudZone{{
		Name: zone, Hosts: 1, ObservedAt: &at,
		Capacity:    api.Quantities{"cpu": "8", "memory": "16Gi"},
		Allocatable: api.Quantities{"cpu": "8", "memory": "16Gi"}, Allocated: api.Quantities{"cpu": "0", "memory": "0"},
	}}}}
	return paris
}

func standingFor(name, region, zone string) *api.Cluster {
	c := cluster(name, nil)
	c.Spec.OpenStack = &api.ClusterOpenStack{Cloud: "paris", Region: region, AvailabilityZone: zone}
	return c
}

// asking returns a workload with a number of replicas and their requests.
func asking(name string, replicas int64, requests api.Quantities) *api.Workload {
	return workload(name, replicas, func(w *api.Workload) { w.Spec.ReplicaRequests = requests })
}

// TestMissingCloudAmountsAreZero checks a cluster that represents a zone or region which its observed cloud does not
// have: its capacity is 0, and its condition says why. The capacity of something that was never observed is unknown.
func TestMissingCloudAmountsAreZero(t *testing.T) {
	at := epoch
	failing := []api.CloudRegion{{Name: "west", Failures: 1, FailingSince: &at, Reason: api.ReasonRegionFailed, Message: "no answer"}}
	empty := []api.Condition{{Type: api.ConditionCollected, Status: api.ConditionTrue, Reason: api.ReasonCollected}}
	for name, c := range map[string]struct {
		regions       []api.CloudRegion
		conditions    []api.Condition
		noCloud       bool
		before        *api.ClusterOpenStack // the zone that was observed
		reason, words string                // "" = nobody knows
	}{
		"zone gone":         {regions: westWith("az2").Status.Regions, reason: "ZoneGone", words: `region "west" of cloud "paris" has no availability zone "az1"`},
		"region gone":       {regions: []api.CloudRegion{{Name: "east", ObservedAt: &at}}, reason: "RegionGone", words: `cloud "paris" has no region "west"`},
		"no zone any more":  {regions: []api.CloudRegion{{Name: "west", ObservedAt: &at}}, reason: "ZoneGone", words: `has no availability zone "az1"`},
		"no region at all":  {conditions: empty, reason: "RegionGone", words: `cloud "paris" has no region "west"`},
		"never observed":    {},
		"never answered":    {regions: failing},
		"not collected yet": {regions: []api.CloudRegion{{Name: "east", ObservedAt: &at}, {Name: "west", Reason: "Pending", Message: "not collected yet"}}},
		"no cloud":          {noCloud: true},
		"cloud deleted": {
			noCloud: true, before: &api.ClusterOpenStack{Cloud: "paris", Region: "west", AvailabilityZone: "az1"},
			reason: "CloudGone", words: `there is no longer a cloud "paris"`,
		},
		"cloud created again": {
			before: &api.ClusterOpenStack{Cloud: "paris", Region: "west", AvailabilityZone: "az1"},
			reason: "NotObserved", words: `cloud "paris" has not been collected`,
		},
		"another zone before": {before: &api.ClusterOpenStack{Cloud: "paris", Region: "west", AvailabilityZone: "az0"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			if !c.noCloud {
				paris := cloud("paris", "", nil)
				paris.Status.Regions, paris.Status.Conditions = c.regions, c.conditions
				w.write(p, paris)
			}
			site := standingFor("site", "west", "az1")
			site.Status.ObservedZone = c.before
			site.Spec.Flavors = []api.ClusterFlavor{{Name: "m1", Count: new(int64(7))}}
			w.write(p, site)
			large := asking("large", 2, api.Quantities{"cpu": "1000"})
			small := asking("small", 1, nil)
			w.write(p, large)
			w.write(p, small)
			w.write(p, policy("all", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
			w.stored(p, p.pass(epoch))
			placed := func(o *api.Workload) int { return len(p.bindings.workloads[api.KeyOf(o)].status.Clusters) }
			seen, _ := p.snapshot(nil).observe(w.objects[api.KeyOf(site)]).(*api.Cluster)
			condition := api.FindCondition(seen.Status.Conditions, "ResourcesGone")
			if c.reason == "" {
				if placed(large) != 1 || placed(small) != 1 || condition != nil || seen.Status.Allocatable != nil || seen.Status.Flavors["m1"] != 7 {
					t.Errorf("large on %d clusters, small on %d, status %+v; want both placed, because the capacity is unknown", placed(large), placed(small), seen.Status)
				}
				return
			}
			if placed(large) != 0 || placed(small) != 0 {
				t.Errorf("large on %d clusters, small on %d, want none: the cluster has no resources", placed(large), placed(small))
			}
			if s := seen.Status; s.Allocatable["cpu"] != "0" || s.Available["cpu"] != "0" || s.Available["memory"] != "0" || s.Flavors["m1"] != 0 {
				t.Errorf("status %+v, want no resources", s)
			}
			if condition == nil || condition.Status != api.ConditionTrue || condition.Reason != c.reason || !strings.Contains(condition.Message, c.words) {
				t.Errorf("condition %+v, want %s with %q", condition, c.reason, c.words)
			}
			x := p.bindings.explain(p.bindings.workloads[api.KeyOf(large)], epoch)
			if x == nil || len(x.Candidates) != 1 || !strings.Contains(x.Candidates[0].Reason, c.words) {
				t.Errorf("explanation %+v, want the reason of the condition", x)
			}
		})
	}
}

// TestAZoneThatReturns: what a zone has counts again when it is back, and the
// condition goes.
func TestAZoneThatReturns(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	paris := westWith("az1")
	w.write(p, paris)
	site := standingFor("site", "west", "az1")
	site.Spec.Allocatable = api.Quantities{"nvidia.com/gpu": "4"} // no zone reports it
	w.write(p, site)
	w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "2", "nvidia.com/gpu": "1"} }))
	step := func(what string, want int, available string, gone bool) {
		t.Helper()
		for range 3 {
			w.stored(p, p.pass(epoch))
		}
		chosen := p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}].status.Clusters
		seen, _ := p.snapshot(nil).observe(w.objects[api.KeyOf(site)]).(*api.Cluster)
		if has := api.FindCondition(seen.Status.Conditions, "ResourcesGone") != nil; len(chosen) != want || seen.Status.Available["cpu"] != api.Quantity(available) || has != gone {
			t.Fatalf("%s: on %v, available %v, conditions %+v", what, chosen, seen.Status.Available, seen.Status.Conditions)
		}
	}
	step("there", 1, "6", false)
	other := westWith("az2")
	other.Metadata.UID = paris.Metadata.UID
	p.put(other, w.specs[api.KeyOf(paris)])
	step("zone gone", 0, "0", true)
	p.put(paris, w.specs[api.KeyOf(paris)])
	step("zone back", 1, "6", false)
	p.remove(api.KeyOf(paris))
	step("cloud deleted", 0, "0", true)
	anew := cloud("paris", "", nil)
	anew.Metadata.UID = "another"
	p.put(anew, 1)
	step("made anew, nothing collected yet", 0, "0", true)
	again := westWith("az1")
	again.Metadata.UID = "another"
	p.put(again, 1)
	step("collected", 1, "6", false)
}

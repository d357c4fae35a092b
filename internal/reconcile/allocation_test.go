package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// machines are the flavors of generated clusters: their size, and whether their number is declared as well.
var machines = []api.ClusterFlavor{
	{Name: "small", VCPUs: 1, Memory: "1Gi"},
	{Name: "large", VCPUs: 2, Memory: "4Gi", Count: ptr[int64](3)},
	{Name: "special", Count: ptr[int64](2)},
	{Name: "nothing", VCPUs: 0, Memory: "1Gi"},
}

// drawMachines gives a cluster a zone, flavors, and memory in addition to CPU.
func drawMachines(t *rapid.T, c *api.Cluster) {
	if c.Spec.Region != "" {
		c.Spec.Zones = []string{rapid.SampledFrom([]string{"az1", "az2"}).Draw(t, "az")}
	}
	c.Spec.Flavors = rapid.SliceOfNDistinct(rapid.SampledFrom(machines), 0, 3, func(f api.ClusterFlavor) string { return f.Name }).Draw(t, "flavors")
	if c.Spec.Allocatable["cpu"] != "" && rapid.IntRange(0, 3).Draw(t, "has memory") > 0 {
		c.Spec.Allocatable["memory"] = api.Quantity(fmt.Sprintf("%dGi", rapid.IntRange(0, 20).Draw(t, "memory")))
	}
}

// drawAllocation turns some workloads with replicas into allocated ones.
func drawAllocation(t *rapid.T, w *api.Workload) {
	if w.Spec.Replicas == nil || rapid.IntRange(0, 2).Draw(t, "by itself") > 0 {
		return
	}
	a := &api.AllocationSpec{
		LocationStrategy:  rapid.SampledFrom([]api.LocationStrategy{api.LocationCentralize, api.LocationDiscrete}).Draw(t, "strategy"),
		RegionStrategy:    rapid.SampledFrom([]api.RegionStrategy{"", "", api.RegionAlone}).Draw(t, "alone"),
		SiteID:            rapid.SampledFrom([]string{"", "", "", "eu--", "us--az1"}).Draw(t, "site"),
		StackAffinity:     rapid.SampledFrom([][]string{nil, {"w1"}, {"w2", "w3"}}).Draw(t, "with"),
		StackAntiAffinity: rapid.SampledFrom([][]string{nil, {"w4"}, {"w1"}}).Draw(t, "apart from"),
	}
	if rapid.IntRange(0, 3).Draw(t, "regions") == 0 {
		a.Regions = []api.AllocationRegion{{Region: "eu", AvailabilityZones: []string{"az1"}}, {Region: "us"}}
	}
	names := []string{"small", "large", "special", "nothing"}
	a.Flavors = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "asks for")
	w.Spec.Allocation = a
}

// checkAllocation checks that an allocated workload has all its replicas, on sites that it selects and with flavors
// that they have, or else a reason.
func checkAllocation(t checker, p *planner, w *workloadBinding) {
	a := w.object.Spec.Allocation
	if a == nil {
		return
	}
	if w.policy != nil || w.status.Policy != "" {
		t.Fatalf("%s has its own allocation, but follows %q", w.key(), w.status.Policy)
	}
	sum, regions := int64(0), map[string]bool{}
	for _, c := range w.status.Clusters {
		row, ok := p.fleet.Row(c.Name)
		if !ok {
			t.Fatalf("%s is on %s, which does not exist", w.key(), c.Name)
		}
		site := p.fleet.Cluster(row)
		sum += c.Replicas
		regions[site.Spec.Region] = true
		if w.pending {
			continue
		}
		if site.Spec.Region == "" || strings.HasSuffix(a.SiteID, "--") && site.Spec.Region+"--" != a.SiteID {
			t.Fatalf("%s is on %s in region %q, want site %q", w.key(), c.Name, site.Spec.Region, a.SiteID)
		}
		if len(a.Flavors) > 0 != (c.Flavor != "") || c.Flavor != "" && !slices.Contains(a.Flavors, c.Flavor) {
			t.Fatalf("%s has flavor %q on %s, want one of %q", w.key(), c.Flavor, c.Name, a.Flavors)
		}
	}
	if !w.pending && (sum != *w.object.Spec.Replicas || a.RegionStrategy == api.RegionAlone && len(regions) > 1) {
		t.Fatalf("%s is scheduled with %d of %d replicas in regions %v", w.key(), sum, *w.object.Spec.Replicas, regions)
	}
}

// promised adds up the replicas of workloads by cluster and resource.
func promised(p *planner, has func(*workloadBinding) []api.WorkloadCluster) map[string]map[string]int64 {
	promised := map[string]map[string]int64{}
	for _, w := range p.bindings.workloads {
		for _, c := range has(w) {
			needed := promised[c.Name]
			if needed == nil {
				needed = map[string]int64{}
				promised[c.Name] = needed
			}
			for resource, amount := range w.object.Spec.ReplicaRequests {
				milli, _ := amount.Milli()
				needed[resource] += c.Replicas * int64(milli.Float())
			}
			row, ok := p.fleet.Row(c.Name)
			if !ok {
				continue
			}
			cluster := p.fleet.Cluster(row)
			i := slices.IndexFunc(cluster.Spec.Flavors, func(f api.ClusterFlavor) bool { return f.Name == c.Flavor })
			if i < 0 {
				continue
			}
			f := cluster.Spec.Flavors[i]
			sized := f.VCPUs > 0 && cluster.Spec.Allocatable["cpu"] != "" && cluster.Spec.Allocatable["memory"] != ""
			switch {
			case sized || f.Count == nil:
				milli, _ := f.Memory.Milli()
				needed["cpu"] += c.Replicas * f.VCPUs * 1000
				needed["memory"] += c.Replicas * int64(milli.Float())
			default:
				needed["number of "+f.Name] += c.Replicas * 1000
			}
		}
	}
	return promised
}

// checkPromised checks that no more is promised than exists.
func checkPromised(t checker, p *planner) {
	has := func(w *workloadBinding) []api.WorkloadCluster {
		if w.pending || w.p == nil {
			return nil // running replicas stay, even if they have grown beyond the capacity
		}
		return w.status.Clusters
	}
	for name, amounts := range promised(p, has) {
		row, _ := p.fleet.Row(name)
		if resource, milli, has := lacking(p.fleet.Cluster(row), nil, amounts); resource != "" {
			t.Fatalf("%s has %d of %s, but %d are reserved", name, has, resource, milli)
		}
	}
}

// lacking returns a resource of which a cluster has less than is needed in addition to what is used.
func lacking(c *api.Cluster, used api.Quantities, needed map[string]int64) (resource string, milli, has int64) {
	for resource, milli := range needed {
		all, _ := c.Spec.Allocatable[resource].Milli()
		has := int64(all.Float())
		if used, err := used[resource].Milli(); err == nil {
			has -= int64(used.Float())
		}
		if flavor, counted := strings.CutPrefix(resource, "number of "); counted {
			i := slices.IndexFunc(c.Spec.Flavors, func(f api.ClusterFlavor) bool { return f.Name == flavor })
			has = 1000 * *c.Spec.Flavors[i].Count
		} else if len(c.Spec.Allocatable) == 0 {
			continue // the amount is unknown
		}
		if milli > has {
			return resource, milli, has
		}
	}
	return "", 0, 0
}

// site returns a cluster in a region and a zone.
func site(name, region, zone string, change ...func(*api.ClusterSpec)) *api.Cluster {
	c := cluster(name, nil)
	c.Spec.Region, c.Spec.Zones = region, []string{zone}
	for _, f := range change {
		f(&c.Spec)
	}
	return c
}

func holds(cpu, memory string) func(*api.ClusterSpec) {
	return func(s *api.ClusterSpec) {
		s.Allocatable = api.Quantities{"cpu": api.Quantity(cpu), "memory": api.Quantity(memory)}
	}
}

func flavors(list ...api.ClusterFlavor) func(*api.ClusterSpec) {
	return func(s *api.ClusterSpec) { s.Flavors = list }
}

func number(name string, n int64) api.ClusterFlavor { return api.ClusterFlavor{Name: name, Count: &n} }

func allocate(name string, replicas int64, change ...func(*api.AllocationSpec)) *api.Workload {
	return workload(name, replicas, func(w *api.Workload) {
		w.Spec.APIVersion, w.Spec.Kind = "v1", "Pod"
		w.Spec.Allocation = &api.AllocationSpec{}
		for _, f := range change {
			f(w.Spec.Allocation)
		}
	})
}

func asks(names ...string) func(*api.AllocationSpec) {
	return func(a *api.AllocationSpec) { a.Flavors = names }
}

func centralize(a *api.AllocationSpec) { a.LocationStrategy = api.LocationCentralize }

// machinesOf returns the replicas and flavors of a workload: "2 small on a".
func machinesOf(p *planner, name string) string {
	w := p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: name}]
	var out []string
	for _, c := range w.status.Clusters {
		out = append(out, strings.Join(strings.Fields(fmt.Sprintf("%d %s on %s", c.Replicas, c.Flavor, c.Name)), " "))
	}
	if c := api.FindCondition(w.status.Conditions, api.ConditionScheduled); c.Status != api.ConditionTrue {
		out = append(out, c.Reason+": "+c.Message)
	}
	return strings.Join(out, ", ")
}

// TestAllocations changes the fleet around allocated workloads. After each event, all decisions are made again from
// scratch and compared.
func TestAllocations(t *testing.T) {
	small, large := machines[0], api.ClusterFlavor{Name: "large", VCPUs: 2, Memory: "4Gi"}
	type events []any // objects to write, keys to remove
	west := func(name string, change ...func(*api.ClusterSpec)) *api.Cluster {
		return site(name, "West", "az1", change...)
	}
	lost := func(c *api.Cluster) *api.Cluster { lose(c, epoch); return c }
	gone := func(name string) api.Key { return api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: name} }
	reported := func(c *api.Cluster, after time.Duration) *api.Cluster {
		at := epoch.Add(after)
		c.Status.CapacityReportedAt = &at
		return c
	}
	for _, tt := range []struct {
		name  string
		steps []events
		want  []string // of workload web, after each step
	}{
		{"the first flavor that a site has with enough room", []events{
			{west("a", holds("8", "4Gi"), flavors(large, small)), west("b", holds("8", "2Gi"), flavors(small, large)), allocate("web", 3, asks("large", "small"))},
		}, []string{"1 large on a, 2 small on b"}},
		{"a later flavor with room for all, if the first has room for some", []events{
			{west("a", flavors(number("large", 1), number("small", 2))), allocate("web", 2, centralize, asks("large", "small"))},
		}, []string{"2 small on a"}},
		{"the first flavor on several sites before a later one on a single site", []events{
			{west("a", flavors(number("large", 1), number("small", 2))), west("b", flavors(number("large", 2))), allocate("web", 2, centralize, asks("large", "small"))},
		}, []string{"1 large on a, 1 large on b"}},
		{"the flavors with the most room, if no site has room for all", []events{
			{west("a", flavors(number("large", 1), number("small", 3))), west("b", flavors(number("large", 1))), allocate("web", 4, asks("large", "small"))},
			{west("a", flavors(number("large", 1), number("small", 2), number("tiny", 2))), gone("web"), allocate("web", 4, asks("large", "small", "tiny"))},
		}, []string{"3 small on a, 1 large on b", "Unschedulable: has room for 3 of 4 replicas: a 2, b 1"}},
		{"an explicit reschedule to a later flavor, if the first has room for some", []events{
			{west("a", flavors(number("large", 1), number("small", 3))), allocate("web", 1, asks("large", "small"))},
			{func() *api.Workload {
				w := allocate("web", 3, asks("large", "small"))
				w.Metadata.RescheduleRequests = 1
				return w
			}()},
		}, []string{"1 large on a", "3 small on a"}},
		{"more replicas move none that runs, and have its flavor", []events{
			{west("a", flavors(number("small", 2))), allocate("web", 2, asks("large", "small"))},
			{west("a", flavors(number("small", 3), number("large", 9))), west("b", flavors(number("large", 9))), allocate("web", 4, centralize, asks("large", "small"))},
		}, []string{"2 small on a", "2 small on a, 2 large on b"}},
		{"an explicit reschedule chooses the best flavors", []events{
			{west("a", flavors(number("small", 2))), allocate("web", 2, asks("large", "small"))},
			{west("a", flavors(number("small", 3), number("large", 9)))},
			{func() *api.Workload {
				w := allocate("web", 2, asks("large", "small"))
				w.Metadata.RescheduleRequests = 1
				return w
			}()},
		}, []string{"2 small on a", "2 small on a", "2 large on a"}},
		{"a flavor that is no longer requested is replaced in place", []events{
			{west("a", holds("4", "8Gi"), flavors(large, small)), west("b", holds("4", "8Gi"), flavors(large, small)), allocate("web", 2, asks("large"), centralize)},
			{allocate("web", 2, asks("small"), centralize)},
		}, []string{"2 large on a", "2 small on a"}},
		{"a flavor that a site no longer has stays, and gets no more replicas", []events{
			{west("a", flavors(number("small", 4))), allocate("web", 2, asks("small"))},
			{west("a", flavors(number("large", 4)))},
			{allocate("web", 3, asks("small"))},
		}, []string{"2 small on a", "2 small on a",
			"2 small on a, Unschedulable: 2 replicas stay where they are, 3 are wanted; has room for 2 of 3 replicas: a 2"}},
		{"a pending workload is placed when a site appears", []events{
			{allocate("web", 2)},
			{west("a")},
		}, []string{"NoClusterFit: 0 of 0 clusters fit", "2 on a"}},
		{"a pending workload is placed when a cluster becomes a site", []events{
			{cluster("a", nil), allocate("web", 2)},
			{west("a")},
		}, []string{"NoClusterFit: 0 of 1 cluster fit: 1 has no region, which a site needs", "2 on a"}},
		{"nothing is reserved without enough room", []events{
			{west("a", flavors(number("small", 3))), west("b", flavors(number("small", 2))), allocate("big", 6, asks("small")), allocate("web", 5, asks("small"))},
			{gone("web"), allocate("web", 7, asks("small"))},
		}, []string{"3 small on a, 2 small on b", "Unschedulable: has room for 5 of 7 replicas: a 3, b 2"}},
		{"a pending workload is placed when capacity appears", []events{
			{west("a", holds("2", "4Gi"), flavors(large)), allocate("web", 2, asks("large"))},
			{west("a", holds("4", "8Gi"), flavors(large))},
		}, []string{"Unschedulable: has room for 1 of 2 replicas: a 1", "2 large on a"}},
		{"a pending workload is placed when another one is deleted", []events{
			{west("a", flavors(number("small", 3))), allocate("other", 2, asks("small"))},
			{allocate("web", 2, asks("small"))},
			{gone("other")},
		}, []string{"", "Unschedulable: has room for 1 of 2 replicas: a 1", "2 small on a"}},
		{"a workload leaves a lost site", []events{
			{west("a", flavors(number("small", 3))), west("b", flavors(number("small", 3))), allocate("web", 2, asks("small"))},
			{lost(west("b", flavors(number("small", 3))))},
			{west("b", flavors(number("small", 3)))},
		}, []string{"1 small on a, 1 small on b", "2 small on a", "2 small on a"}},
		{"replicas of a lost site stay pending without another site", []events{
			{west("a", flavors(number("small", 1))), west("b", flavors(number("small", 5))), allocate("web", 2, asks("small"))},
			{lost(west("b", flavors(number("small", 5))))},
			{west("b", flavors(number("small", 5)))},
		}, []string{"2 small on b", "Unschedulable: has room for 1 of 2 replicas: a 1", "2 small on b"}},
		{"all replicas in one region, where they stay", []events{
			{site("e", "East", "1", flavors(number("small", 4))), west("a", flavors(number("small", 3))), west("b", flavors(number("small", 3))),
				allocate("web", 3, asks("small"), func(a *api.AllocationSpec) { a.RegionStrategy = api.RegionAlone })},
			{site("e", "East", "1", flavors(number("small", 99))), allocate("web", 6, asks("small"), func(a *api.AllocationSpec) { a.RegionStrategy = api.RegionAlone })},
			{allocate("web", 7, asks("small"), func(a *api.AllocationSpec) { a.RegionStrategy = api.RegionAlone })},
		}, []string{"2 small on a, 1 small on b", "3 small on a, 3 small on b",
			"3 small on a, 3 small on b, Unschedulable: 6 replicas stay where they are, 7 are wanted; has room for 6 of 7 replicas in region West, where it runs: a 3, b 3"}},
		{"affinity to another workload", []events{
			{west("a"), west("b"), allocate("db", 1, func(a *api.AllocationSpec) { a.SiteID = "East--" }), site("c", "East", "az1")},
			{allocate("web", 2, centralize, func(a *api.AllocationSpec) { a.StackAffinity = []string{"db"} })},
			{site("c", "West", "az1"), allocate("db", 1, func(a *api.AllocationSpec) { a.SiteID = "West--" })},
		}, []string{"", "2 on c", "2 on c"}},
		{"anti-affinity to another workload", []events{
			{west("a"), west("b"), allocate("db", 1, centralize)},
			{allocate("web", 2, centralize, func(a *api.AllocationSpec) { a.StackAntiAffinity = []string{"db"} })},
			{gone("db"), allocate("db", 1, func(a *api.AllocationSpec) { a.StackAntiAffinity = []string{"web"} })},
		}, []string{"", "2 on b", "2 on b"}},
		{"a policy that selects everything does not apply", []events{
			{policy("all", func(s *api.PropagationPolicySpec) {
				s.ResourceSelectors[0].APIVersion, s.ResourceSelectors[0].Kind = "v1", "Pod"
			}), west("a"), cluster("b", nil), allocate("web", 2)},
			{workload("web", 2, func(w *api.Workload) { w.Spec.APIVersion, w.Spec.Kind = "v1", "Pod" })},
			{allocate("web", 3)},
		}, []string{"2 on a", "2 on a, 2 on b", "3 on a"}},
		{"a capacity report ends reservations, except for a declared number", []events{
			{west("a", flavors(number("small", 3))), allocate("other", 2, asks("small")), allocate("web", 2, asks("small"))},
			{reported(west("a", flavors(number("small", 3)), func(s *api.ClusterSpec) { s.Allocated = api.Quantities{"storage/ssd": "1"} }), time.Hour)},
			{reported(west("a", flavors(small), holds("4", "8Gi"), func(s *api.ClusterSpec) {
				s.Allocated = api.Quantities{"cpu": "2", "memory": "2Gi"}
			}), 2*time.Hour)},
		}, []string{"Unschedulable: has room for 1 of 2 replicas: a 1", "Unschedulable: has room for 1 of 2 replicas: a 1", "2 small on a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			now := epoch
			for i, step := range tt.steps {
				for _, event := range step {
					switch e := event.(type) {
					case api.Object:
						w.write(p, e)
					case api.Key:
						w.remove(p, e)
						p.pass(now)
					}
				}
				p.pass(now)
				checkBound(t, p, now)
				checkPromised(t, p)
				checkRestart(t, w, p, now)
				if tt.want[i] != "" {
					if got := machinesOf(p, "web"); got != tt.want[i] {
						t.Errorf("step %d: %s\nwant %s", i+1, got, tt.want[i])
					}
				}
				now = now.Add(time.Minute)
			}
		})
	}
}

// checkRestart checks that a planner that starts from the stored decisions has the same reservations.
func checkRestart(t *testing.T, w *world, p *planner, now time.Time) {
	t.Helper()
	again := newPlanner(discard())
	for _, key := range slices.SortedFunc(maps.Keys(w.objects), api.Key.Compare) {
		object := w.objects[key]
		if b, ok := p.bindings.workloads[key]; ok {
			object = b.result()
		}
		again.put(object, w.specs[key])
	}
	again.pass(now)
	for row := range p.fleet.Slots() {
		c := p.fleet.Cluster(row)
		if c == nil {
			continue
		}
		was, is := placement.Observe(p.fleet, p.reserved, c).Status, placement.Observe(again.fleet, again.reserved, c).Status
		if !maps.Equal(was.Flavors, is.Flavors) || !maps.Equal(was.Available, is.Available) {
			t.Errorf("%s has %v and %v left, but after a restart %v and %v", c.Metadata.Name, was.Flavors, was.Available, is.Flavors, is.Available)
		}
	}
}

// TestFlavorCounts checks that the number of machines that fit decreases with each decision, and increases again when
// one ends.
func TestFlavorCounts(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	counts := func(want map[string]int64) {
		t.Helper()
		p.pass(epoch)
		row, _ := p.fleet.Row("a")
		if got := placement.Observe(p.fleet, p.reserved, p.fleet.Cluster(row)).Status.Flavors; !maps.Equal(got, want) {
			t.Errorf("counts %v, want %v", got, want)
		}
	}
	all := flavors(machines...)
	w.write(p, site("a", "West", "az1", all))
	counts(map[string]int64{"large": 3, "special": 2})
	w.write(p, allocate("web", 2, asks("large")))
	counts(map[string]int64{"large": 1, "special": 2})
	w.write(p, site("a", "West", "az1", all, holds("8", "9Gi")))
	counts(map[string]int64{"small": 1, "large": 0, "special": 2})
	w.write(p, allocate("other", 1, asks("special")))
	counts(map[string]int64{"small": 1, "large": 0, "special": 1})
	w.remove(p, api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"})
	counts(map[string]int64{"small": 8, "large": 2, "special": 1})
	w.write(p, site("a", "West", "az1"))
	counts(nil)
}

// TestPreviewOfAnAllocation checks that the preview equals the later decision, and that both have the same explanation.
func TestPreviewOfAnAllocation(t *testing.T) {
	w, p, r := newWorld(), newPlanner(discard()), &Reconciler{published: newPublished(), now: func() time.Time { return epoch }}
	w.write(p, site("a", "West", "az1", flavors(number("small", 2))))
	w.write(p, site("b", "East", "az1", flavors(number("small", 3))))
	p.pass(epoch)
	for _, load := range []*api.Workload{
		allocate("web", 4, asks("small")),
		allocate("more", 2, asks("small")), // there is no more capacity for it
	} {
		load.SetDefaults()
		previewed := *load
		previewed.Metadata.Generation = 1
		r.show(p, newQuarantine(), nil)
		status, x, err := r.PreviewWorkload(t.Context(), &previewed)
		if err != nil {
			t.Fatal(err)
		}
		w.write(p, load)
		p.pass(epoch)
		decided := p.bindings.workloads[api.KeyOf(load)]
		same := func(a, b api.WorkloadCluster) bool {
			return a.Name == b.Name && a.Replicas == b.Replicas && a.Flavor == b.Flavor
		}
		if !slices.EqualFunc(status.Clusters, decided.status.Clusters, same) || !slices.EqualFunc(status.Conditions, decided.status.Conditions, sameCondition) {
			t.Errorf("%s: previewed %+v,\ndecided %+v", load.Metadata.Name, status, decided.status)
		}
		const reason = "it is placed by spec.allocation, not by a policy"
		if y := p.bindings.explain(decided, epoch); x.Summary != y.Summary || x.PolicyReason != reason || y.PolicyReason != reason || x.Policy+y.Policy != "" {
			t.Errorf("%s: previewed %q (%s), explained %q (%s)", load.Metadata.Name, x.Summary, x.PolicyReason, y.Summary, y.PolicyReason)
		}
	}
}

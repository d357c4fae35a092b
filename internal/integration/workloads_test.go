//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

const (
	manyWorkloads   = 20_000
	workloadWriters = 64
	targetClusters  = 1_000
	targetRegions   = 10
	workloadTeams   = 20 // namespaces
	classesOfTeam   = 15 // policies of each
)

func targetName(i int) string      { return fmt.Sprintf("c%04d", i) }
func regionName(i int) string      { return fmt.Sprintf("r%d", i%targetRegions) }
func teamName(i int) string        { return fmt.Sprintf("team-%02d", i%workloadTeams) }
func className(i int) string       { return fmt.Sprintf("class-%02d", i%classesOfTeam) }
func workloadName(i int) string    { return fmt.Sprintf("w%05d", i) }
func classOfWorkload(i int) int    { return i / workloadTeams % classesOfTeam }
func duplicatedClass(c int) bool   { return c >= 11 && c <= 13 }
func aggregatedClass(c int) bool   { return c >= 5 && c <= 7 }
func staticWeightClass(c int) bool { return c >= 8 && c <= 10 }

// target returns a cluster in one of ten regions, with capacity for some hundred replicas. Those in the first region
// have a tenth of that, so that workloads must go elsewhere.
func target(i int) *api.Cluster {
	c := &api.Cluster{
		Metadata: api.Metadata{Name: targetName(i), Labels: map[string]string{"tier": []string{"gold", "silver", "bronze"}[i%3]}},
		Spec: api.ClusterSpec{
			CloudProvider: fmt.Sprintf("p%d", i%3), Region: regionName(i),
			Allocatable: api.Quantities{"cpu": "64", "memory": "96Gi", "pods": "250"},
		},
	}
	if i%targetRegions == 0 {
		c.Spec.Allocatable = api.Quantities{"cpu": "6", "memory": "10Gi", "pods": "25"}
	}
	return c
}

// policyOfClass returns a team's policy for the workloads of one class.
func policyOfClass(team, class int) *api.PropagationPolicy {
	first := team*classesOfTeam + class
	regions := func(of ...int) api.ClusterAffinity {
		r := api.FieldRequirement{Key: api.GroupByRegion, Operator: api.SelectorIn}
		for _, i := range of {
			r.Values = append(r.Values, regionName(first+i))
		}
		return api.ClusterAffinity{FieldSelector: []api.FieldRequirement{r}}
	}
	spread := func(field string, least, most int64) api.GroupConstraint {
		return api.GroupConstraint{SpreadByField: field, MinGroups: &least, MaxGroups: &most}
	}
	p := &api.PropagationPolicy{Metadata: api.Metadata{Namespace: teamName(team), Name: className(class)}}
	p.Spec.ResourceSelectors = []api.ResourceSelector{{
		APIVersion: "apps/v1", Kind: "Deployment",
		LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"class": className(class)}},
	}}
	placement := &p.Spec.Placement
	placement.ClusterAffinities = []api.AffinityTerm{
		{AffinityName: "near", ClusterAffinity: regions(0)},
		{AffinityName: "far", ClusterAffinity: regions(1, 2, 3)},
	}
	division := &api.ReplicaScheduling{Type: api.Divided, DivisionPreference: api.Weighted}
	placement.ReplicaScheduling = division
	switch {
	case duplicatedClass(class):
		placement.ReplicaScheduling = &api.ReplicaScheduling{Type: api.Duplicated}
		placement.ClusterAffinities[0].ClusterAffinity = regions(0, 1)
		placement.SpreadConstraints = []api.GroupConstraint{spread(api.GroupByCluster, 1, 3)}
	case aggregatedClass(class):
		division.DivisionPreference = api.Aggregated
	case staticWeightClass(class):
		division.WeightPreference = &api.WeightPreference{}
		for i, tier := range []string{"gold", "silver", "bronze"} {
			division.WeightPreference.StaticWeights = append(division.WeightPreference.StaticWeights, api.StaticWeight{
				Affinity: api.ClusterAffinity{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"tier": tier}}}, Weight: int64(3 - i),
			})
		}
	default:
		division.WeightPreference = &api.WeightPreference{DynamicWeight: api.DynamicWeightAvailable}
	}
	switch class {
	case 2, 3, 4:
		placement.SpreadConstraints = []api.GroupConstraint{spread(api.GroupByCluster, 2, 5)}
	case 14:
		placement.ClusterAffinities, placement.ClusterAffinity = nil, &api.ClusterAffinity{}
		placement.SpreadConstraints = []api.GroupConstraint{spread(api.GroupByRegion, 2, 3), spread(api.GroupByCluster, 2, 6)}
	}
	return p
}

// workloadOf returns one of many workloads, with some replicas of a quarter of a CPU each.
func workloadOf(i int) *api.Workload {
	class := classOfWorkload(i)
	replicas := int64(2 + i*7%8)
	if duplicatedClass(class) {
		replicas = int64(1 + i%3)
	}
	return &api.Workload{
		Metadata: api.Metadata{Namespace: teamName(i), Name: workloadName(i), Labels: map[string]string{"class": className(class), "app": workloadName(i)}},
		Spec: api.WorkloadSpec{
			APIVersion: "apps/v1", Kind: "Deployment", Replicas: &replicas,
			ReplicaRequests: api.Quantities{"cpu": api.Quantity(fmt.Sprintf("%dm", 100+i%4*100)), "memory": api.Quantity(fmt.Sprintf("%dMi", 128+i%4*128))},
		},
	}
}

// propagated is a fleet with its policies, as the tests know it without asking the server.
type propagated struct {
	clusters map[string]*api.Cluster
	policies map[string]*api.PropagationPolicy
}

func (f *propagated) load(t testing.TB, dir string, change func(c *api.Cluster)) {
	t.Helper()
	f.clusters, f.policies = map[string]*api.Cluster{}, map[string]*api.PropagationPolicy{}
	load := newLoader(t, dir)
	defer load.close()
	for i := range targetClusters {
		c := target(i)
		change(c)
		f.clusters[c.Metadata.Name] = c
		load.write(c, false)
	}
	for team := range workloadTeams {
		for class := range classesOfTeam {
			p := policyOfClass(team, class)
			load.write(p, false)
			f.policies[api.KeyOf(p).Path()] = p
		}
	}
}

// milli returns an amount in thousandths, of which there are few enough for an int64.
func milli(t testing.TB, q api.Quantity) int64 {
	t.Helper()
	v, err := q.Milli()
	if err != nil {
		t.Fatal(err)
	}
	n, ok := v.Small()
	if !ok {
		t.Fatalf("%s is too large for this test", q)
	}
	return n
}

// check checks that every binding satisfies its policy, and that all of them together fit on the clusters.
func (f *propagated) check(t testing.TB, workloads map[string]*api.Workload) {
	t.Helper()
	if len(workloads) != manyWorkloads {
		t.Errorf("%d workloads, want %d", len(workloads), manyWorkloads)
	}
	used := map[string]map[string]int64{}
	groups, wrong := map[string]int{}, 0
	for _, path := range slices.Sorted(maps.Keys(workloads)) {
		w := workloads[path]
		for _, c := range w.Status.Clusters {
			if used[c.Name] == nil {
				used[c.Name] = map[string]int64{}
			}
			used[c.Name]["pods"] += 1000 * c.Replicas
			for name, q := range w.Spec.ReplicaRequests {
				used[c.Name][name] += c.Replicas * milli(t, q)
			}
		}
		groups[w.Status.ObservedAffinity]++
		if problem := f.problem(w); problem != "" {
			if wrong++; wrong <= 5 {
				text, err := json.Marshal(w)
				if err != nil {
					t.Fatal(err)
				}
				t.Errorf("workload %s: %s\n%s", path, problem, text)
			}
		}
	}
	if wrong > 5 {
		t.Errorf("%d workloads are wrong", wrong)
	}
	for name, amounts := range used {
		for resource, amount := range amounts {
			if room := milli(t, f.clusters[name].Spec.Allocatable[resource]); amount > room {
				t.Errorf("cluster %s: %d thousandths of %s in use, but it has %d", name, amount, resource, room)
			}
		}
	}
	t.Logf("workloads by affinity group: %v", groups)
}

// problem returns what is wrong with a binding, or "".
func (f *propagated) problem(w *api.Workload) string {
	s := &w.Status
	if c := api.FindCondition(s.Conditions, api.ConditionScheduled); c == nil || c.Status != api.ConditionTrue {
		return "it is not scheduled"
	}
	policy := f.policies[w.Metadata.Namespace+"/"+w.Metadata.Labels["class"]]
	if want := api.KeyOf(policy).Path(); s.Policy != want {
		return fmt.Sprintf("it follows %q, want %q", s.Policy, want)
	}
	placement := &policy.Spec.Placement
	var affinity *api.ClusterAffinity
	for i := range placement.ClusterAffinities {
		if placement.ClusterAffinities[i].AffinityName == s.ObservedAffinity {
			affinity = &placement.ClusterAffinities[i].ClusterAffinity
		}
	}
	if affinity == nil && len(placement.ClusterAffinities) > 0 {
		return fmt.Sprintf("the policy has no affinity group %q", s.ObservedAffinity)
	}
	sum, regions := int64(0), map[string]bool{}
	for i, c := range s.Clusters {
		cluster := f.clusters[c.Name]
		switch {
		case cluster == nil:
			return fmt.Sprintf("there is no cluster %q", c.Name)
		case i > 0 && s.Clusters[i-1].Name >= c.Name:
			return "its clusters are not in order"
		case c.Replicas < 1:
			return fmt.Sprintf("%s has %d replicas", c.Name, c.Replicas)
		case affinity != nil && !slices.Contains(affinity.FieldSelector[0].Values, cluster.Spec.Region):
			return fmt.Sprintf("%s is in region %s, not one of group %q", c.Name, cluster.Spec.Region, s.ObservedAffinity)
		case placement.ReplicaScheduling.Type == api.Duplicated && c.Replicas != *w.Spec.Replicas:
			return fmt.Sprintf("%s has %d replicas, want all %d", c.Name, c.Replicas, *w.Spec.Replicas)
		}
		sum += c.Replicas
		regions[cluster.Spec.Region] = true
	}
	if placement.ReplicaScheduling.Type == api.Divided && sum != *w.Spec.Replicas {
		return fmt.Sprintf("it has %d replicas, want %d", sum, *w.Spec.Replicas)
	}
	for _, constraint := range placement.SpreadConstraints {
		n := len(s.Clusters)
		if constraint.SpreadByField == api.GroupByRegion {
			n = len(regions)
		}
		if n < int(*constraint.MinGroups) || n > int(*constraint.MaxGroups) {
			return fmt.Sprintf("it is spread over %d of %s, want %d to %d", n, constraint.By(), *constraint.MinGroups, *constraint.MaxGroups)
		}
	}
	return ""
}

// workloads returns all workloads by namespace and name.
func (p *process) workloads() map[string]*api.Workload {
	p.t.Helper()
	out := map[string]*api.Workload{}
	for object, err := range p.client.List(context.Background(), api.KindWorkload, client.ListOptions{}) {
		if err != nil {
			p.t.Fatal(err)
		}
		out[api.KeyOf(object).Path()] = object.(*api.Workload)
	}
	return out
}

// binding returns the part that must not change on its own.
func binding(w *api.Workload) string {
	text, err := json.Marshal([]any{w.Status.Clusters, w.Status.Policy, w.Status.ObservedAffinity, w.Status.DecisionRevision, w.Status.ScheduledAt, w.Status.Evictions})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// moves returns the workloads whose bindings differ.
func moves(before, after map[string]*api.Workload) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if after[path] == nil || binding(before[path]) != binding(after[path]) {
			out = append(out, path)
		}
	}
	return out
}

// TestTwentyThousandWorkloads has 64 clients create 20,000 workloads on a thousand clusters, takes one cluster offline,
// and kills the server. Every workload must be bound as its policy says and within the capacity, the replicas of the
// lost cluster must be elsewhere, and nothing else may move. Time and memory are logged, but not checked. If
// SCHEDULER_TESTBED_DEBUG_LISTEN is an address, the server serves profiles there.
func TestTwentyThousandWorkloads(t *testing.T) {
	probed := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer probed.Close()
	lost := targetName(15) // policies of every kind use it
	dir := t.TempDir()
	fleet := &propagated{}
	fleet.load(t, dir, func(c *api.Cluster) {
		if c.Metadata.Name == lost {
			// Slow enough that the load of the test does not make it look lost.
			c.Spec.Health = &api.HealthSpec{URL: probed.URL, Interval: "1s", FailureThreshold: 10, SuccessThreshold: 1}
		}
	})
	p := startServer(t, dir, debugArgs()...)
	eventually.True(t, "the probed cluster is online", func() bool {
		return get[*api.Cluster](p, api.Key{Kind: api.KindCluster, Name: lost}).Status.State == api.StateOnline
	})
	if !t.Run("create", func(t *testing.T) { createWorkloads(t, p, fleet) }) {
		return
	}
	t.Run("lose a cluster", func(t *testing.T) { loseCluster(t, p, fleet, lost, probed.Close) })
	t.Run("restart", func(t *testing.T) {
		before := p.workloads()
		p.kill()
		began := time.Now()
		p = startServer(t, dir, debugArgs()...)
		took := time.Since(began)
		if moved := moves(before, p.workloads()); len(moved) > 0 {
			t.Errorf("%d workloads differ from before the kill, such as %s", len(moved), moved[0])
		}
		put(p, cluster("later", "none")) // the response waits for the resulting decisions
		if moved := moves(before, p.workloads()); len(moved) > 0 {
			t.Errorf("%d workloads moved after the restart, such as %s", len(moved), moved[0])
		}
		t.Logf("ready after %s; memory %.0f MiB", took.Round(time.Millisecond), p.figure(t, "process_resident_memory_bytes")/(1<<20))
	})
}

func createWorkloads(t *testing.T, p *process, fleet *propagated) {
	cpu, began := p.figure(t, "process_cpu_seconds_total"), time.Now()
	var next, failed, undecided atomic.Int64
	took := make([]time.Duration, manyWorkloads)
	var writing sync.WaitGroup
	for range workloadWriters {
		writing.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= manyWorkloads {
					return
				}
				w := workloadOf(i)
				w.SetDefaults()
				start := time.Now()
				stored, err := p.client.Put(context.Background(), w, client.PutOptions{})
				took[i] = time.Since(start)
				switch {
				case err != nil:
					if failed.Add(1) == 1 {
						t.Errorf("put %s: %v", api.KeyOf(w), err)
					}
				case len(stored.(*api.Workload).Status.Clusters) == 0:
					undecided.Add(1)
				}
			}
		})
	}
	writing.Wait()
	answered := time.Since(began)
	if n := failed.Load(); n > 0 {
		t.Fatalf("%d writes failed", n)
	}
	eventually.True(t, "every workload is bound", func() bool {
		if undecided.Load() == 0 {
			return true
		}
		for _, w := range p.workloads() {
			if w.Status.ObservedGeneration != w.Metadata.Generation {
				return false
			}
		}
		return true
	})
	bound, cpu := time.Since(began), p.figure(t, "process_cpu_seconds_total")-cpu
	fleet.check(t, p.workloads())
	slices.Sort(took)
	t.Logf("%d workloads by %d clients: answered within %.2f s (%.0f/s), %d of the answers before the binding; all bound after %.2f s; an answer took p50 %s, p99 %s, worst %s; server CPU %.2f s; memory %.0f MiB",
		manyWorkloads, workloadWriters, answered.Seconds(), manyWorkloads/answered.Seconds(), undecided.Load(), bound.Seconds(),
		took[manyWorkloads/2].Round(time.Millisecond), took[manyWorkloads*99/100].Round(time.Millisecond), took[manyWorkloads-1].Round(time.Millisecond),
		cpu, p.figure(t, "process_resident_memory_bytes")/(1<<20))
}

// loseCluster takes one cluster offline, and watches how its workloads leave it.
func loseCluster(t *testing.T, p *process, fleet *propagated, lost string, end func()) {
	before := p.workloads()
	on := func(w *api.Workload) bool { return slices.Contains(w.Status.Names(), lost) }
	waiting := map[string]bool{}
	for path, w := range before {
		if on(w) {
			waiting[path] = true
		}
	}
	if len(waiting) == 0 {
		t.Fatalf("no workload is on %s", lost)
	}
	affected := len(waiting)
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	from := p.revision(t)
	ended := time.Now()
	end()
	var seen time.Time
	for event, err := range p.client.Watch(ctx, from, api.KindCluster, api.KindWorkload) {
		if err != nil {
			t.Fatalf("%d of %d workloads are still on the lost cluster (seen as lost: %t): %v", len(waiting), affected, !seen.IsZero(), err)
		}
		switch object := event.Object.(type) {
		case *api.Cluster:
			if object.Metadata.Name == lost && object.Status.State == api.StateOffline && seen.IsZero() {
				seen = time.Now()
			}
		case *api.Workload:
			if !on(object) {
				delete(waiting, api.KeyOf(object).Path())
			}
		}
		if len(waiting) == 0 {
			break
		}
	}
	t.Logf("a lost cluster of %d, with %d of %d workloads: seen as offline after %s, all placed elsewhere %s later",
		targetClusters, affected, manyWorkloads, seen.Sub(ended).Round(time.Millisecond), time.Since(seen).Round(time.Millisecond))

	after := p.workloads()
	fleet.check(t, after)
	for path, w := range after {
		i := slices.IndexFunc(w.Status.Evictions, func(e api.Eviction) bool { return e.Cluster == lost && e.Reason == api.EvictedClusterLost })
		switch was := before[path]; {
		case !on(was) && binding(was) != binding(w):
			t.Errorf("workload %s moved although it was not on the lost cluster: %s -> %s", path, binding(was), binding(w))
		case !on(was):
		case on(w):
			t.Errorf("workload %s is on the lost cluster again", path)
		case i < 0:
			t.Errorf("workload %s has no eviction from %s: %s", path, lost, binding(w))
		default:
			at := slices.Index(was.Status.Names(), lost)
			if had, leaving := was.Status.Clusters[at].Replicas, w.Status.Evictions[i].Replicas; had != leaving {
				t.Errorf("workload %s had %d replicas on %s, but evicts %d", path, had, lost, leaving)
			}
			kept(t, path, lost, was, w)
		}
	}
}

// kept checks that a workload that leaves a lost cluster has at least as many replicas on its others as before.
func kept(t *testing.T, path, lost string, was, is *api.Workload) {
	t.Helper()
	now := map[string]int64{}
	for _, c := range is.Status.Clusters {
		now[c.Name] = c.Replicas
	}
	if was.Status.ObservedAffinity != is.Status.ObservedAffinity {
		return // the group had no capacity for it
	}
	for _, c := range was.Status.Clusters {
		if c.Name != lost && now[c.Name] < c.Replicas {
			t.Errorf("workload %s had %d replicas on %s, which is healthy, but has %d", path, c.Replicas, c.Name, now[c.Name])
		}
	}
}

// revision returns the latest revision.
func (p *process) revision(t testing.TB) string {
	t.Helper()
	return put(p, cluster("marks-the-revision", "none")).Metadata.ResourceVersion
}

// debugArgs returns the arguments for serving profiles where the developer wants them.
func debugArgs() []string {
	args := []string{"--log-level", "error"}
	if address := os.Getenv("SCHEDULER_TESTBED_DEBUG_LISTEN"); address != "" {
		args = append(args, "--debug-listen", address)
	}
	return args
}

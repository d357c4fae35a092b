package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// TestBindingsHoldInvariants drives a planner with random changes to clusters, policies, workloads and their health,
// and advances the clock to each time at which something is due. Every binding must satisfy its policy: complete, on
// allowed clusters, within limits and over as many groups as requested. Evaluating everything again at the same time
// must change nothing.
func TestBindingsHoldInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		now := epoch
		rescheduled := map[api.Key]time.Time{} // by hand
		for i := range 3 {
			w.write(p, drawMember(t, fmt.Sprintf("c%d", i), now))
		}
		w.write(p, drawAnyPolicy(t, "p0"))
		t.Repeat(map[string]func(*rapid.T){
			"cluster": func(t *rapid.T) { w.write(p, drawMember(t, drawName(t, "c", 6), now)) },
			"state": func(t *rapid.T) {
				if c, ok := w.objects[api.Key{Kind: api.KindCluster, Name: drawName(t, "c", 6)}].(*api.Cluster); ok {
					turned := *c
					turned.Status.State, turned.Status.Taints = "", nil
					if c.Status.State == "" {
						lose(&turned, now)
					}
					w.write(p, &turned)
				}
			},
			"no cluster": func(t *rapid.T) { w.remove(p, api.Key{Kind: api.KindCluster, Name: drawName(t, "c", 6)}) },
			"policy":     func(t *rapid.T) { w.write(p, drawAnyPolicy(t, drawName(t, "p", 3))) },
			"no policy": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindPropagationPolicy, Namespace: "shop", Name: drawName(t, "p", 3)})
			},
			"workload":  func(t *rapid.T) { w.write(p, drawAnyWorkload(t)) },
			"window":    func(t *rapid.T) { w.write(p, drawWindow(t, now)) },
			"no window": func(t *rapid.T) { w.remove(p, windowKey(t)) },
			"scaled": func(t *rapid.T) {
				if x, ok := w.objects[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: drawName(t, "w", 4)}].(*api.Workload); ok && x.Spec.Replicas != nil {
					scaled := *x
					scaled.Spec.Replicas = ptr(rapid.Int64Range(0, 14).Draw(t, "replicas"))
					w.write(p, &scaled)
				}
			},
			"reschedule": func(t *rapid.T) {
				if x, ok := w.objects[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: drawName(t, "w", 4)}].(*api.Workload); ok {
					again := *x
					again.Metadata.RescheduleRequests++
					w.write(p, &again)
					rescheduled[api.KeyOf(x)] = now
				}
			},
			"no workload": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: drawName(t, "w", 4)})
			},
			"health": func(t *rapid.T) {
				x, ok := p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: drawName(t, "w", 4)}]
				if !ok || len(x.status.Clusters) == 0 {
					return
				}
				status := rapid.SampledFrom([]api.HealthStatus{api.Healthy, api.Healthy, api.Unhealthy, api.HealthUnknown}).Draw(t, "status")
				p.bindings.report(x, api.HealthReport{Cluster: rapid.SampledFrom(x.status.Clusters).Draw(t, "cluster").Name, Status: status}, now)
				w.last = w.afterPass(p) // as the report is stored
			},
			"time": func(t *rapid.T) {
				until := now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
				for at := p.nextAt(); !at.IsZero() && at.Before(until); at = p.nextAt() {
					now = latest(at, now)
					p.pass(now)
					w.last = w.afterPass(p)
				}
				now = until
			},
			"": func(t *rapid.T) {
				p.pass(now)
				checkBindings(t, p, now)
				checkEvictions(t, p, rescheduled, now)
				checkKilled(t, w, p, now)
				checkFork(t, w, p, now)
				checkSecond(t, w, p, now)
			},
		})
	})
}

// checker is a test, or one draw of a property test.
type checker interface {
	Fatalf(format string, args ...any)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func drawName(t *rapid.T, of string, n int) string {
	return fmt.Sprintf("%s%d", of, rapid.IntRange(0, n-1).Draw(t, of))
}

// lose takes a cluster offline, as the health monitor does.
func lose(c *api.Cluster, now time.Time) {
	c.Status.State = api.StateOffline
	c.Status.Taints = []api.ClusterTaint{{Key: api.TaintUnreachable, Effect: api.EffectNoSelect, TimeAdded: &now}}
}

func drawMember(t *rapid.T, name string, now time.Time) *api.Cluster {
	c := cluster(name, map[string]string{"tier": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tier")})
	c.Spec.Region = rapid.SampledFrom([]string{"", "eu", "us", "us"}).Draw(t, "region")
	if rapid.IntRange(0, 3).Draw(t, "sized") > 0 {
		c.Spec.Allocatable = api.Quantities{"seats": api.Quantity(fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "seats")))}
	}
	if rapid.IntRange(0, 3).Draw(t, "down") == 0 {
		lose(c, now)
	}
	if rapid.IntRange(0, 5).Draw(t, "tainted") == 0 {
		effect := rapid.SampledFrom(api.TaintEffects).Draw(t, "effect")
		c.Spec.Taints = []api.Taint{{Key: "k", Effect: effect}}
		c.Status.Taints = append(c.Status.Taints, api.ClusterTaint{Key: "k", Effect: effect, TimeAdded: &now})
	}
	return c
}

func drawAnyWorkload(t *rapid.T) *api.Workload {
	w := &api.Workload{Metadata: api.Metadata{Name: drawName(t, "w", 4), Namespace: "shop"}}
	w.Spec = api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Priority: rapid.Int64Range(0, 2).Draw(t, "priority")}
	if rapid.IntRange(0, 5).Draw(t, "requests") > 0 {
		w.Spec.ReplicaRequests = api.Quantities{"seats": "1"}
	}
	if w.Metadata.Name != "w0" { // it never has replicas
		w.Spec.Replicas = ptr(rapid.Int64Range(0, 14).Draw(t, "replicas"))
	}
	return w
}

func drawAffinity(t *rapid.T) api.ClusterAffinity {
	names := rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, 4, rapid.ID).Draw(t, "names")
	var a api.ClusterAffinity
	for _, n := range names {
		a.ClusterNames = append(a.ClusterNames, fmt.Sprintf("c%d", n))
	}
	return a
}

func drawAnyPolicy(t *rapid.T, name string) *api.PropagationPolicy {
	p := &api.PropagationPolicy{Metadata: api.Metadata{Name: name, Namespace: "shop"}}
	s := &p.Spec
	s.ResourceSelectors = []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	s.Priority = rapid.Int64Range(0, 2).Draw(t, "priority")
	if rapid.IntRange(0, 4).Draw(t, "preempts") == 0 {
		s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority
	}
	place := &s.Placement
	switch rapid.IntRange(0, 4).Draw(t, "scheduling") {
	case 0:
	case 1:
		place.ReplicaScheduling = &api.ReplicaScheduling{}
	case 2:
		place.ReplicaScheduling = &api.ReplicaScheduling{DivisionPreference: api.Aggregated}
	case 3:
		place.ReplicaScheduling = &api.ReplicaScheduling{WeightPreference: &api.WeightPreference{DynamicWeight: api.DynamicWeightAvailable}}
	case 4:
		place.ReplicaScheduling = &api.ReplicaScheduling{WeightPreference: &api.WeightPreference{StaticWeights: []api.StaticWeight{
			{Affinity: drawAffinity(t), Weight: rapid.Int64Range(1, 5).Draw(t, "weight")}, {Weight: 1},
		}}}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "groups") {
		term := api.AffinityTerm{AffinityName: fmt.Sprintf("g%d", i), ClusterAffinity: drawAffinity(t)}
		if r := place.ReplicaScheduling; r != nil && (r.DivisionPreference == api.Aggregated || r.WeightPreference != nil && r.WeightPreference.DynamicWeight != "") {
			for j := range rapid.IntRange(0, 2).Draw(t, "tiers") {
				term.OverflowAffinities = append(term.OverflowAffinities, api.OverflowAffinity{AffinityName: fmt.Sprintf("o%d", j), ClusterAffinity: drawAffinity(t)})
			}
		}
		place.ClusterAffinities = append(place.ClusterAffinities, term)
	}
	if rapid.IntRange(0, 2).Draw(t, "spread") == 0 {
		place.SpreadConstraints = []api.GroupConstraint{drawSpread(t, api.GroupConstraint{SpreadByField: api.GroupByCluster})}
		if rapid.Bool().Draw(t, "by region") {
			place.SpreadConstraints = append(place.SpreadConstraints, drawSpread(t, api.GroupConstraint{SpreadByField: api.GroupByRegion}))
		}
		if rapid.IntRange(0, 2).Draw(t, "by tier") == 0 {
			place.SpreadConstraints = append(place.SpreadConstraints, drawSpread(t, api.GroupConstraint{SpreadByLabel: "tier"}))
		}
	}
	if r := place.ReplicaScheduling; r != nil && rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
		least := rapid.Int64Range(0, 3).Draw(t, "least")
		r.ClusterLimits = []api.ClusterLimit{{MinReplicas: &least, MaxReplicas: ptr(least + rapid.Int64Range(0, 6).Draw(t, "more"))}}
	}
	s.Failover = &api.Failover{Cluster: &api.ClusterFailover{PurgeMode: rapid.SampledFrom([]api.PurgeMode{"", "", api.PurgeDirectly}).Draw(t, "purge")}}
	if rapid.Bool().Draw(t, "application") {
		s.Failover.Application = &api.ApplicationFailover{
			Toleration: rapid.SampledFrom([]api.Duration{"0s", "60s"}).Draw(t, "toleration"),
			PurgeMode:  rapid.SampledFrom([]api.PurgeMode{"", api.PurgeDirectly, api.PurgeNever}).Draw(t, "purge of applications"),
		}
	}
	if rapid.Bool().Draw(t, "fails back") {
		s.FailBack = &api.FailBack{Stabilization: rapid.SampledFrom([]api.Duration{"0s", "60s", "10m"}).Draw(t, "stabilization")}
	}
	if rapid.IntRange(0, 3).Draw(t, "tolerates") == 0 {
		place.ClusterTolerations = []api.Toleration{{Key: "k", Operator: api.TolerationExists, TolerationSeconds: rapid.SampledFrom([]*int64{nil, ptr[int64](100)}).Draw(t, "seconds")}}
	}
	return p
}

func drawSpread(t *rapid.T, c api.GroupConstraint) api.GroupConstraint {
	least := rapid.Int64Range(1, 2).Draw(t, "min")
	c.MinGroups = &least
	if rapid.Bool().Draw(t, "bounded") {
		c.MaxGroups = ptr(least + rapid.Int64Range(0, 2).Draw(t, "max"))
	}
	return c
}

// checkBindings checks that every binding satisfies its policy, and that deciding from scratch would give the same
// result.
func checkBindings(t *rapid.T, p *planner, now time.Time) {
	checkRecords(t, p)
	for _, key := range slices.SortedFunc(maps.Keys(p.bindings.workloads), api.Key.Compare) {
		w := p.bindings.workloads[key]
		checkIndexes(t, p, w)
		policy, _ := p.bindings.claims.Choose(w.object, w.status.Policy)
		if policy != w.policy {
			t.Fatalf("%s follows %v, but Choose() = %v", key, w.policy, policy)
		}
		if policy == nil {
			continue
		}
		checkPromises(t, p, w)
		checkFreshLook(t, p, w, now)
	}
}

// checkEvictions checks that every eviction has a cause, and is neither past its grace nor older than a reschedule by
// hand, and that replicas that succeed it do not all run.
func checkEvictions(t checker, p *planner, rescheduled map[api.Key]time.Time, now time.Time) {
	for key, w := range p.bindings.workloads {
		s := &w.status
		for _, e := range s.Evictions {
			fail := func(why string) { t.Fatalf("%s is leaving %s at %s, but %s: %+v, %+v", key, e.Cluster, now, why, e, s) }
			row, ok := p.fleet.Row(e.Cluster)
			switch h := healthOn(s, e.Cluster); {
			case !ok:
				fail("the cluster is gone")
			case e.Since.Before(rescheduled[key]):
				fail("it has been rescheduled by hand")
			case e.PurgeMode == api.PurgeNever:
			case !now.Before(*e.Until):
				fail("its grace has passed")
			case w.policy == nil: // what is tolerated is not known
			case e.Reason == api.EvictedClusterLost && !drives(p.fleet.Cluster(row), w.policy, now):
				fail("the cluster is back")
			case e.Reason == api.EvictedApplicationUnhealthy && h != nil && h.Status == api.Healthy:
				fail("it is healthy there")
			case succeeded(s, e):
				fail("its successors run")
			}
		}
	}
}

func healthOn(s *api.WorkloadStatus, cluster string) *api.ClusterHealth {
	for i := range s.Health {
		if s.Health[i].Cluster == cluster {
			return &s.Health[i]
		}
	}
	return nil
}

// drives reports whether a cluster drives workloads away that follow a policy.
func drives(c *api.Cluster, policy *api.PropagationPolicy, now time.Time) bool {
	if c.Status.State == api.StateOffline {
		return true
	}
	for _, taint := range c.Taints() {
		if taint.Effect != api.EffectNoSelect && taint.Effect != api.EffectNoExecute {
			continue
		}
		tolerated := slices.ContainsFunc(policy.Spec.Placement.ClusterTolerations, func(by api.Toleration) bool {
			return by.Key == taint.Key && (by.TolerationSeconds == nil || taint.TimeAdded != nil &&
				now.Before(taint.TimeAdded.Add(time.Duration(*by.TolerationSeconds)*time.Second)))
		})
		if !tolerated {
			return true
		}
	}
	return false
}

// succeeded reports whether a workload has all its replicas, and all of its clusters have reported since an eviction
// began that it is healthy there.
func succeeded(s *api.WorkloadStatus, e api.Eviction) bool {
	if c := api.FindCondition(s.Conditions, api.ConditionScheduled); c.Status != api.ConditionTrue || len(s.Clusters) == 0 {
		return false
	}
	for _, c := range s.Clusters {
		if h := healthOn(s, c.Name); h == nil || h.Status != api.Healthy || !h.ReportedAt.After(*e.Since) {
			return false
		}
	}
	return true
}

// checkIndexes checks that the indexes by cluster contain the workload, and its shares.
func checkIndexes(t checker, p *planner, w *workloadBinding) {
	has := clustersOf(&w.status)
	for name := range p.bindings.occupants {
		in := p.bindings.occupants.has(name, w)
		if _, want := has[name]; in != want {
			t.Fatalf("%s: occupant of %s: %t, but its clusters are %v", w.key(), name, in, has)
		}
	}
	for name := range has {
		if !p.bindings.occupants.has(name, w) {
			t.Fatalf("%s is not among the occupants of %s", w.key(), name)
		}
	}
}

// checkFreshLook decides a binding from scratch.
func checkFreshLook(t checker, p *planner, w *workloadBinding, now time.Time) {
	compiled, err := binding.NewPropagation(w.object, w.policy)
	if err != nil {
		t.Fatalf("%s: %v", w.key(), err)
	}
	views := make([]*placement.View, len(compiled.Groups))
	for i, g := range compiled.Groups {
		views[i] = placement.NewView(p.fleet, g.Query, p.others(), nil)
		for row := range p.fleet.Slots() {
			if views[i].Mask.Has(row) != w.scopes[i].view.Mask.Has(row) {
				t.Fatalf("%s: the mask of group %d is stale in row %d: %t", w.key(), i, row, w.scopes[i].view.Mask.Has(row))
			}
		}
	}
	object := *w.object
	object.Status = w.status
	var binder binding.Binder
	out := binder.Bind(p.fleet, compiled, views, p.others(), nil, binding.NewPresent(&object, w.policy), now)
	status, _, moved := binding.NewBindingStatus(p.fleet, compiled, &object, w.policy, out, now, func(int) string { return "" })
	told := func(s *api.WorkloadStatus) string {
		text := fmt.Sprintf("%s in %q, %d lost, leaving", splitText(s), s.ObservedAffinity, s.LostReplicas)
		for _, e := range s.Evictions {
			text += fmt.Sprintf(" %s (%d, %s)", e.Cluster, e.Replicas, e.Reason)
		}
		for _, e := range s.EarlierAffinities {
			text += ", may go back to " + e.AffinityName
		}
		for _, c := range s.Conditions {
			text += fmt.Sprintf("; %s %s", c.Type, c.Status)
		}
		return text
	}
	if has, fresh := told(&w.status), told(&status); moved || has != fresh {
		t.Fatalf("%s is stale:\nhas %s,\na fresh decision is %s\n%+v\n%+v", w.key(), has, fresh, w.status, status)
	}
}

func seatsOf(s *api.WorkloadStatus) map[string]int64 {
	out := map[string]int64{}
	for _, c := range s.Clusters {
		out[c.Name] = c.Replicas
	}
	return out
}

// checkPromises checks that a scheduled workload has all its replicas, on clusters that it may use, within the limits
// and over as many groups as requested.
func checkPromises(t *rapid.T, p *planner, w *workloadBinding) {
	s, spec, place := &w.status, &w.object.Spec, &w.policy.Spec.Placement
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s: %s\nstatus %+v\npolicy %+v", w.key(), fmt.Sprintf(format, args...), s, w.policy.Spec)
	}
	if !slices.IsSortedFunc(s.Clusters, func(a, b api.WorkloadCluster) int { return compareNames(a.Name, b.Name) }) {
		fail("clusters are not listed once each by name")
	}
	for _, e := range s.Evictions {
		if _, both := seatsOf(s)[e.Cluster]; both {
			fail("it runs on %s, and is leaving it", e.Cluster)
		}
	}
	runs := int64(0)
	for _, c := range s.Clusters {
		runs += c.Replicas
	}
	if spec.Replicas != nil && place.ReplicaScheduling != nil && runs > *spec.Replicas {
		fail("%d replicas run, and %d are wanted", runs, *spec.Replicas)
	}
	held := api.FindCondition(s.Conditions, api.ConditionFailoverHeld)
	for _, c := range s.Clusters {
		row, ok := p.fleet.Row(c.Name)
		if !ok {
			fail("it is on %s, which does not exist", c.Name)
		}
		if p.fleet.Cluster(row).Status.State == api.StateOffline && held.Status != api.ConditionTrue {
			fail("it is on %s, which is offline", c.Name)
		}
	}
	scheduled := api.FindCondition(s.Conditions, api.ConditionScheduled)
	if scheduled == nil || s.ObservedGeneration != w.object.Metadata.Generation {
		fail("it has not been looked at")
	}
	if scheduled.Status != api.ConditionTrue {
		if room, known := roomFor(p, w); known && room >= max(*spec.Replicas, 1) {
			fail("it waits, and there is room for %d", room)
		}
		return
	}
	if s.LostReplicas != 0 {
		fail("%d replicas are lost, and it is scheduled", s.LostReplicas)
	}
	sum := int64(0)
	duplicated := place.ReplicaScheduling == nil
	for _, c := range s.Clusters {
		sum += c.Replicas
		if duplicated && spec.Replicas != nil && c.Replicas != *spec.Replicas {
			fail("%s does not have all replicas", c.Name)
		}
		checkCluster(t, w, c)
	}
	if spec.Replicas == nil || *spec.Replicas == 0 {
		return
	}
	if !duplicated && sum != *spec.Replicas {
		fail("it has %d of %d replicas", sum, *spec.Replicas)
	}
	for i := range place.SpreadConstraints {
		c := &place.SpreadConstraints[i]
		groups := map[string]bool{}
		for _, member := range s.Clusters {
			row, _ := p.fleet.Row(member.Name)
			groups[groupOf(p.fleet.Cluster(row), c)] = true
		}
		if most, limited := c.Max(); int64(len(groups)) < *c.MinGroups || limited && int64(len(groups)) > most {
			fail("it runs in %d groups by %s", len(groups), c.By())
		}
	}
}

// roomFor returns how many replicas of a workload fit, including those that it has. known is false if other rules
// matter, too.
func roomFor(p *planner, w *workloadBinding) (room int64, known bool) {
	place := &w.policy.Spec.Placement
	unwell := slices.ContainsFunc(w.status.Health, func(h api.ClusterHealth) bool { return h.Status == api.Unhealthy })
	if w.object.Spec.Replicas == nil || len(w.object.Spec.ReplicaRequests) == 0 || len(place.ClusterAffinities)+len(place.SpreadConstraints) > 0 || unwell || binding.Brakes(p.fleet) {
		return 0, false
	}
	if r := place.ReplicaScheduling; r != nil && len(r.ClusterLimits) > 0 {
		return 0, false
	}
	grows := int64(1) << 40 // room of the fullest cluster with a copy that is to grow
	for row := range p.fleet.Slots() {
		c := p.fleet.Cluster(row)
		if c != nil && len(c.Taints()) > 0 && place.ReplicaScheduling == nil && seatsOf(&w.status)[c.Metadata.Name] > 0 {
			return 0, false
		}
		if c == nil || len(c.Taints()) > 0 || slices.ContainsFunc(w.status.Evictions, func(e api.Eviction) bool { return e.Cluster == c.Metadata.Name }) {
			continue
		}
		here := int64(1) << 40
		if amount, told := c.Spec.Allocatable["seats"]; told {
			milli, _ := amount.Milli()
			here = milli.Units()
			for _, other := range p.bindings.workloads {
				if other != w {
					here -= clustersOf(&other.status)[c.Metadata.Name]
				}
			}
			here = max(here, 0)
		}
		if place.ReplicaScheduling == nil {
			room = max(room, here) // every copy is complete
			has := seatsOf(&w.status)[c.Metadata.Name]
			if has > here {
				return 0, false // what runs stays where the cluster has shrunk, and it waits for the rest
			}
			if has > 0 && has < *w.object.Spec.Replicas {
				grows = min(grows, here)
			}
		} else {
			room += here
		}
	}
	return min(room, grows), true
}

func compareNames(a, b string) int {
	if a < b {
		return -1
	}
	return 1 // equal names count as out of order, too
}

func groupOf(c *api.Cluster, by *api.GroupConstraint) string {
	switch {
	case by.SpreadByLabel != "":
		return c.Metadata.Labels[by.SpreadByLabel]
	case by.SpreadByField == api.GroupByRegion:
		return c.Spec.Region
	}
	return c.Metadata.Name
}

// checkCluster checks that a scheduled workload may use one of its clusters.
func checkCluster(t *rapid.T, w *workloadBinding, has api.WorkloadCluster) {
	place := &w.policy.Spec.Placement
	if len(place.ClusterAffinities) > 0 {
		i := slices.IndexFunc(place.ClusterAffinities, func(a api.AffinityTerm) bool { return a.AffinityName == w.status.ObservedAffinity })
		if i < 0 {
			t.Fatalf("%s is in group %q, which does not exist", w.key(), w.status.ObservedAffinity)
		}
		names := slices.Clone(place.ClusterAffinities[i].ClusterNames)
		if w.object.Spec.Replicas != nil {
			for _, o := range place.ClusterAffinities[i].OverflowAffinities {
				names = append(names, o.ClusterNames...)
			}
		}
		if !slices.Contains(names, has.Name) {
			t.Fatalf("%s is on %s, which is not in group %q: %q", w.key(), has.Name, w.status.ObservedAffinity, names)
		}
	}
	if r := place.ReplicaScheduling; r != nil && has.Replicas > 0 {
		for _, l := range r.ClusterLimits {
			if has.Replicas < *l.MinReplicas || has.Replicas > *l.MaxReplicas {
				t.Fatalf("%s has %d replicas on %s, want %d to %d", w.key(), has.Replicas, has.Name, *l.MinReplicas, *l.MaxReplicas)
			}
		}
	}
}

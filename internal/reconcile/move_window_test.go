package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// frozen returns a window that keeps everything in the namespace shop.
func frozen(ends *time.Time) *api.MoveWindow {
	return &api.MoveWindow{
		Metadata: api.Metadata{Name: "freeze", Namespace: "shop"}, Spec: api.MoveWindowSpec{Effect: api.EffectDeny, EndsAt: ends, Description: "incident 42"},
	}
}

// heldPlacement is a placement on c1, of which c2 has become the better cluster while a window holds it.
func heldPlacement(t *testing.T, ends *time.Time) (*world, *planner, api.Key) {
	t.Helper()
	w, p := newWorld(), newPlanner(discard())
	w.writeMeasured(p, 0.9, 0.5)
	w.write(p, newPlacement("web", 1))
	w.write(p, frozen(ends))
	key := placementKey("shop", "web")
	p.pass(epoch)
	on(t, p, key, "c1")
	w.write(p, metric("m2", 1))
	p.pass(epoch.Add(time.Minute))
	on(t, p, key, "c1")
	held := heldCondition(p, key, epoch.Add(time.Minute))
	if held == nil || held.Reason != api.ReasonHeldByWindow || !strings.Contains(held.Message, "incident 42") {
		t.Fatalf("condition %+v", held)
	}
	checkSettled(t, p, epoch.Add(time.Minute))
	return w, p, key
}

// heldCondition is what readers see of a window.
func heldCondition(p *planner, key api.Key, now time.Time) *api.Condition {
	return api.FindCondition(*api.ConditionsOf(p.snapshot(nil).withMoveHeld(p.placer.placements[key].result(), now)), api.ConditionMoveHeld)
}

func on(t *testing.T, p *planner, key api.Key, clusters ...string) {
	t.Helper()
	if got := p.placer.placements[key].status.Clusters; !slices.Equal(got, clusters) {
		t.Fatalf("%s is on %v, want %v", key, got, clusters)
	}
}

func released(t *testing.T, p *planner, key api.Key, cause api.CauseType) {
	t.Helper()
	status := p.placer.placements[key].status
	if status.Cause == nil || status.Cause.Type != cause {
		t.Errorf("cause %+v, want %s", status.Cause, cause)
	}
}

func TestHeldUntilTheWindowIsDeleted(t *testing.T) {
	w, p, key := heldPlacement(t, nil)
	w.remove(p, api.KeyOf(frozen(nil)))
	p.pass(epoch.Add(2 * time.Minute))
	on(t, p, key, "c2")
	released(t, p, key, api.CauseWindowOpened)
	if object := p.placer.placements[key].status.Cause.Object; object == nil || *object != api.KeyOf(frozen(nil)) {
		t.Errorf("cause of %v", object)
	}
}

func TestHeldUntilTheWindowEnds(t *testing.T) {
	ends := epoch.Add(time.Hour)
	_, p, key := heldPlacement(t, &ends)
	if at := p.nextAt(); !at.Equal(ends) {
		t.Fatalf("the next pass is at %s, want %s", at, ends)
	}
	p.pass(ends.Add(-time.Second))
	on(t, p, key, "c1")
	p.pass(ends)
	on(t, p, key, "c2")
	released(t, p, key, api.CauseWindowOpened)
}

// What has to move moves all the same.
func TestWhatAWindowDoesNotHold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, p *planner)
		cause  api.CauseType
	}{
		"the spec changes": {func(w *world, p *planner) {
			w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) { s.ExcludeClusters = []string{"nothing"} }))
		}, api.CauseSpec},
		"the cluster is deleted": {func(w *world, p *planner) { w.remove(p, api.Key{Kind: api.KindCluster, Name: "c1"}) }, api.CauseCluster},
		"the cluster evicts": {func(w *world, p *planner) {
			c := cluster("c1", nil, api.MetricRef{Name: "m1"})
			c.Spec.Taints = []api.Taint{{Key: "down", Effect: api.EffectNoSelect}}
			w.write(p, c)
		}, api.CauseTaint},
		"a new decision is asked for": {func(w *world, p *planner) {
			again := *w.objects[placementKey("shop", "web")].(*api.Placement)
			again.Metadata.RescheduleRequests++
			again.Status = *p.placer.placements[placementKey("shop", "web")].status
			w.revision++
			p.put(&again, w.revision)
		}, api.CauseReschedule},
	} {
		t.Run(name, func(t *testing.T) {
			w, p, key := heldPlacement(t, nil)
			c.change(w, p)
			p.pass(epoch.Add(2 * time.Minute))
			on(t, p, key, "c2")
			released(t, p, key, c.cause)
		})
	}
}

// A window of another namespace, or one that does not select the placement, holds nothing.
func TestWindowsOfOthers(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.writeMeasured(p, 0.9, 0.5)
	w.write(p, newPlacement("web", 1))
	elsewhere := frozen(nil)
	elsewhere.Metadata.Namespace = "ads"
	w.write(p, elsewhere)
	critical := frozen(nil)
	critical.Metadata.Name, critical.Spec.LabelSelector = "critical", &api.LabelSelector{MatchLabels: map[string]string{"tier": "critical"}}
	w.write(p, critical)
	p.pass(epoch)
	w.write(p, metric("m2", 1))
	p.pass(epoch.Add(time.Minute))
	on(t, p, placementKey("shop", "web"), "c2")
}

// A workload stays in its group although an earlier one has room again.
func TestHeldWorkload(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	sized := func(name, cpu string) *api.Cluster {
		c := cluster(name, nil)
		c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(cpu)}
		return c
	}
	w.write(p, sized("a", "1"))
	w.write(p, sized("b", "4"))
	w.write(p, policy("p", func(s *api.PropagationPolicySpec) {
		s.Placement.ReplicaScheduling = dynamic()
		s.Placement.ClusterAffinities = []api.AffinityTerm{
			{AffinityName: "main", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"a"}}},
			{AffinityName: "spare", ClusterAffinity: api.ClusterAffinity{ClusterNames: []string{"b"}}},
		}
		s.FailBack = &api.FailBack{Mode: api.FailBackAutomatic, Stabilization: "1m"}
	}))
	w.write(p, workload("web", 2, func(o *api.Workload) { o.Spec.ReplicaRequests = api.Quantities{"cpu": "1"} }))
	w.write(p, frozen(nil))
	key := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
	runs := func(at time.Time, clusters ...string) *api.WorkloadStatus {
		t.Helper()
		w.stored(p, p.pass(at))
		status := &p.bindings.workloads[key].status
		if !slices.EqualFunc(status.Clusters, clusters, func(c api.WorkloadCluster, name string) bool { return c.Name == name }) {
			t.Fatalf("at %s on %+v, want %v", at, status.Clusters, clusters)
		}
		checkSettled(t, p, at)
		return status
	}
	kept := func(at time.Time) string {
		s := p.snapshot(nil)
		known, _ := s.get(key)
		return decidedAs(key.Kind).explained(s, &known, at).Kept
	}
	runs(epoch, "b")
	w.write(p, sized("a", "4")) // the earlier group has room
	runs(epoch.Add(time.Second), "b")
	at := epoch.Add(2 * time.Minute)
	runs(at, "b")
	if by := kept(at); by != "move_window" {
		t.Errorf("kept by %q", by)
	}
	w.remove(p, api.KeyOf(frozen(nil)))
	if status := runs(at, "a"); status.Cause == nil || status.Cause.Type != api.CauseWindowOpened {
		t.Errorf("cause %+v", status.Cause)
	}
	if by := kept(at); by != "" {
		t.Errorf("kept by %q", by)
	}
}

// A window that cannot be read holds what it may be about, until it is back or deleted.
func TestLostWindow(t *testing.T) {
	for name, c := range map[string]struct {
		after func(p *planner)
		on    string
	}{
		"nothing happens":        {func(*planner) {}, "c1"},
		"another pass":           {func(p *planner) { p.lose([]api.Key{api.KeyOf(frozen(nil))}) }, "c1"},
		"it is deleted":          {func(p *planner) { p.lose(nil) }, "c2"},
		"it is written":          {func(p *planner) { p.put(frozen(nil), 9); p.lose(nil) }, "c1"},
		"one that is over":       {func(p *planner) { p.put(frozen(&epoch), 9); p.lose(nil) }, "c2"},
		"the cluster is deleted": {func(p *planner) { p.remove(api.Key{Kind: api.KindCluster, Name: "c1"}) }, "c2"},
	} {
		t.Run(name, func(t *testing.T) {
			w, p, key := heldPlacement(t, nil)
			again, window := newPlanner(discard()), api.KeyOf(frozen(nil))
			again.lose([]api.Key{window})
			for k, object := range w.objects {
				if k == key {
					object = p.placer.placements[k].result()
				}
				if k != window {
					again.put(object, w.specs[k])
				}
			}
			again.pass(epoch.Add(2 * time.Minute))
			on(t, again, key, "c1")
			if held := heldCondition(again, key, epoch.Add(2*time.Minute)); held == nil || !strings.Contains(held.Message, "cannot be read") {
				t.Errorf("condition %+v", held)
			}
			c.after(again)
			again.pass(epoch.Add(3 * time.Minute))
			on(t, again, key, c.on)
			checkSettled(t, again, epoch.Add(3*time.Minute))
		})
	}
}

// windowKey draws the key of a window.
func windowKey(t *rapid.T) api.Key {
	return api.Key{Kind: api.KindMoveWindow, Namespace: rapid.SampledFrom([]string{"", "shop"}).Draw(t, "namespace of the window"), Name: "w"}
}

// drawWindow draws a window that is open now, or soon.
func drawWindow(t *rapid.T, now time.Time) *api.MoveWindow {
	key := windowKey(t)
	w := &api.MoveWindow{Metadata: api.Metadata{Name: key.Name, Namespace: key.Namespace}}
	if rapid.Bool().Draw(t, "scheduled") {
		w.Spec.Effect = rapid.SampledFrom([]string{api.EffectDeny, api.EffectAllow}).Draw(t, "effect")
		w.Spec.Schedule, w.Spec.Duration = rapid.SampledFrom([]string{"* * * * *", "*/2 * * * *", "0 0 1 1 *"}).Draw(t, "schedule"), "1m"
	}
	if rapid.Bool().Draw(t, "ends") {
		ends := now.Add(time.Duration(rapid.IntRange(-30, 120).Draw(t, "end")) * time.Second)
		w.Spec.EndsAt = &ends
	}
	return w
}

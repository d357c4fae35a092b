package inventory

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
)

// TestOwners runs the cases V067, V068 and V073: a pod is split by the workload that owns it, which is fetched if the
// watch has not delivered it yet.
func TestOwners(t *testing.T) {
	d := deployment("web", 2, labelsFor("all-in-on-demand"))
	rs := revisionOf(d, "abc", 1)
	set := statefulSet("db", 2, labelsFor("all-in-on-demand"))
	orphan := revisionOf(d, "abc", 1)
	orphan.OwnerReferences = nil
	again := d.DeepCopy()
	again.UID = "another"
	job := func(w *world) webhook.Creation {
		c := w.creation(rs)
		c.Owner.Kind = "Job"
		return c
	}
	fromReplicaSet := func(w *world) webhook.Creation { return w.creation(rs) }
	fromSet := func(w *world) webhook.Creation { return w.creation(set, 0) }
	tests := []struct {
		name     string
		put      []object
		heard    []object
		creation func(*world) webhook.Creation
		want     split.NodeType
		gets     int
	}{
		{name: "both cached", heard: []object{d, rs}, creation: fromReplicaSet, want: split.OnDemand},
		{name: "neither cached", put: []object{d, rs}, creation: fromReplicaSet, want: split.OnDemand, gets: 2},
		{name: "replica set cached", put: []object{d}, heard: []object{rs}, creation: fromReplicaSet, want: split.OnDemand, gets: 1},
		{name: "deployment cached", put: []object{rs}, heard: []object{d}, creation: fromReplicaSet, want: split.OnDemand, gets: 1},
		{name: "stateful set cached", heard: []object{set}, creation: fromSet, want: split.OnDemand},
		{name: "stateful set not cached", put: []object{set}, creation: fromSet, want: split.OnDemand, gets: 1},
		{name: "earlier deployment of the same name cached", put: []object{d}, heard: []object{again, rs}, creation: fromReplicaSet, want: split.OnDemand, gets: 1},
		{name: "other deployment of the same name", put: []object{again}, heard: []object{rs}, creation: fromReplicaSet, gets: 1},
		{name: "no owner found", creation: fromReplicaSet, gets: 1},
		{name: "no stateful set found", creation: fromSet, gets: 1},
		{name: "replica set without an owner", heard: []object{orphan, d}, creation: fromReplicaSet},
		{name: "job", heard: []object{d, rs}, creation: job},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(plainLabel)
			w.put(test.put...)
			w.hear(test.heard...)
			if got := w.assign(test.creation(w)); got != test.want {
				t.Errorf("it is for %q, want %q", got, test.want)
			}
			if n := w.requests("get replicasets") + w.requests("get deployments") + w.requests("get statefulsets"); n != test.gets {
				t.Errorf("%d requests, want %d", n, test.gets)
			}
		})
	}
}

// TestBurst admits many pods before the watch delivers any of them.
func TestBurst(t *testing.T) {
	for _, known := range []bool{true, false} {
		w := newWorld(plainLabel)
		d := deployment("web", 100, labelsFor("37"))
		rs := revisionOf(d, "abc", 1)
		w.put(d, rs)
		if known {
			w.hear(d, rs)
		}
		var group sync.WaitGroup
		got := make([]split.NodeType, 100)
		for n := range got {
			group.Go(func() { got[n] = w.assign(w.creation(rs)) })
		}
		group.Wait()
		var sum split.Split
		for _, nodeType := range got {
			sum = sum.Plus(nodeType)
		}
		if want := (split.Split{OnDemand: 37, Spot: 63}); sum != want {
			t.Errorf("cached %t: got %+v, want %+v", known, sum, want)
		}
	}
}

// TestReservations checks that the place of an admitted pod is reserved until the watch delivers the pod, and no
// longer.
func TestReservations(t *testing.T) {
	t.Run("an existing pod is counted once", func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(4, "2")
		for n := range 2 {
			c := w.creation(rs)
			nodeType := w.assign(c)
			if nodeType != split.OnDemand {
				t.Fatalf("pod %d is for %q, want on-demand", n, nodeType)
			}
			w.have(podFor(c, nodeType))
		}
		if len(w.reservations) != 0 {
			t.Errorf("%d reservations for existing pods", len(w.reservations))
		}
		if got := w.assigned(rs, 2); got != (split.Split{Spot: 2}) {
			t.Errorf("the other pods get %+v", got)
		}
	})
	t.Run("a pod that was rejected after its admission is forgotten", func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(2, "1")
		if got := w.assign(w.creation(rs)); got != split.OnDemand {
			t.Fatalf("the pod is for %q, want on-demand", got)
		}
		w.now = w.now.Add(reservedFor)
		if got := w.assigned(rs, 2); got != (split.Split{OnDemand: 1, Spot: 1}) {
			t.Errorf("after %s the pods get %+v", reservedFor, got)
		}
	})
	t.Run("forgotten earlier if a live list does not contain it", func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(2, "1")
		w.assigned(rs, 2) // both are rejected
		w.now = w.now.Add(createdWithin)
		if got := w.assigned(rs, 1); got != (split.Split{OnDemand: 1}) {
			t.Errorf("after %s the next pod gets %+v", createdWithin, got)
		}
		if w.requests("list pods") != 1 {
			t.Error("no live list was requested")
		}
	})
	t.Run("a dry run reserves nothing", func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(2, "1")
		for range 3 {
			c := w.creation(rs)
			c.DryRun = true
			if got := w.assign(c); got != split.OnDemand {
				t.Errorf("the pod is for %q, want on-demand", got)
			}
		}
		if len(w.reservations) != 0 {
			t.Errorf("reservations %v, want none", w.reservations)
		}
	})
	t.Run("reservations of a deleted controller are removed", func(t *testing.T) {
		w := newWorld(plainLabel)
		d, rs := w.web(2, "1")
		set := statefulSet("db", 2, labelsFor(""))
		w.have(set)
		w.assigned(rs, 2)
		w.assign(w.creation(set, 0))
		w.hearGone(rs)
		w.hearGone(d)
		w.hearGone(set)
		if len(w.reservations) != 0 {
			t.Errorf("reservations %v, want none", w.reservations)
		}
	})
}

// TestStatefulSet checks that a pod that is recreated under its name gets the type that the others leave.
func TestStatefulSet(t *testing.T) {
	set := statefulSet("db", 5, labelsFor("majority-in-on-demand"))
	types := []split.NodeType{split.OnDemand, split.Spot, split.OnDemand, split.Spot, split.OnDemand}
	begin := func() *world {
		w := newWorld(plainLabel)
		w.have(set)
		for n, nodeType := range types {
			w.have(podFor(w.creation(set, n), nodeType))
		}
		return w
	}
	t.Run("repeated attempts", func(t *testing.T) {
		for n, want := range types {
			w := begin()
			w.hearGone(podFor(w.creation(set, n), want)) // another UID: nothing changes
			for attempt := range 5 {
				if got := w.assign(w.creation(set, n)); got != want {
					t.Fatalf("attempt %d at db-%d: got %q, want %q", attempt, n, got, want)
				}
			}
			if kept := w.reservations[set.UID]; len(kept) != 1 {
				t.Errorf("%d reservations for one name, want 1", len(kept))
			}
		}
	})
	t.Run("all at once, while the old pods still exist", func(t *testing.T) {
		w := begin()
		var sum split.Split
		for n := range types {
			sum = sum.Plus(w.assign(w.creation(set, n)))
		}
		if want := (split.Split{OnDemand: 3, Spot: 2}); sum != want {
			t.Errorf("they get %+v, want %+v", sum, want)
		}
	})
	t.Run("stateful set that has grown, not yet cached", func(t *testing.T) {
		w := begin()
		larger := statefulSet("db", 7, labelsFor("majority-in-on-demand"))
		w.put(larger)
		if got := w.assign(w.creation(set, 5)); got != split.OnDemand {
			t.Errorf("db-5 of 7: got %q, want on-demand", got)
		}
		if got := w.assign(w.creation(set, 6)); got != split.Spot {
			t.Errorf("db-6 of 7: got %q, want spot", got)
		}
	})
}

// TestPendingWatchEventsAreAwaited checks that, before a pod gets a type for which there is no place, the watch's
// pending events are fetched.
func TestPendingWatchEventsAreAwaited(t *testing.T) {
	t.Run("pod deleted", func(t *testing.T) {
		for _, gone := range []split.NodeType{split.OnDemand, split.Spot} {
			w := newWorld(plainLabel)
			_, rs := w.web(4, "2")
			pods := w.grow(rs, 2, 2)
			if gone == split.OnDemand {
				w.take(pods[0])
			} else {
				w.take(pods[3])
			}
			if got := w.assign(w.creation(rs)); got != gone {
				t.Errorf("the replacement of a pod for %s is for %q", gone, got)
			}
		}
	})
	t.Run("pod terminating", func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(4, "2")
		pods := w.grow(rs, 2, 2)
		pods[1].DeletionTimestamp = new(metav1.NewTime(start))
		w.put(pods[1])
		if got := w.assign(w.creation(rs)); got != split.OnDemand {
			t.Errorf("the pod is for %q, want on-demand", got)
		}
	})
	t.Run("scaled up", func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(2, "majority-in-on-demand") // 2 and 0
		w.grow(rs, 2, 0)
		w.put(deployment("web", 5, labelsFor("majority-in-on-demand"))) // 3 and 2
		if got := w.assigned(rs, 3); got != (split.Split{OnDemand: 1, Spot: 2}) {
			t.Errorf("the new pods get %+v", got)
		}
	})
	t.Run("the cluster does not respond", func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(4, "2")
		w.grow(rs, 2, 2)
		w.refuses["list pods"], w.refuses["get deployments"] = errors.New("no"), errors.New("no")
		if got := w.assign(w.creation(rs)); got != split.Spot {
			t.Errorf("the pod is for %q, want spot", got)
		}
	})
	t.Run("pod created after the list", func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(4, "2")
		pods := w.grow(rs, 2, 2)
		for _, p := range pods {
			w.take(p) // all are deleted, but the watch has not delivered it
		}
		w.during = func() {
			w.during = nil
			// Another pod of the same ReplicaSet is admitted, created and delivered.
			c := w.creation(rs)
			nodeType := w.assign(c)
			w.have(podFor(c, nodeType))
		}
		if got := w.assigned(rs, 3); got != (split.Split{OnDemand: 1, Spot: 2}) {
			t.Errorf("the other pods get %+v", got)
		}
	})
	t.Run("pod in the list, cached meanwhile", func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(4, "2")
		for _, p := range w.grow(rs, 2, 2) {
			w.take(p)
		}
		c := w.creation(rs)
		made := podFor(c, w.assign(c))
		w.put(made)
		w.during = func() { w.during = nil; w.hear(made) }
		if got := w.assigned(rs, 3); got != (split.Split{OnDemand: 1, Spot: 2}) {
			t.Errorf("the other pods get %+v", got)
		}
	})
}

// TestRollout checks that the pods of each ReplicaSet are split separately, so that the new ones are right when the old
// ones are gone.
func TestRollout(t *testing.T) {
	w := newWorld(plainLabel)
	d, old := w.web(5, "3")
	w.grow(old, 3, 2)
	next := revisionOf(d, "def", 2)
	w.have(next)
	if got := w.assigned(next, 5); got != (split.Split{OnDemand: 3, Spot: 2}) {
		t.Errorf("the new pods get %+v", got)
	}
}

// TestPinned checks that a pod that can only run on one node type counts as one of it.
func TestPinned(t *testing.T) {
	w := newWorld(plainLabel)
	_, rs := w.web(3, "1")
	pinned := w.creation(rs)
	pinned.Pinned = func(spot.Label) split.NodeType { return split.Spot }
	if got := w.assign(pinned); got != split.Spot {
		t.Errorf("the pod is for %q, want spot", got)
	}
	if got := w.assigned(rs, 2); got != (split.Split{OnDemand: 1, Spot: 1}) {
		t.Errorf("the other pods get %+v", got)
	}
}

// TestWhoDecides: what the label switches off stays off; otherwise a workload object of
// the server goes before labels.
func TestWhoDecides(t *testing.T) {
	off := map[string]string{"vacant.io/optimize-scheduling": "false"}
	wrong := map[string]string{"vacant.io/optimize-scheduling": "true", "vacant.io/optimize-scheduling-mode": "all"}
	selects := func(d *appsv1.Deployment) {
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "vacant.sh/affinity", Operator: metav1.LabelSelectorOpExists}}
	}
	optsOut := func(d *appsv1.Deployment) { d.Spec.Template.Labels["vacant.io/optimize-scheduling"] = "false" }
	tests := []struct {
		name    string
		exclude []string
		// namespace is the labels of the namespace; again removes them.
		namespace map[string]string
		again     bool
		labels    map[string]string
		asked     api.DistributionMode
		alter     func(*appsv1.Deployment)
		off       bool
		want      split.NodeType
		source    api.DistributionSource
		invalid   bool
	}{
		{name: "nobody asks"},
		{name: "labels", labels: labelsFor("all-in-on-demand"), want: split.OnDemand, source: api.DistributionOfLabels},
		{name: "labels, default of a Deployment", labels: labelsFor(""), want: split.Spot, source: api.DistributionOfLabels},
		{name: "mode without the switch", labels: map[string]string{"vacant.io/optimize-scheduling-mode": "all-in-spot"}},
		{name: "workload", asked: api.ModeAllInOnDemand, want: split.OnDemand, source: api.DistributionOfWorkload},
		{name: "workload and labels", asked: api.ModeAllInOnDemand, labels: labelsFor("all-in-spot"), want: split.OnDemand, source: api.DistributionOfWorkload},
		{name: "workload and invalid labels", asked: api.ModeAllInOnDemand, labels: wrong, want: split.OnDemand, source: api.DistributionOfWorkload, invalid: true},
		{name: "invalid labels", labels: wrong, invalid: true},
		{name: "disabled by a label", labels: off},
		{name: "disabled by a label, with a workload", labels: off, asked: api.ModeAllInOnDemand},
		{name: "selector with the label", labels: labelsFor(""), alter: selects},
		{name: "selector with the label, with a workload", asked: api.ModeAllInSpot, alter: selects},
		{name: "pods opt out", labels: labelsFor(""), alter: optsOut},
		{name: "pods opt out, with a workload", asked: api.ModeAllInSpot, alter: optsOut},
		{name: "excluded namespace", labels: labelsFor(""), exclude: []string{shop}},
		{name: "excluded namespace, with a workload", asked: api.ModeAllInSpot, exclude: []string{shop}},
		{name: "namespace opts out", labels: labelsFor(""), namespace: off},
		{name: "namespace opts out, with a workload", asked: api.ModeAllInSpot, namespace: off},
		{name: "namespace no longer opts out", labels: labelsFor(""), namespace: off, again: true, want: split.Spot, source: api.DistributionOfLabels},
		{name: "everything disabled", labels: labelsFor(""), asked: api.ModeAllInSpot, off: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(plainLabel)
			w.Off, w.Exclude = test.off, test.exclude
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop, UID: "shop", Labels: test.namespace}}
			w.hear(namespace)
			d := deployment("web", 1, test.labels)
			if test.alter != nil {
				test.alter(d)
			}
			rs := revisionOf(d, "abc", 1)
			w.have(d, rs)
			if test.asked != "" {
				w.Ask(map[Key]Asked{webKey: {api.DistributionSpec{Mode: test.asked}}})
			}
			if before := w.changed[webKey]; test.again {
				namespace.Labels = nil
				if w.hear(namespace); w.changed[webKey] == before {
					t.Error("no change is announced when the namespace opts in")
				}
			}
			if got := w.assign(w.creation(rs)); got != test.want {
				t.Errorf("it is for %q, want %q", got, test.want)
			}
			v, ok := w.View(webKey, false)
			if !ok || v.Managed != (test.want != split.Unset) || v.Source != test.source || (v.Invalid != "") != test.invalid {
				t.Errorf("View(): managed %t by %q, invalid %q", v.Managed, v.Source, v.Invalid)
			}
		})
	}
}

// TestAskReportsChanges checks that only workloads whose settings change are evaluated.
func TestAskReportsChanges(t *testing.T) {
	w := newWorld(plainLabel)
	one, two := Key{kindDeployment, shop, "one"}, Key{kindDeployment, shop, "two"}
	all := func(mode api.DistributionMode) map[Key]Asked {
		return map[Key]Asked{one: {api.DistributionSpec{Mode: api.ModeAllInSpot}}, two: {api.DistributionSpec{Mode: mode}}}
	}
	for _, step := range []struct {
		asked    map[Key]Asked
		one, two int
	}{
		{all(api.ModeAllInSpot), 1, 1},
		{all(api.ModeAllInSpot), 1, 1},
		{all(api.ModeAllInOnDemand), 1, 2},
		{map[Key]Asked{two: {api.DistributionSpec{Mode: api.ModeAllInOnDemand}}}, 2, 2},
		{nil, 2, 3},
	} {
		w.Ask(step.asked)
		if w.changed[one] != step.one || w.changed[two] != step.two {
			t.Errorf("%d changes of one, %d of two, want %d and %d", w.changed[one], w.changed[two], step.one, step.two)
		}
	}
	if w.IsAsked(two) {
		t.Error("IsAsked(two) = true")
	}
}

// TestCost: pods for on-demand nodes are the last to go when a Deployment gets smaller.
// Nobody overrules what the pods bring along, and a StatefulSet does not look at it.
func TestCost(t *testing.T) {
	own := deployment("own", 2, labelsFor("1"))
	own.Spec.Template.Annotations = map[string]string{split.AnnotationDeletionCost: "7"}
	plain := deployment("web", 2, labelsFor("1"))
	set := statefulSet("db", 2, labelsFor("1"))
	for _, test := range []struct {
		name    string
		objects []object
		owner   object
		first   *int32
	}{
		{"deployment", []object{plain}, revisionOf(plain, "abc", 1), new(int32(100))},
		{"deployment with costs of its own", []object{own}, revisionOf(own, "abc", 1), nil},
		{"stateful set", nil, set, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(plainLabel)
			w.have(append(test.objects, test.owner)...)
			creation := func(n int) webhook.Creation {
				if test.owner == object(set) {
					return w.creation(set, n)
				}
				return w.creation(test.owner)
			}
			for n, want := range []*int32{test.first, nil} {
				a := w.Assign(context.Background(), creation(n))
				if (a.Cost == nil) != (want == nil) || want != nil && *a.Cost != *want {
					t.Errorf("pod %d, for %s: cost %v, want %v", n, a.Type, a.Cost, want)
				}
			}
		})
	}
}

// TestAssignIsBoundedByTheRequest checks that waiting for the cluster's response ends with the request.
func TestAssignIsBoundedByTheRequest(t *testing.T) {
	w := newWorld(plainLabel)
	d := deployment("web", 2, labelsFor(""))
	rs := revisionOf(d, "abc", 1)
	w.put(d, rs)
	w.refuses["get replicasets"] = context.DeadlineExceeded
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if got := w.Assign(ctx, w.creation(rs)); got.Type != split.Unset || got.Label.Key != plainLabel {
		t.Errorf("got %+v, want no node type", got)
	}
	if _, kept := w.reservations[types.UID("rs-web-abc")]; kept {
		t.Error("a reservation for an unknown pod")
	}
}

// TestOneAsksForAll: when a workload grows, one pod of the burst asks for its size, and an
// event that is older than the answer does not undo that.
func TestOneAsksForAll(t *testing.T) {
	w := newWorld(plainLabel)
	d, rs := w.web(2, "5")
	d.Generation = 1
	w.have(d)
	w.grow(rs, 2, 0)
	grown := d.DeepCopy()
	grown.Generation, grown.Spec.Replicas = 2, new(int32(10))
	w.put(grown)
	sum := w.assigned(rs, 4)
	late := d.DeepCopy()
	late.Status.UpdatedReplicas = 1
	w.hear(late)
	more := w.assigned(rs, 4)
	sum = split.Split{OnDemand: sum.OnDemand + more.OnDemand, Spot: sum.Spot + more.Spot}
	if sum != (split.Split{OnDemand: 3, Spot: 5}) {
		t.Errorf("the new pods are %+v, want 3 and 5", sum)
	}
	if n := w.requests("get deployments"); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	if n := w.requests("list pods"); n != 0 {
		t.Errorf("%d lists of pods, want none", n)
	}
}

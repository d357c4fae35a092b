package replacement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

var podsResource = schema.GroupResource{Resource: "pods"}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// TestOneAtATime checks that the next pod of a workload is evicted only when the previous one is gone and its
// replacement is ready.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, append(nodes(), deployment("web", "all-in-on-demand", 0, 3)...)...)
		w.run()
		if got := w.evictions(); got != "web-2" {
			t.Fatalf("evicted %s, want web-2", got)
		}
		// The watch has not delivered the deletion yet, and something else happens.
		w.Changed(keyOf("web"))
		pass(time.Minute)
		if got := w.evictions(); got != "web-2" {
			t.Errorf("evicted %s while web-2 is terminating, want no other", got)
		}
		w.wantState(keyOf("web"), api.DistributionWaiting, "web-2 is terminating")
		w.remove("web-2")
		pass(time.Minute)
		if got := w.evictions(); got != "web-2" {
			t.Errorf("evicted %s while a pod is missing, want no other", got)
		}
		fresh := pod("web", 3, split.OnDemand)
		fresh.Status.Conditions[0].Status = corev1.ConditionFalse
		w.add(fresh)
		pass(time.Minute)
		if got := w.evictions(); got != "web-2" {
			t.Errorf("evicted %s while the new pod is not ready, want no other", got)
		}
		w.wantState(keyOf("web"), api.DistributionWaiting, "web-3 is not ready")
		fresh = fresh.DeepCopy()
		fresh.Status.Conditions[0].Status = corev1.ConditionTrue
		w.update("pods", fresh)
		pass(time.Second)
		if got := w.evictions(); got != "web-2 web-1" {
			t.Errorf("evicted %s when all pods are ready, want web-2 web-1", got)
		}
		w.remove("web-1")
		w.add(pod("web", 4, split.OnDemand))
		pass(time.Second)
		w.remove("web-0")
		w.add(pod("web", 5, split.OnDemand))
		pass(time.Second)
		w.wantState(keyOf("web"), api.DistributionConverged, "")
		r, n := w.last(keyOf("web"))
		if r.Distribution.Replaced != 3 || r.Distribution.OnDemand != 3 || w.reasons[split.ReasonMismatch] != 3 {
			t.Errorf("report %+v, counted %v", r.Distribution, w.reasons)
		}
		pass(10 * time.Minute)
		if _, later := w.last(keyOf("web")); later != n {
			t.Errorf("%d reports without a change", later-n)
		}
	})
}

// TestAnswers covers the responses to an eviction.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		name  string
		err   error
		again bool // it is requested again while the pod still exists
		state api.DistributionState
		says  string
	}{
		{"done", nil, false, api.DistributionWaiting, "web-1 is terminating"},
		{"pod already deleted", apierrors.NewNotFound(podsResource, "web-1"), false, api.DistributionWaiting, "web-1 is terminating"},
		{"other pod of the same name", apierrors.NewConflict(podsResource, "web-1", errors.New("uid")), false, api.DistributionWaiting, "web-1 is terminating"},
		{"disruption budget", apierrors.NewTooManyRequests("no", 0), true, api.DistributionWaiting, "a disruption budget does not allow evicting pod web-1 now"},
		{"forbidden", apierrors.NewForbidden(podsResource, "web-1", errors.New("rbac")), true, api.DistributionWaiting, "grant create on pods/eviction"},
		{"rejected", apierrors.NewBadRequest("no"), true, api.DistributionWaiting, "evict pod web-1: no"},
	} {
		bubble(t, test.name, func(t *testing.T) {
			w := newWorld(t, append(nodes(), deployment("web", "all-in-on-demand", 0, 2)...)...)
			w.answer = func(string) (bool, error) { return false, test.err }
			w.run()
			w.wantState(keyOf("web"), test.state, test.says)
			pass(20 * time.Second)
			if n := strings.Count(w.evictions(), "web-1"); (n > 1) != test.again || n > 6 {
				t.Errorf("evicted %d times", n)
			}
			if strings.Contains(w.evictions(), "web-0") {
				t.Error("the other pod was evicted")
			}
		})
	}
	bubble(t, "the answer is lost, and the pod goes", func(t *testing.T) {
		objects := deployment("web", "all-in-on-demand", 1, 1)
		w := newWorld(t, append(nodes(), objects...)...)
		w.answer = func(string) (bool, error) { return false, context.DeadlineExceeded }
		w.run()
		if got := w.evictions(); got != "web-1" {
			t.Fatalf("evicted %s, want web-1", got)
		}
		// Before the watch delivers the deletion, the settings are reversed.
		d, ok := objects[0].DeepCopyObject().(*appsv1.Deployment)
		if !ok {
			t.Fatal("the object is not a deployment")
		}
		d.Labels = labelsFor("all-in-spot")
		w.update("deployments", d)
		pass(2 * time.Second)
		if got := w.evictions(); got != "web-1" {
			t.Errorf("evicted %s while the outcome is unknown, want no other", got)
		}
		pass(time.Minute)
		if got := w.evictions(); !strings.HasPrefix(got, "web-1 web-0") {
			t.Errorf("evicted %s once the pod turned out to be still there", got)
		}
	})
	bubble(t, "no evictions in the cluster", func(t *testing.T) {
		w := newWorld(t, append(nodes(), deployment("web", "all-in-on-demand", 0, 2)...)...)
		w.answer = func(string) (bool, error) { return false, apierrors.NewMethodNotSupported(podsResource, "create") }
		w.run()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !slices.Equal(w.deleted, []string{"web-1/uid-web-1"}) {
			t.Errorf("deleted %v, want web-1", w.deleted)
		}
	})
}

// comeBack recreates each evicted pod with the same node type.
func (w *world) comeBack(name string) {
	n := 100
	w.answer = func(evicted string) (bool, error) {
		n++
		w.add(pod(name, n, split.Spot))
		return true, nil
	}
}

// TestUselessReplacementsBackOff checks that pods that are recreated with the same node type are replaced at increasing
// intervals, and that a new target is tried at once.
func TestUselessReplacementsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := deployment("web", "all-in-on-demand", 0, 3)
		w := newWorld(t, append(nodes(), objects...)...)
		w.comeBack("web")
		w.run()
		count := func() int { return len(strings.Fields(w.evictions())) }
		pass(time.Second)
		if count() != 1 {
			t.Fatalf("%d evictions at once, want 1", count())
		}
		w.wantState(keyOf("web"), api.DistributionBlocked, "1 replaced pods came back with the same type")
		for _, step := range []struct {
			until time.Duration
			want  int
		}{{28 * time.Second, 1}, {5 * time.Second, 2}, {50 * time.Second, 2}, {15 * time.Second, 3}, {110 * time.Second, 3}, {15 * time.Second, 4}} {
			pass(step.until)
			if count() != step.want {
				t.Errorf("%d evictions, want %d", count(), step.want)
			}
		}
		pass(24 * time.Hour)
		if n := count(); n < 25 || n > 35 {
			t.Errorf("%d evictions after a day, want about one an hour", n)
		}
		before := count()
		d, ok := objects[0].DeepCopyObject().(*appsv1.Deployment)
		if !ok {
			t.Fatal("the object is not a deployment")
		}
		d.Labels = labelsFor("majority-in-on-demand")
		w.update("deployments", d)
		pass(time.Second)
		if count() == before {
			w.wantState(keyOf("web"), api.DistributionReplacing, "")
			t.Error("a new target is not tried at once")
		}
	})
}

// TestHold: while new pods would not be split, none is replaced for its type.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, append(nodes(), deployment("web", "all-in-on-demand", 0, 2)...)...)
		w.held = "the webhook is not reached"
		w.run()
		pass(time.Minute)
		if got := w.evictions(); got != "" {
			t.Errorf("evicted %s, want none", got)
		}
		w.wantState(keyOf("web"), api.DistributionBlocked, "the webhook is not reached")
		w.mu.Lock()
		w.held = ""
		w.mu.Unlock()
		w.LookAtAll()
		synctest.Wait()
		if got := w.evictions(); got != "web-1" {
			t.Errorf("evicted %s, want web-1", got)
		}
	})
}

// TestManyWorkloads checks that only some pods of a cluster are evicted at once, however many workloads are off target,
// and that the others follow.
func TestManyWorkloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := nodes()
		for n := range maxGoing + 20 {
			objects = append(objects, deployment(fmt.Sprintf("web%d", n), "all-in-on-demand", 0, 1)...)
		}
		w := newWorld(t, objects...)
		w.run()
		pass(10 * time.Second)
		evicted := strings.Fields(w.evictions())
		if len(evicted) != maxGoing {
			t.Fatalf("%d pods terminating at a time, want maxGoing", len(evicted))
		}
		for _, name := range evicted[:15] {
			deployment := strings.TrimSuffix(name, "-0")
			w.remove(name)
			w.add(pod(deployment, 1, split.OnDemand))
		}
		pass(10 * time.Second)
		if got := len(strings.Fields(w.evictions())); got != maxGoing+15 {
			t.Errorf("%d evictions in total, want %d", got, maxGoing+15)
		}
	})
}

// TestDeletedWorkloadsAreForgotten checks that nothing of deleted workloads stays in memory.
func TestDeletedWorkloadsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nodes()...)
		w.answer = func(string) (bool, error) { return true, nil }
		w.run()
		const rounds, each = 8, 25
		for round := range rounds {
			for k := range each {
				w.add(deployment(fmt.Sprintf("web%d-%d", round, k), "all-in-on-demand", 0, 1)...)
			}
			pass(time.Second)
			for k := range each {
				name := fmt.Sprintf("web%d-%d", round, k)
				w.must(w.client.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("deployments"), shop, name))
				w.must(w.client.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("replicasets"), shop, name+"-abc"))
			}
			pass(time.Second)
		}
		if got := len(strings.Fields(w.evictions())); got != rounds*each {
			t.Errorf("%d evictions, want rounds*each", got)
		}
		pass(2 * time.Minute)
		w.Replacement.mu.Lock()
		defer w.Replacement.mu.Unlock()
		if a, b, c, d := len(w.going), len(w.tries), len(w.done), len(w.Replacement.told); a+b+c+d > 0 {
			t.Errorf("%d going, %d tries, %d done and %d told left, want none", a, b, c, d)
		}
		if w.queue.Len() != 0 {
			t.Errorf("%d in the queue, want none", w.queue.Len())
		}
		if r, _ := w.last(keyOf("web7-7")); !r.Gone {
			t.Errorf("last report %+v, want it gone", r)
		}
	})
}

// TestAbsent: what a workload object of the server asks for, and the cluster does not
// have, is said to be absent.
func TestAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run()
		w.inventory.Ask(map[workloadKey]inventory.Asked{keyOf("web"): {}})
		pass(time.Second)
		w.wantState(keyOf("web"), api.DistributionAbsent, "no such workload")
		w.add(deployment("web", "", 0, 1)...)
		pass(time.Second)
		if r, _ := w.last(keyOf("web")); r.Source != api.DistributionOfWorkload || r.Distribution.State != api.DistributionConverged {
			t.Errorf("report %+v, want it converged for the workload", r)
		}
		w.inventory.Ask(nil)
		pass(time.Second)
		if r, _ := w.last(keyOf("web")); r.Gone || r.Source == api.DistributionOfWorkload {
			t.Errorf("report %+v, want it for the labels", r)
		}
	})
}

// TestCosts: pods say in which order they go, in the other order while there are too
// many of one type and too few of the other.
func TestCosts(t *testing.T) {
	costs := func(w *world) string {
		list, err := w.client.CoreV1().Pods(shop).List(t.Context(), metav1.ListOptions{})
		w.must(err)
		var out []string
		for i := range list.Items {
			out = append(out, list.Items[i].Name+"="+list.Items[i].Annotations[split.AnnotationDeletionCost])
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	bubble(t, "set and restored", func(t *testing.T) {
		objects := deployment("web", "majority-in-on-demand", 2, 1)
		w := newWorld(t, append(nodes(), objects...)...)
		w.run()
		if got := costs(w); got != "web-0=100 web-1=100 web-2=" {
			t.Errorf("costs %s with the split", got)
		}
		d, ok := objects[0].DeepCopyObject().(*appsv1.Deployment)
		if !ok {
			t.Fatal("the object is not a deployment")
		}
		d.Labels = labelsFor("all-in-spot")
		w.update("deployments", d)
		pass(time.Second)
		if got := costs(w); got != "web-0=-100 web-1=-100 web-2=" && got != "web-0=-100 web-1=100 web-2=" {
			t.Errorf("costs %s with too many pods on on-demand nodes", got)
		}
		d = d.DeepCopy()
		d.Labels = labelsFor("majority-in-on-demand")
		w.update("deployments", d)
		pass(time.Second)
		if got := costs(w); !strings.HasPrefix(got, "web-0=100") {
			t.Errorf("costs %s with the split again", got)
		}
	})
	bubble(t, "of their own", func(t *testing.T) {
		objects := deployment("web", "majority-in-on-demand", 2, 1)
		d, ok := objects[0].(*appsv1.Deployment)
		if !ok {
			t.Fatal("the object is not a deployment")
		}
		d.Spec.Template.Annotations = map[string]string{split.AnnotationDeletionCost: "7"}
		for _, o := range objects[2:] {
			if p, ok := o.(*corev1.Pod); ok {
				p.Annotations = map[string]string{split.AnnotationDeletionCost: "7"}
			}
		}
		w := newWorld(t, append(nodes(), objects...)...)
		w.run()
		if got := costs(w); got != "web-0=7 web-1=7 web-2=7" {
			t.Errorf("costs %s, want the own ones", got)
		}
	})
	bubble(t, "not allowed", func(t *testing.T) {
		objects := deployment("web", "majority-in-on-demand", 2, 1)
		if p, ok := objects[2].(*corev1.Pod); ok {
			p.Annotations = nil
		}
		w := newWorld(t, append(nodes(), objects...)...)
		w.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(podsResource, "web-0", errors.New("rbac"))
		})
		w.run()
		w.wantState(keyOf("web"), api.DistributionConverged, "set the deletion cost of pod web-0")
	})
}

// TestNodeEnds checks that pods leave a node that is about to terminate one after the other, and shortly before the end
// without waiting for each other. New pods are kept off it.
func TestNodeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, append(nodes(), deployment("web", "all-in-spot", 0, 3)...)...)
		w.run()
		pass(time.Second)
		if got := w.evictions(); got != "" {
			t.Fatalf("evicted %s, want none", got)
		}
		end := time.Now().Add(2 * time.Minute)
		w.must(w.Interrupt(t.Context(), "spot", end))
		pass(time.Second)
		if got := w.evictions(); got != "web-2" {
			t.Errorf("evicted %s, want web-2", got)
		}
		pass(60 * time.Second) // it is not deleted
		if got := w.evictions(); got != "web-2" {
			t.Errorf("evicted %s while there is time, want web-2", got)
		}
		pass(20 * time.Second)
		if got := w.evictions(); !strings.Contains(got, "web-1") {
			t.Errorf("evicted %s shortly before the end, want web-1, too", got)
		}
		if w.reasons[split.ReasonNodeEnds] < 2 {
			t.Errorf("unexpected counts %v", w.reasons)
		}
	})
}

func (w *world) taints() string {
	n, err := w.client.CoreV1().Nodes().Get(w.t.Context(), "spot", metav1.GetOptions{})
	w.must(err)
	var out []string
	for _, taint := range n.Spec.Taints {
		out = append(out, fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect))
	}
	return strings.Join(out, " ")
}

// TestFence checks that nodes that are about to terminate accept no new pods until that is canceled, or until they
// still exist long afterwards.
func TestFence(t *testing.T) {
	bubble(t, "by hand", func(t *testing.T) {
		w := newWorld(t, nodes()...)
		w.run()
		end := time.Now().Add(time.Hour)
		for _, node := range []string{"spot", "spot"} { // repeating it changes nothing
			w.must(w.Interrupt(t.Context(), node, end))
		}
		if got, want := w.taints(), fmt.Sprintf("%s=%d:NoSchedule", spot.TaintInterruption, end.Unix()); got != want {
			t.Errorf("taints: %s, want %s", got, want)
		}
		w.must(w.Interrupt(t.Context(), "spot", end.Add(time.Minute)))
		if got, want := w.taints(), fmt.Sprintf("%s=%d:NoSchedule", spot.TaintInterruption, end.Add(time.Minute).Unix()); got != want {
			t.Errorf("taints %s after a new deadline, want %s", got, want)
		}
		w.must(w.Withdraw(t.Context(), "spot"))
		w.must(w.Withdraw(t.Context(), "spot"))
		if got := w.taints(); got != "" {
			t.Errorf("taints %s after the withdrawal, want none", got)
		}
		for _, err := range []error{w.Interrupt(t.Context(), "no", end), w.Withdraw(t.Context(), "no")} {
			if !errors.Is(err, spot.ErrNoNode) {
				t.Errorf("unknown node: error %v, want ErrNoNode", err)
			}
		}
	})
	bubble(t, "outlived", func(t *testing.T) {
		w := newWorld(t, nodes()...)
		w.run()
		w.must(w.Interrupt(t.Context(), "spot", time.Now().Add(time.Minute)))
		pass(10 * time.Minute)
		if w.taints() == "" {
			t.Error("the taint was removed too early")
		}
		pass(2 * time.Minute)
		if got := w.taints(); got != "" {
			t.Errorf("taints %s of a node that outlived its deadline, want none", got)
		}
	})
	bubble(t, "its provider goes on saying that it ends", func(t *testing.T) {
		list := nodes()
		n, ok := list[1].(*corev1.Node)
		if !ok {
			t.Fatal("the object is not a node")
		}
		w := newWorld(t, list...)
		w.run()
		n = n.DeepCopy()
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "TerminateScheduled", Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
		w.update("nodes", n)
		pass(time.Second)
		if !strings.HasPrefix(w.taints(), spot.TaintInterruption) {
			t.Errorf("taints %s, want the own one first", w.taints())
		}
		pass(time.Hour)
		updates := 0
		for _, a := range w.client.Actions() {
			if a.Matches("update", "nodes") {
				updates++
			}
		}
		if updates != 1 {
			t.Errorf("the node was written %d times, want once", updates)
		}
	})
}

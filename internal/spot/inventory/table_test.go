package inventory

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// TestFollows lists and watches a cluster that does not always let it.
func TestFollows(t *testing.T) {
	for _, resource := range []string{"nodes", "deployments", "statefulsets", "replicasets", "pods", "namespaces"} {
		for _, verb := range []string{"list", "watch"} {
			t.Run(verb+" "+resource, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { followCluster(t, verb, resource) })
			})
		}
	}
}

// running starts the inventory of a cluster, which runs until stop is called.
func running(t *testing.T, clients kubernetes.Interface) (i *Inventory, stop func()) {
	i = New(Options{
		Client: clients, Informer: informer.New("eu", clients.CoreV1(), nil), Label: spot.LabelOf(plainLabel),
		Changed: func(Key) {}, NodeEnds: func(string) {},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := i.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return i, func() { cancel(); group.Wait() }
}

func followCluster(t *testing.T, verb, resource string) {
	clients := fake.NewClientset(deployment("web", 2, labelsFor("")))
	var mu sync.Mutex
	refusal := errors.New("not now")
	refuse := func() error {
		mu.Lock()
		defer mu.Unlock()
		return refusal
	}
	clients.PrependReactor("list", resource, func(clienttesting.Action) (bool, kruntime.Object, error) {
		err := refuse()
		return verb == "list" && err != nil, nil, err
	})
	clients.PrependWatchReactor(resource, func(clienttesting.Action) (bool, watch.Interface, error) {
		err := refuse()
		return verb == "watch" && err != nil, nil, err
	})
	i, stop := running(t, clients)
	defer stop()
	synctest.Wait()
	if err := i.Failures()[resource]; !errors.Is(err, refusal) || len(i.Failures()) != 1 {
		t.Errorf("unexpected failures %v", i.Failures())
	}
	select {
	case <-i.Synced():
		if verb == "list" {
			t.Error("synced although a list fails")
		}
	default:
		if verb == "watch" {
			t.Error("not synced although everything was listed")
		}
	}
	mu.Lock()
	refusal = nil
	mu.Unlock()
	faketime.Sleep(10 * time.Second)
	synctest.Wait()
	if len(i.Failures()) != 0 {
		t.Errorf("failures %v after the recovery", i.Failures())
	}
	select {
	case <-i.Synced():
	default:
		t.Error("not synced after the recovery")
	}
	// Events of the watch count.
	if _, err := clients.AppsV1().Deployments(shop).Create(t.Context(), deployment("api", 3, labelsFor("1")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := clients.AppsV1().Deployments(shop).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if v, ok := i.View(Key{kindDeployment, shop, "api"}, false); !ok || v.Target.Split != (split.Split{OnDemand: 1, Spot: 2}) {
		t.Errorf("view of a new deployment: %+v", v)
	}
	if _, ok := i.View(webKey, false); ok {
		t.Error("a deleted deployment is still shown")
	}
}

// TestListedAgain: after a watch was lost, what is not in the new list is gone.
func TestListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(plainLabel)
		_, rs := w.web(3, "1")
		pods := w.grow(rs, 1, 2)
		clients := fake.NewClientset(w.all()...)
		var mu sync.Mutex
		watches := map[string]*watch.FakeWatcher{}
		clients.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
			mu.Lock()
			defer mu.Unlock()
			watches[action.GetResource().Resource] = watch.NewFake()
			return true, watches[action.GetResource().Resource], nil
		})
		i, stop := running(t, clients)
		defer stop()
		synctest.Wait()
		lose := func(resource string) {
			mu.Lock()
			lost := watches[resource]
			mu.Unlock()
			lost.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
			faketime.Sleep(10 * time.Second)
			synctest.Wait()
		}
		shows := &world{Inventory: i}
		shows.wantView(t, webKey, split.Split{OnDemand: 1, Spot: 2})
		if err := clients.CoreV1().Pods(shop).Delete(t.Context(), pods[1].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		shows.wantView(t, webKey, split.Split{OnDemand: 1, Spot: 2}) // not delivered
		lose("pods")
		shows.wantView(t, webKey, split.Split{OnDemand: 1, Spot: 1})
		if err := clients.AppsV1().Deployments(shop).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		lose("deployments")
		if _, ok := i.View(webKey, false); ok {
			t.Error("a deployment that is not in the list is still shown")
		}
	})
}

// TestView checks the changes of a workload during which its pods are not replaced.
func TestView(t *testing.T) {
	for _, test := range []struct {
		name  string
		alter func(*appsv1.Deployment)
		old   int
		want  bool // settled
	}{
		{name: "settled", want: true},
		{name: "paused", alter: func(d *appsv1.Deployment) { d.Spec.Paused = true }},
		{name: "controller behind", alter: func(d *appsv1.Deployment) { d.Generation = 2 }},
		{name: "rollout", old: 1},
		{name: "rollout not begun", alter: func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 2 }},
		{name: "scaled", alter: func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)); d.Status.UpdatedReplicas = 4 }},
		{name: "not all pods available", alter: func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(plainLabel)
			d, rs := w.web(3, "1")
			w.grow(revisionOf(d, "old", 0), test.old, 0)
			w.hear(revisionOf(d, "old", 0))
			w.grow(rs, 1, 2)
			if test.alter != nil {
				test.alter(d)
				w.hear(d)
			}
			v, ok := w.View(webKey, false)
			if !ok || (v.Unsettled == "") != test.want || len(v.Pods) != 3 {
				t.Errorf("View(): %d pods, unsettled %q", len(v.Pods), v.Unsettled)
			}
		})
	}
	w := newWorld(plainLabel)
	w.have(deployment("web", 1, labelsFor("")))
	if v, ok := w.View(webKey, false); !ok || v.Unsettled == "" {
		t.Errorf("without a replica set: got %+v", v)
	}
	_, rs := w.web(2, "1")
	w.grow(rs, 1, 1)
	if c := w.creation(rs); w.assign(c) == split.Unset {
		t.Fatal("no node type was assigned")
	}
	if v, _ := w.View(webKey, false); v.Unsettled == "" || !v.Until.Equal(start.Add(reservedFor)) {
		t.Errorf("with a reservation: unsettled %q until %s", v.Unsettled, v.Until)
	}
	going := deployment("web", 2, labelsFor("1"))
	going.DeletionTimestamp = new(metav1.NewTime(start))
	w.have(going)
	if _, ok := w.View(webKey, false); ok {
		t.Error("a terminating deployment is shown")
	}
}

// TestRevisions checks that pods of a StatefulSet with an older revision are not touched, and that the message names a
// strategy that keeps them.
func TestRevisions(t *testing.T) {
	for _, test := range []struct {
		name string
		s    appsv1.StatefulSetUpdateStrategy
	}{
		{"rolling update", appsv1.StatefulSetUpdateStrategy{}},
		{"on delete", appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}},
		{"partition", appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}}},
	} {
		w := newWorld(plainLabel)
		set := statefulSet("db", 2, labelsFor("1"))
		set.Spec.UpdateStrategy, set.Status.UpdateRevision = test.s, "new"
		w.have(set)
		for n, revision := range []string{"old", "new"} {
			p := podFor(w.creation(set, n), split.OnDemand)
			p.Labels["controller-revision-hash"] = revision
			w.have(p)
		}
		v, _ := w.View(Key{kindStatefulSet, shop, "db"}, false)
		if len(v.Pods) != 1 || v.Pods[0].Ordinal != 1 || v.Unsettled == "" {
			t.Errorf("%s: got pods %+v, unsettled %q", test.name, v.Pods, v.Unsettled)
		}
	}
}

// TestKeys checks which workloads are evaluated: those that are split, requested, or invalid, or have pods that were
// split.
func TestKeys(t *testing.T) {
	w := newWorld(plainLabel)
	w.have(deployment("plain", 1, nil), deployment("off", 1, map[string]string{"vacant.io/optimize-scheduling": "false"}))
	w.have(deployment("split", 1, labelsFor("")), deployment("wrong", 1, labelsFor("everywhere")))
	was := deployment("was", 1, nil)
	rs := revisionOf(was, "abc", 1)
	w.have(was, rs)
	w.grow(rs, 0, 1)
	w.Ask(map[Key]Asked{{kindDeployment, shop, "absent"}: {}})
	got := map[string]bool{}
	for _, key := range w.Keys() {
		got[key.Name] = true
	}
	if want := "map[absent:true split:true was:true wrong:true]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if !w.Labelled() {
		t.Error("Labelled() = true without labelled pods")
	}
}

// manyPods gives an inventory a Deployment with n pods of realistic size.
func manyPods(n int) (w *world, rs *appsv1.ReplicaSet) {
	w = newWorld(plainLabel)
	_, rs = w.web(int32(n)+1, "majority-in-on-demand")
	for k := range n {
		c := w.creation(rs)
		p := podFor(c, split.Spot)
		p.Spec = corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", k%100), Volumes: make([]corev1.Volume, 3),
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/team/application:1.2.3", Env: make([]corev1.EnvVar, 20),
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}},
			}},
		}
		p.UID = types.UID(fmt.Sprintf("0f5a7c6e-9a3b-4c8d-b1e2-%012d", k))
		p.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(string(make([]byte, 2048)))}}
		w.hear(p)
	}
	return w, rs
}

// BenchmarkMemory measures the memory of a pod in the inventory.
func BenchmarkMemory(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		w, _ := manyPods(n)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/pod")
		runtime.KeepAlive(w)
	}
}

// BenchmarkAssign measures a decision for a ReplicaSet with 10,000 pods.
func BenchmarkAssign(b *testing.B) {
	w, rs := manyPods(10_000)
	c := w.creation(rs)
	c.DryRun = true
	b.ReportAllocs()
	for b.Loop() {
		if w.Assign(b.Context(), c).Type != split.OnDemand {
			b.Fatal("the pod is not for on-demand nodes")
		}
	}
}

// BenchmarkAssignSmall measures a decision for a small ReplicaSet in a cluster with 10,000 other pods.
func BenchmarkAssignSmall(b *testing.B) {
	w, _ := manyPods(10_000)
	d := deployment("small", 10, labelsFor("5"))
	rs := revisionOf(d, "abc", 1)
	w.have(d, rs)
	w.grow(rs, 4, 5)
	c := w.creation(rs)
	c.DryRun = true
	b.ReportAllocs()
	for b.Loop() {
		if w.Assign(b.Context(), c).Type != split.OnDemand {
			b.Fatal("the pod is not for on-demand nodes")
		}
	}
}

// TestAPanicEndsTheInventoryOnly: who else follows the cluster goes on.
func TestAPanicEndsTheInventoryOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset(deployment("web", 2, labelsFor("")), nodeOf("n1", "spot"))
		shared := informer.New("eu", clients.CoreV1(), nil)
		defer shared.Follow(informer.Follower{})()
		i := New(Options{
			Client: clients, Informer: shared, Label: spot.LabelOf(plainLabel), NodeEnds: func(string) {},
			Changed: func(Key) { panic("over a workload") },
		})
		err := i.Run(t.Context())
		if p, ok := errors.AsType[*recovery.Panic](err); !ok || !strings.Contains(p.Error(), "over a workload") {
			t.Errorf("Run() ended with %v", err)
		}
		select {
		case <-i.Synced():
			t.Error("synced in spite of a fault")
		default:
		}
		if _, err := clients.CoreV1().Nodes().Create(t.Context(), nodeOf("n2", "spot"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		faketime.Sleep(10 * time.Second)
		synctest.Wait()
		if n := shared.Nodes.Len(); n != 2 {
			t.Errorf("the shared cache has %d nodes, want 2", n)
		}
	})
}

package replacement

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func TestMain(m *testing.M) {
	// They delay repeated errors by the real clock, which a test with a simulated clock does not have.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

const shop = "shop"

// world is a cluster, with the component that replaces pods in it.
type world struct {
	t      *testing.T
	client *fake.Clientset
	*Replacement

	mu      sync.Mutex
	evicted []string // names of evicted pods, in order
	deleted []string
	told    []Report
	reasons map[split.Reason]int
	// answer is the result of an eviction: whether the pod is deleted, and the error.
	answer func(pod string) (goes bool, err error)
	held   string
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, client: fake.NewClientset(objects...), reasons: map[split.Reason]int{}}
	// The fake client keeps no history: a new watch would miss what happened since the previous one ended. So every
	// start is rejected as too old, and everything is listed again.
	var mu sync.Mutex
	listed := map[string]bool{}
	w.client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		mu.Lock()
		defer mu.Unlock()
		resource := action.GetResource().Resource
		if listed[resource] = !listed[resource]; listed[resource] {
			return false, nil, nil
		}
		return true, nil, apierrors.NewResourceExpired("the fake client keeps no history")
	})
	w.client.PrependReactor("create", "pods", w.evict)
	w.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if a, ok := action.(clienttesting.DeleteActionImpl); ok && a.DeleteOptions.Preconditions != nil && a.DeleteOptions.Preconditions.UID != nil {
			w.deleted = append(w.deleted, a.Name+"/"+string(*a.DeleteOptions.Preconditions.UID))
		}
		return false, nil, nil
	})
	w.Replacement = New(Options{
		Client: w.client, Hold: func() string { w.mu.Lock(); defer w.mu.Unlock(); return w.held },
		Report:   func(r Report) { w.mu.Lock(); defer w.mu.Unlock(); w.told = append(w.told, r) },
		Replaced: func(r split.Reason) { w.mu.Lock(); defer w.mu.Unlock(); w.reasons[r]++ },
		Logger:   slog.New(slog.DiscardHandler), Now: time.Now,
	})
	return w
}

func (w *world) evict(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok || action.GetSubresource() != "eviction" {
		return false, nil, nil
	}
	eviction, ok := create.GetObject().(*policyv1.Eviction)
	if !ok || eviction.DeleteOptions.Preconditions.UID == nil {
		return true, nil, fmt.Errorf("an eviction without the uid of its pod: %v", create.GetObject())
	}
	w.mu.Lock()
	w.evicted = append(w.evicted, eviction.Name)
	answer := w.answer
	w.mu.Unlock()
	if answer == nil {
		return true, nil, nil
	}
	goes, err := answer(eviction.Name)
	if goes {
		w.remove(eviction.Name)
	}
	return true, nil, err
}

// run starts everything until the test ends.
func (w *world) run() {
	i := inventory.New(inventory.Options{
		Client: w.client, Informer: informer.New("eu", w.client.CoreV1(), nil), Label: spot.LabelOf(api.DefaultNodeTypeKey), ReturnAfter: 5 * time.Minute, Changed: w.Changed, NodeEnds: w.NodeEnds,
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	var group sync.WaitGroup
	for _, run := range []func() error{func() error { return i.Run(ctx) }, func() error { return w.Run(ctx, i) }} {
		group.Go(func() {
			if err := run(); err != nil {
				w.t.Error(err)
			}
		})
	}
	w.t.Cleanup(func() { cancel(); group.Wait() })
	synctest.Wait()
}

// pass advances the clock.
func pass(d time.Duration) {
	faketime.Sleep(d)
	synctest.Wait()
}

func (w *world) evictions() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.evicted, " ")
}

// last returns the last report on a workload.
func (w *world) last(key workloadKey) (last Report, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.told {
		if r.Key == key {
			last, n = r, n+1
		}
	}
	return last, n
}

func (w *world) wantState(key workloadKey, state api.DistributionState, says string) {
	w.t.Helper()
	if r, _ := w.last(key); r.Distribution.State != state || !strings.Contains(r.Distribution.Message, says) {
		w.t.Errorf("%s: reported as %s (%s), want %s (%s)", key.Name, r.Distribution.State, r.Distribution.Message, state, says)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(pod string) {
	w.must(w.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), shop, pod))
}

func (w *world) add(objects ...runtime.Object) {
	for _, o := range objects {
		w.must(w.client.Tracker().Add(o))
	}
}

func (w *world) update(resource string, o runtime.Object) {
	version := appsv1.SchemeGroupVersion
	namespace := shop
	switch o.(type) {
	case *corev1.Pod:
		version = corev1.SchemeGroupVersion
	case *corev1.Node:
		version, namespace = corev1.SchemeGroupVersion, ""
	}
	w.must(w.client.Tracker().Update(version.WithResource(resource), o, namespace))
}

func labelsFor(mode string) map[string]string {
	return map[string]string{"vacant.io/optimize-scheduling": "true", "vacant.io/optimize-scheduling-mode": mode}
}

func keyOf(name string) workloadKey {
	return workloadKey{Kind: api.KindDeployment, Namespace: shop, Name: name}
}

// deployment returns a Deployment with its ReplicaSet, and pods for on-demand and spot nodes.
func deployment(name, mode string, onDemand, spots int) []runtime.Object {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, UID: types.UID(name), Labels: labelsFor(mode)},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(onDemand + spots))},
		Status:     appsv1.DeploymentStatus{UpdatedReplicas: int32(onDemand + spots), AvailableReplicas: int32(onDemand + spots)},
	}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: shop, Name: name + "-abc", UID: types.UID(name + "-abc"),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: d.UID, Controller: new(true)}},
	}}
	objects := []runtime.Object{d, rs}
	for n := range onDemand + spots {
		t := split.OnDemand
		if n >= onDemand {
			t = split.Spot
		}
		objects = append(objects, pod(name, n, t))
	}
	return objects
}

// pod returns a ready pod of a Deployment, on a node of its type.
func pod(deployment string, n int, t split.NodeType) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", deployment, n)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shop, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{spot.LabelAffinity: string(t)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-abc", UID: types.UID(deployment + "-abc"), Controller: new(true),
			}},
			CreationTimestamp: metav1.NewTime(time.Unix(int64(n), 0)),
		},
		Spec:   corev1.PodSpec{NodeName: string(t)},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if t == split.OnDemand {
		p.Annotations = map[string]string{split.AnnotationDeletionCost: "100"}
	}
	return p
}

// nodes returns one node of each type, named after it.
func nodes() []runtime.Object {
	var list []runtime.Object
	for _, t := range []split.NodeType{split.OnDemand, split.Spot} {
		list = append(list, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: string(t), UID: types.UID(t), Labels: map[string]string{api.DefaultNodeTypeKey: string(t)}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	return list
}

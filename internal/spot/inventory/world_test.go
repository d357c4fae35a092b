package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
)

func TestMain(m *testing.M) {
	// They delay repeated errors by the real clock, which a test with a simulated clock does not have.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

const shop = "shop"

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TB is the common part of tests, benchmarks and property tests.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// world is a cluster, and an inventory that gets events from the test. What the cluster has and what the inventory
// knows are separate, because a watch lags behind.
type world struct {
	*Inventory

	mu      sync.Mutex
	has     map[string]map[string]runtime.Object // by resource and namespace/name
	asked   map[string]int                       // requests, by verb and resource
	refuses map[string]error                     // likewise
	// during is called after a list was made and before it arrives.
	during  func()
	now     time.Time
	changed map[Key]int
	ends    []string
	attempt int
}

func newWorld(label string) *world {
	clients := &fake.Clientset{}
	w := &world{
		now: start, changed: map[Key]int{}, asked: map[string]int{}, refuses: map[string]error{},
		has: map[string]map[string]runtime.Object{"namespaces": {}, "nodes": {}, "pods": {}, "deployments": {}, "statefulsets": {}, "replicasets": {}},
	}
	clients.AddReactor("*", "*", w.react)
	shared := informer.New("eu", clients.CoreV1(), nil)
	w.Inventory = New(Options{
		Client: client{clients, w}, Informer: shared, Label: spot.LabelOf(label), ReturnAfter: 5 * time.Minute,
		Changed: func(key Key) { w.changed[key]++ }, NodeEnds: func(node string) { w.ends = append(w.ends, node) },
		Now: func() time.Time { return w.now },
	})
	shared.Attach(w.details)
	return w
}

func (w *world) react(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	resource := action.GetResource().Resource
	what := action.GetVerb() + " " + resource
	w.asked[what]++
	if err := w.refuses[what]; err != nil {
		w.mu.Unlock()
		return true, nil, err
	}
	var answer runtime.Object
	switch a := action.(type) {
	case clienttesting.GetAction:
		answer = w.has[resource][action.GetNamespace()+"/"+a.GetName()]
		if answer == nil {
			w.mu.Unlock()
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, a.GetName())
		}
		answer = answer.DeepCopyObject()
	case clienttesting.ListAction:
		list := &corev1.PodList{}
		for _, name := range slices.Sorted(maps.Keys(w.has["pods"])) {
			list.Items = append(list.Items, *w.has["pods"][name].(*corev1.Pod).DeepCopy())
		}
		answer = list
	}
	w.mu.Unlock()
	return true, answer, nil
}

// client accesses the world. Its lists of pods arrive late.
type client struct {
	kubernetes.Interface
	world *world
}

func (c client) CoreV1() typedcorev1.CoreV1Interface { return core{c.Interface.CoreV1(), c.world} }

type core struct {
	typedcorev1.CoreV1Interface
	world *world
}

func (c core) Pods(namespace string) typedcorev1.PodInterface {
	return lists{c.CoreV1Interface.Pods(namespace), c.world}
}

type lists struct {
	typedcorev1.PodInterface
	world *world
}

func (l lists) List(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	list, err := l.PodInterface.List(ctx, options)
	if during := l.world.during; during != nil {
		during()
	}
	return list, err
}

func resourceOf(o runtime.Object) string {
	switch o.(type) {
	case *corev1.Node:
		return "nodes"
	case *corev1.Namespace:
		return "namespaces"
	case *corev1.Pod:
		return "pods"
	case *appsv1.Deployment:
		return "deployments"
	case *appsv1.StatefulSet:
		return "statefulsets"
	}
	return "replicasets"
}

func nameOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// object is a Kubernetes object.
type object interface {
	runtime.Object
	metav1.Object
}

// put adds objects to the cluster, without an event to the inventory.
func (w *world) put(objects ...object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range objects {
		w.has[resourceOf(o)][nameOf(o)] = o.DeepCopyObject()
	}
}

// all returns the objects in the cluster.
func (w *world) all() (objects []runtime.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.has {
		for _, o := range of {
			objects = append(objects, o.DeepCopyObject())
		}
	}
	return objects
}

// take removes an object from the cluster, without an event.
func (w *world) take(o object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.has[resourceOf(o)], nameOf(o))
}

// filled is a table that the test fills.
type filled interface {
	Put(o runtime.Object) (bool, error)
	Remove(o runtime.Object) (bool, error)
	Len() int
}

func (w *world) table(resource string) filled {
	return w.sorts[slices.IndexFunc(w.sorts, func(s *sort) bool { return s.what == resource })].table.(filled)
}

// hear delivers objects to the inventory.
func (w *world) hear(objects ...object) {
	for _, o := range objects {
		if _, err := w.table(resourceOf(o)).Put(o.DeepCopyObject()); err != nil {
			panic(err)
		}
	}
}

// hearGone delivers a deletion.
func (w *world) hearGone(o object) {
	if _, err := w.table(resourceOf(o)).Remove(o); err != nil {
		panic(err)
	}
}

// have adds objects to both, the usual case.
func (w *world) have(objects ...object) {
	w.put(objects...)
	w.hear(objects...)
}

func (w *world) requests(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[what]
}

// labelsFor returns labels that request a split: a mode, "" for the default, or a number of pods on on-demand nodes.
func labelsFor(mode string) map[string]string {
	labels := map[string]string{"vacant.io/optimize-scheduling": "true"}
	switch _, err := fmt.Sscanf(mode, "%d", new(int)); {
	case err == nil:
		labels["vacant.io/optimize-scheduling-mode"] = "custom"
		labels["vacant.io/optimize-scheduling-mode-custom-on-demand"] = mode
	case mode != "":
		labels["vacant.io/optimize-scheduling-mode"] = mode
	}
	return labels
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
}

func deployment(name string, replicas int32, labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, UID: types.UID("deployment-" + name), Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template()},
		Status:     appsv1.DeploymentStatus{UpdatedReplicas: replicas, AvailableReplicas: replicas},
	}
}

func revisionOf(d *appsv1.Deployment, hash string, revision int) *appsv1.ReplicaSet {
	name := d.Name + "-" + hash
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: name, UID: types.UID("rs-" + name), Labels: map[string]string{podTemplateHash: hash},
		Annotations:     map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(revision)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kindDeployment, Name: d.Name, UID: d.UID, Controller: new(true)}},
	}}
}

func statefulSet(name string, replicas int32, labels map[string]string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, UID: types.UID("set-" + name), Labels: labels},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Template: template()},
		Status:     appsv1.StatefulSetStatus{AvailableReplicas: replicas},
	}
}

// creation returns the attempt to create a pod of a ReplicaSet, or of a StatefulSet with an ordinal.
func (w *world) creation(owner object, ordinal ...int) webhook.Creation {
	w.mu.Lock()
	w.attempt++
	uid := types.UID(fmt.Sprintf("request-%d", w.attempt))
	w.mu.Unlock()
	c := webhook.Creation{
		UID: uid, Namespace: owner.GetNamespace(), Labels: map[string]string{"app": "web"},
		Owner:  metav1.OwnerReference{APIVersion: "apps/v1", Kind: kindReplicaSet, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true)},
		Pinned: func(spot.Label) split.NodeType { return split.Unset },
	}
	if hash := owner.GetLabels()[podTemplateHash]; hash != "" {
		c.Labels[podTemplateHash] = hash
	}
	if len(ordinal) > 0 {
		c.Owner.Kind, c.Name = kindStatefulSet, fmt.Sprintf("%s-%d", owner.GetName(), ordinal[0])
	}
	return c
}

// podFor returns the pod that results from an admitted creation.
func podFor(c webhook.Creation, t split.NodeType) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Namespace, Name: c.Name, UID: "pod-" + c.UID, Labels: maps.Clone(c.Labels), CreationTimestamp: metav1.NewTime(start),
		Annotations: map[string]string{spot.AnnotationAdmission: string(c.UID)}, OwnerReferences: []metav1.OwnerReference{c.Owner},
	}}
	if p.Name == "" {
		p.Name = c.Owner.Name + "-" + string(c.UID)
	}
	if t != split.Unset {
		p.Labels[spot.LabelAffinity] = string(t)
	}
	return p
}

// grow creates pods of a ReplicaSet and delivers them to the inventory.
func (w *world) grow(rs *appsv1.ReplicaSet, onDemand, spots int) (pods []*corev1.Pod) {
	for n := range onDemand + spots {
		t := split.OnDemand
		if n >= onDemand {
			t = split.Spot
		}
		p := podFor(w.creation(rs), t)
		w.have(p)
		pods = append(pods, p)
	}
	return pods
}

// assign returns the node type that a creation gets.
func (w *world) assign(c webhook.Creation) split.NodeType {
	return w.Assign(context.Background(), c).Type
}

// assigned counts the types of n new pods of a ReplicaSet that are not delivered.
func (w *world) assigned(rs *appsv1.ReplicaSet, n int) (s split.Split) {
	for range n {
		s = s.Plus(w.assign(w.creation(rs)))
	}
	return s
}

func (w *world) wantView(t TB, key Key, want split.Split) {
	t.Helper()
	v, ok := w.View(key, false)
	if !ok {
		t.Fatalf("no view of %v", key)
	}
	if live := split.Live(v.Pods); live != want {
		t.Errorf("live split %+v of %v, want %+v", live, key, want)
	}
}

// web creates a Deployment with one ReplicaSet, and delivers both.
func (w *world) web(replicas int32, mode string) (*appsv1.Deployment, *appsv1.ReplicaSet) {
	d := deployment("web", replicas, labelsFor(mode))
	rs := revisionOf(d, "abc", 1)
	w.have(d, rs)
	return d, rs
}

var webKey = Key{kindDeployment, shop, "web"}

const plainLabel = api.DefaultNodeTypeKey

// Node returns whether the cluster has a node, and how it has announced its end: through what ("" for not at all), and
// for when.
func (i *Inventory) Node(name string) (by string, ends time.Time, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.nodes[name]
	if n == nil {
		return "", time.Time{}, false
	}
	return n.by, n.ends, true
}

//go:build integration

package integration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// workloadID names a Deployment or StatefulSet.
type workloadID struct{ kind, namespace, name string }

func (w workloadID) String() string { return w.kind + " " + w.namespace + "/" + w.name }

// podState is the state of a pod from a revision of the cluster on.
type podState struct {
	revision        int64
	seen            time.Time
	uid, name       string
	workload        workloadID // zero = none
	template        string     // the version of the workload that it belongs to
	node            string     // "" before it is scheduled
	affinity        string     // value of its label, "" = none
	admission       string     // value of its annotation, "" = none
	ready, deleting bool
	gone            bool
}

// nodeType returns the type of its node: nodes are named after their type.
func (s podState) nodeType() string { return s.node[:max(0, strings.LastIndex(s.node, "-"))] }

// workloadState is the state of a workload from a revision on.
type workloadState struct {
	revision int64
	workload workloadID
	wanted   int // 0 after its deletion
	// settled says that its controller has seen the latest template and replicas.
	settled bool
}

// history records all states of pods and workloads since the start of the test, from watches, in the order of the
// cluster's revisions.
type history struct {
	mu        sync.Mutex
	pods      []podState
	workloads []workloadState
	present   map[string]podState // by UID
	wanted    map[workloadID]workloadState
	errors    []error
}

// record watches until the test ends.
func record(t *testing.T, p *controlPlane) *history {
	t.Helper()
	h := &history{present: map[string]podState{}, wanted: map[workloadID]workloadState{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, err := range h.errors {
			t.Errorf("the watch missed an event: %v", err)
		}
	})
	pods, deployments, sets := p.client.CoreV1().Pods(""), p.client.AppsV1().Deployments(""), p.client.AppsV1().StatefulSets("")
	running.Go(func() {
		h.follow(ctx, func(o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
			func(o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(ctx, o) })
	})
	running.Go(func() {
		h.follow(ctx, func(o metav1.ListOptions) (runtime.Object, error) { return deployments.List(ctx, o) },
			func(o metav1.ListOptions) (watch.Interface, error) { return deployments.Watch(ctx, o) })
	})
	running.Go(func() {
		h.follow(ctx, func(o metav1.ListOptions) (runtime.Object, error) { return sets.List(ctx, o) },
			func(o metav1.ListOptions) (watch.Interface, error) { return sets.Watch(ctx, o) })
	})
	return h
}

// follow records what exists, then every change. A watch that ends is resumed where it ended, so that nothing is
// missed, or it is an error.
func (h *history) follow(ctx context.Context, list func(metav1.ListOptions) (runtime.Object, error), open func(metav1.ListOptions) (watch.Interface, error)) {
	fail := func(err error) {
		if ctx.Err() == nil {
			h.mu.Lock()
			h.errors = append(h.errors, err)
			h.mu.Unlock()
		}
	}
	all, err := list(metav1.ListOptions{})
	if err != nil {
		fail(err)
		return
	}
	_ = meta.EachListItem(all, func(o runtime.Object) error { h.take(watch.Added, o); return nil })
	accessor, err := meta.ListAccessor(all)
	if err != nil {
		fail(err)
		return
	}
	revision := accessor.GetResourceVersion()
	for ctx.Err() == nil {
		w, err := open(metav1.ListOptions{ResourceVersion: revision, AllowWatchBookmarks: true})
		if err == nil {
			revision, err = h.followFrom(w, revision)
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			fail(err)
			return
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the API server is down or not ready
		}
	}
}

// followFrom records the events of a watch until it ends, and returns the last revision.
func (h *history) followFrom(w watch.Interface, revision string) (string, error) {
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return revision, apierrors.FromObject(event.Object)
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return revision, err
		}
		revision = object.GetResourceVersion()
		h.take(event.Type, event.Object)
	}
	return revision, nil
}

func (h *history) take(event watch.EventType, object runtime.Object) {
	if event == watch.Bookmark {
		return
	}
	gone := event == watch.Deleted
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := object.(type) {
	case *corev1.Pod:
		s := statePod(o)
		s.gone, s.seen = gone, time.Now()
		h.pods = append(h.pods, s)
		if h.present[s.uid] = s; gone {
			delete(h.present, s.uid)
		}
	case *appsv1.Deployment:
		h.takeWorkload("Deployment", o.ObjectMeta, o.Spec.Replicas, gone,
			o.Status.ObservedGeneration == o.Generation && o.Status.UpdatedReplicas == o.Status.Replicas && o.Status.Replicas == *o.Spec.Replicas)
	case *appsv1.StatefulSet:
		h.takeWorkload("StatefulSet", o.ObjectMeta, o.Spec.Replicas, gone,
			o.Status.ObservedGeneration == o.Generation && o.Status.UpdateRevision == o.Status.CurrentRevision && o.Status.Replicas == *o.Spec.Replicas)
	}
}

func (h *history) takeWorkload(kind string, m metav1.ObjectMeta, replicas *int32, gone, settled bool) {
	s := workloadState{workload: workloadID{kind, m.Namespace, m.Name}, revision: revisionOf(m), settled: settled}
	if !gone {
		s.wanted = int(*replicas)
	}
	h.workloads = append(h.workloads, s)
	if h.wanted[s.workload] = s; gone {
		delete(h.wanted, s.workload)
	}
}

func revisionOf(m metav1.ObjectMeta) int64 {
	revision, _ := strconv.ParseInt(m.ResourceVersion, 10, 64) // it is always a number
	return revision
}

func statePod(pod *corev1.Pod) podState {
	s := podState{
		revision: revisionOf(pod.ObjectMeta), uid: string(pod.UID), name: pod.Name, node: pod.Spec.NodeName,
		affinity: pod.Labels["vacant.io/affinity"], admission: pod.Annotations["vacant.io/admission"],
		deleting: pod.DeletionTimestamp != nil,
	}
	for _, c := range pod.Status.Conditions {
		s.ready = s.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	for _, owner := range pod.OwnerReferences {
		switch owner.Kind {
		case "ReplicaSet":
			s.template = pod.Labels["pod-template-hash"]
			s.workload = workloadID{"Deployment", pod.Namespace, strings.TrimSuffix(owner.Name, "-"+s.template)}
		case "StatefulSet":
			s.template = pod.Labels["controller-revision-hash"]
			s.workload = workloadID{"StatefulSet", pod.Namespace, owner.Name}
		}
	}
	return s
}

// counts are the numbers of a workload's pods at one time.
type counts struct {
	wanted, alive, ready, deleting int
	// Ready pods that are not being deleted, by the type of their node and by label.
	onDemandNodes, spotNodes, onDemandLabels, spotLabels, otherLabels int
	templates                                                         int
	settled                                                           bool
}

func (c counts) String() string {
	return fmt.Sprintf("%d wanted, %d alive, %d ready, %d ending: nodes %d on-demand + %d spot, labels %d on-demand + %d spot + %d none; %d templates, settled %t",
		c.wanted, c.alive, c.ready, c.deleting, c.onDemandNodes, c.spotNodes, c.onDemandLabels, c.spotLabels, c.otherLabels, c.templates, c.settled)
}

// complete reports whether every requested replica is ready, and there are no other pods.
func (c counts) complete() bool {
	return c.settled && c.wanted == c.alive && c.alive == c.ready && c.deleting == 0 && c.templates <= 1
}

// is reports whether a complete workload has this split, both by nodes and by labels.
func (c counts) is(onDemand, spot int) bool {
	return c.complete() && c.onDemandNodes == onDemand && c.spotNodes == spot && c.onDemandLabels == onDemand && c.spotLabels == spot && c.otherLabels == 0
}

// counts returns the present counts.
func (h *history) counts(w workloadID) counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := counts{wanted: h.wanted[w].wanted, settled: h.wanted[w].settled}
	templates := map[string]bool{}
	for _, s := range h.present {
		if s.workload != w {
			continue
		}
		if s.deleting {
			c.deleting++
			continue
		}
		templates[s.template] = true
		c.alive++
		if !s.ready {
			continue
		}
		c.ready++
		switch s.nodeType() {
		case onDemandNode:
			c.onDemandNodes++
		case spotNode:
			c.spotNodes++
		}
		switch s.affinity {
		case onDemandNode:
			c.onDemandLabels++
		case spotNode:
			c.spotLabels++
		default:
			c.otherLabels++
		}
	}
	c.templates = len(templates)
	return c
}

// The node types, which are also the values of the pods' labels.
const (
	onDemandNode = "on-demand"
	spotNode     = "spot"
)

// podsOf returns a workload's pods that are not being deleted, by name.
func (h *history) podsOf(w workloadID) []podState {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []podState
	for _, s := range h.present {
		if s.workload == w && !s.deleting {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b podState) int { return cmp.Compare(a.name, b.name) })
	return out
}

// snapshot returns the history so far, in order.
func (h *history) snapshot() (pods []podState, workloads []workloadState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pods, workloads = slices.Clone(h.pods), slices.Clone(h.workloads)
	slices.SortStableFunc(pods, func(a, b podState) int { return cmp.Compare(a.revision, b.revision) })
	slices.SortStableFunc(workloads, func(a, b workloadState) int { return cmp.Compare(a.revision, b.revision) })
	return pods, workloads
}

// most returns the largest number of pods with a label that a workload ever had at the same time.
func (h *history) most(w workloadID, affinity string) int {
	pods, _ := h.snapshot()
	present, most := map[string]bool{}, 0
	for _, s := range pods {
		if s.workload != w || s.affinity != affinity {
			continue
		}
		if present[s.uid] = true; s.gone || s.deleting {
			delete(present, s.uid)
		}
		most = max(most, len(present))
	}
	return most
}

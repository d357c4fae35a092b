//go:build integration

package integration

import (
	"fmt"
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const strategicMerge = types.StrategicMergePatchType

// manifest is a Deployment or StatefulSet to be created.
type manifest struct {
	workloadID
	replicas            int
	labels, annotations map[string]string
	// readyAfter is how long its pods take to become ready.
	readyAfter time.Duration
	// pod changes the template.
	pod func(*corev1.PodTemplateSpec)
	// deployment and set change the rest.
	deployment func(*appsv1.DeploymentSpec)
	set        func(*appsv1.StatefulSetSpec)
}

func (m manifest) template() corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": m.name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: number(int64(0)),
			Containers:                    []corev1.Container{{Name: "c", Image: "none"}},
		},
	}
	if m.readyAfter > 0 {
		template.Annotations = map[string]string{"test/ready-after": m.readyAfter.String()}
	}
	if m.pod != nil {
		m.pod(&template)
	}
	return template
}

// create creates a workload.
func (p *controlPlane) create(m manifest) workloadID {
	p.t.Helper()
	object := metav1.ObjectMeta{Namespace: m.namespace, Name: m.name, Labels: map[string]string{"app": m.name}, Annotations: m.annotations}
	maps.Copy(object.Labels, m.labels)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": m.name}}
	replicas := int32(m.replicas)
	var err error
	switch m.kind {
	case "Deployment":
		spec := appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: m.template()}
		if m.deployment != nil {
			m.deployment(&spec)
		}
		_, err = p.client.AppsV1().Deployments(m.namespace).Create(p.t.Context(), &appsv1.Deployment{ObjectMeta: object, Spec: spec}, metav1.CreateOptions{})
	case "StatefulSet":
		spec := appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector, Template: m.template(), ServiceName: m.name}
		if m.set != nil {
			m.set(&spec)
		}
		_, err = p.client.AppsV1().StatefulSets(m.namespace).Create(p.t.Context(), &appsv1.StatefulSet{ObjectMeta: object, Spec: spec}, metav1.CreateOptions{})
	default:
		err = fmt.Errorf("unknown kind %q", m.kind)
	}
	if err != nil {
		p.t.Fatalf("create %s: %v", m.workloadID, err)
	}
	return m.workloadID
}

// patch changes a workload.
func (p *controlPlane) patch(w workloadID, patch string) {
	p.t.Helper()
	if err := p.tryPatch(w, patch); err != nil {
		p.t.Fatalf("patch %s: %v", w, err)
	}
}

func (p *controlPlane) tryPatch(w workloadID, patch string) error {
	var err error
	if w.kind == "Deployment" {
		_, err = p.client.AppsV1().Deployments(w.namespace).Patch(p.t.Context(), w.name, strategicMerge, []byte(patch), metav1.PatchOptions{})
	} else {
		_, err = p.client.AppsV1().StatefulSets(w.namespace).Patch(p.t.Context(), w.name, strategicMerge, []byte(patch), metav1.PatchOptions{})
	}
	return err
}

// label gives a workload labels.
func (p *controlPlane) label(w workloadID, labels map[string]string) {
	p.t.Helper()
	p.patch(w, fmt.Sprintf(`{"metadata": {"labels": %s}}`, jsonOf(p.t, labels)))
}

func (p *controlPlane) scale(w workloadID, replicas int) {
	p.t.Helper()
	p.patch(w, fmt.Sprintf(`{"spec": {"replicas": %d}}`, replicas))
}

// rollOut changes the template of a workload.
func (p *controlPlane) rollOut(w workloadID, version string) {
	p.t.Helper()
	p.patch(w, fmt.Sprintf(`{"spec": {"template": {"metadata": {"annotations": {"version": %q}}}}}`, version))
}

// clear deletes all workloads in some namespaces and waits until their pods are gone.
func (p *controlPlane) clear(h *history, namespaces ...string) {
	p.t.Helper()
	for _, ns := range namespaces {
		background := metav1.DeletePropagationBackground
		o := metav1.DeleteOptions{PropagationPolicy: &background}
		if err := p.client.AppsV1().Deployments(ns).DeleteCollection(p.t.Context(), o, metav1.ListOptions{}); err != nil {
			p.t.Fatal(err)
		}
		if err := p.client.AppsV1().StatefulSets(ns).DeleteCollection(p.t.Context(), o, metav1.ListOptions{}); err != nil {
			p.t.Fatal(err)
		}
	}
	eventually.True(p.t, "the workloads are deleted", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, s := range h.present {
			for _, ns := range namespaces {
				if s.workload.namespace == ns {
					return false
				}
			}
		}
		return true
	})
}

// becomes waits until the counts of a workload satisfy a condition, and returns the last ones.
func becomes(h *history, w workloadID, ok func(counts) bool) (counts, bool) {
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // the interval between two checks
		c := h.counts(w)
		if ok(c) {
			return c, true
		}
		if time.Now().After(deadline) {
			return c, false
		}
	}
}

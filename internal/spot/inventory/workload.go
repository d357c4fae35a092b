package inventory

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
)

const (
	kindReplicaSet  = "ReplicaSet"
	kindStatefulSet = api.KindStatefulSet
	kindDeployment  = api.KindDeployment
)

// workload is what is kept of a Deployment or StatefulSet.
type workload struct {
	key Key
	uid types.UID
	// generation counts changes of the spec.
	generation int64
	replicas   int64
	settings   spot.Settings
	invalid    string // what is wrong with the labels
	// circular says that the selector contains the label by which pods are split: pods with another
	// value would not match, so their controller would create more of them endlessly.
	circular bool
	pinned   split.NodeType
	ownCost  bool // its pods have their own deletion cost
	optedOut bool // its pods are excluded by label
	deleting bool
	paused   bool
	observed bool // its controller has seen the current spec
	// revision is that of a StatefulSet's new pods; partial says that some of them may keep the
	// previous one permanently.
	revision           string
	partial            bool
	updated, available int64
}

// replicaSet is what is kept of a Deployment's ReplicaSet.
type replicaSet struct {
	uid        types.UID
	deployment types.UID
	owner      Key
	revision   int64
}

func (i *Inventory) followWorkloads() {
	apps := i.Client.AppsV1()
	follow(i, "deployments", apps.Deployments(metav1.NamespaceAll), reduced(i.deploymentOf), i.takeWorkload)
	follow(i, "statefulsets", apps.StatefulSets(metav1.NamespaceAll), reduced(i.statefulSetOf), i.takeWorkload)
	follow(i, "replicasets", apps.ReplicaSets(metav1.NamespaceAll), reduced(replicaSetOf), func(c informer.Change[*replicaSet]) {
		if c.New != nil {
			i.putReplicaSet(c.New)
		} else {
			i.removeReplicaSet(c.Old.uid)
		}
	})
}

// reduced adapts keep, which returns what to keep of an object.
func reduced[O runtime.Object, V any](keep func(O) *V) func(runtime.Object) (*V, bool) {
	return func(object runtime.Object) (*V, bool) {
		o, ok := object.(O)
		if !ok {
			return nil, false
		}
		return keep(o), true
	}
}

func (i *Inventory) takeWorkload(c informer.Change[*workload]) {
	if c.New != nil {
		i.putWorkload(c.New)
	} else {
		i.removeWorkload(c.Old.key, c.Old.uid)
	}
}

func (i *Inventory) reduce(kind string, o metav1.Object, replicas *int32, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) *workload {
	w := &workload{
		key: Key{kind, o.GetNamespace(), o.GetName()}, uid: o.GetUID(), generation: o.GetGeneration(), replicas: 1,
		optedOut: spot.OptedOut(template.Labels), pinned: webhook.Pinned(&template.Spec, i.Label), deleting: o.GetDeletionTimestamp() != nil,
	}
	if replicas != nil {
		w.replicas = int64(*replicas)
	}
	_, w.ownCost = template.Annotations[split.AnnotationDeletionCost]
	var err error
	if w.settings, err = spot.ParseSettings(o.GetLabels(), o.GetAnnotations()); err != nil {
		w.invalid = err.Error()
	}
	w.circular = selectsAffinity(selector)
	return w
}

func selectsAffinity(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	for key := range selector.MatchLabels {
		if spot.IsAffinity(key) {
			return true
		}
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return spot.IsAffinity(r.Key) })
}

func (i *Inventory) deploymentOf(o *appsv1.Deployment) *workload {
	w := i.reduce(kindDeployment, o, o.Spec.Replicas, o.Spec.Selector, &o.Spec.Template)
	w.paused = o.Spec.Paused
	w.observed = o.Status.ObservedGeneration >= o.Generation
	w.updated, w.available = int64(o.Status.UpdatedReplicas), int64(o.Status.AvailableReplicas)
	return w
}

func (i *Inventory) statefulSetOf(o *appsv1.StatefulSet) *workload {
	w := i.reduce(kindStatefulSet, o, o.Spec.Replicas, o.Spec.Selector, &o.Spec.Template)
	w.observed = o.Status.ObservedGeneration >= o.Generation
	w.revision = o.Status.UpdateRevision
	w.available = int64(o.Status.AvailableReplicas)
	s := o.Spec.UpdateStrategy
	w.partial = s.Type == appsv1.OnDeleteStatefulSetStrategyType ||
		s.RollingUpdate != nil && s.RollingUpdate.Partition != nil && *s.RollingUpdate.Partition > 0
	return w
}

func (i *Inventory) putWorkload(w *workload) {
	before := i.workloads[w.key]
	// The cluster's response may be ahead of the watch.
	behind := before != nil && before.uid == w.uid && before.generation > w.generation
	if behind || before != nil && same(before, w) {
		return
	}
	i.workloads[w.key] = w
	i.Changed(w.key)
}

// learn updates a known workload from the cluster's response if it is newer, so that other pods of
// a burst cause no further requests.
func (i *Inventory) learn(w *workload) {
	if before := i.workloads[w.key]; before != nil && before.uid == w.uid && before.generation < w.generation {
		i.workloads[w.key] = w
		i.Changed(w.key)
	}
}

func same(a, b *workload) bool {
	x, y := *a, *b
	x.settings.Enabled, y.settings.Enabled = nil, nil
	enabled := func(s spot.Settings) string {
		if s.Enabled == nil {
			return ""
		}
		return strconv.FormatBool(*s.Enabled)
	}
	return x == y && enabled(a.settings) == enabled(b.settings)
}

func (i *Inventory) removeWorkload(key Key, uid types.UID) {
	if w := i.workloads[key]; w != nil && w.uid == uid {
		delete(i.workloads, key)
		i.Changed(key)
	}
	delete(i.reservations, uid)
}

// replicaSetOf returns what is kept of a ReplicaSet; one without a Deployment has no owner.
func replicaSetOf(o *appsv1.ReplicaSet) *replicaSet {
	rs := &replicaSet{uid: o.UID}
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == kindDeployment {
		rs.deployment, rs.owner = owner.UID, Key{kindDeployment, o.Namespace, owner.Name}
	}
	// The Deployment's controller numbers its ReplicaSets.
	rs.revision, _ = strconv.ParseInt(o.Annotations["deployment.kubernetes.io/revision"], 10, 64)
	return rs
}

func (i *Inventory) putReplicaSet(rs *replicaSet) {
	if before := i.replicaSets[rs.uid]; before != nil && *before == *rs {
		return
	}
	i.replicaSets[rs.uid] = rs
	if rs.deployment != "" {
		add(i.setsOf, rs.deployment, rs.uid, rs)
		i.Changed(rs.owner)
	}
}

func (i *Inventory) removeReplicaSet(uid types.UID) {
	rs := i.replicaSets[uid]
	if rs == nil {
		return
	}
	delete(i.replicaSets, uid)
	delete(i.reservations, uid)
	if rs.deployment != "" {
		drop(i.setsOf, rs.deployment, uid)
		i.Changed(rs.owner)
	}
}

// current returns the ReplicaSet of a Deployment's new pods.
func (i *Inventory) current(w *workload) *replicaSet {
	var newest *replicaSet
	for _, rs := range i.setsOf[w.uid] {
		if newest == nil || rs.revision > newest.revision {
			newest = rs
		}
	}
	return newest
}

// rule returns how the pods of a workload should be split, and who requested it. managed is false
// if nobody did, or if a label excludes the workload.
func (i *Inventory) rule(w *workload) (d api.DistributionSpec, source api.DistributionSource, managed bool) {
	if i.barred(w) != "" {
		return d, "", false
	}
	if asked, ok := i.asked[w.key]; ok {
		return asked.Distribution, api.DistributionOfWorkload, true
	}
	if w.settings.Enabled != nil && w.invalid == "" {
		return w.settings.Distribution, api.DistributionOfLabels, true
	}
	return d, "", false
}

// barred says why a workload is never split, or returns "".
func (i *Inventory) barred(w *workload) string {
	switch on := w.settings.Enabled; {
	case i.Off:
		return "spot is disabled for the cluster"
	case w.circular:
		return "its selector uses " + spot.LabelAffinity + ", so its pods cannot be split"
	case on != nil && !*on, w.optedOut:
		return "its labels disable the split"
	}
	return i.excluded(w.key.Namespace)
}

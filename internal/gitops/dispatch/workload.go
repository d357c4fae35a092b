package dispatch

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
)

var (
	workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
	checks    = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "admissionchecks"}
	configs   = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "multikueueconfigs"}
)

// multiKueue is the controller of the AdmissionChecks that send Workloads to other clusters.
const multiKueue = "kueue.x-k8s.io/multikueue"

// name identifies a Workload.
type name struct{ namespace, name string }

// String returns the name for messages.
func (n name) String() string { return n.namespace + "/" + n.name }

// waiting is what is kept of a Workload that may wait for a cluster.
type waiting struct {
	name
	uid types.UID
	// placement is what decides where it may go.
	placement api.Key
	// checks are its AdmissionChecks that are pending, of whatever controller.
	checks []string
	// nominated are the clusters that it may go to now.
	nominated []string
}

func sameWaiting(a, b waiting) bool {
	return a.name == b.name && a.uid == b.uid && a.placement == b.placement && slices.Equal(a.checks, b.checks) && slices.Equal(a.nominated, b.nominated)
}

// waitingOf returns what is kept of a Workload. ok is false if it does not wait for a cluster: it has
// no quota, has a cluster, has ended or is being taken back.
func waitingOf(object runtime.Object) (w waiting, ok bool) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok || u.GetDeletionTimestamp() != nil || !is(u, "QuotaReserved") || is(u, "Finished") || is(u, "Evicted") {
		return waiting{}, false
	}
	if cluster, _, _ := unstructured.NestedString(u.Object, "status", "clusterName"); cluster != "" {
		return waiting{}, false
	}
	w = waiting{name: name{u.GetNamespace(), u.GetName()}, uid: u.GetUID()}
	w.placement = api.Key{Kind: api.KindPlacement, Namespace: u.GetNamespace(), Name: u.GetLabels()[gitops.PlacementLabel]}
	if w.placement.Name == "" {
		w.placement.Name, _, _ = unstructured.NestedString(u.Object, "spec", "queueName")
	}
	for _, check := range objects(u.Object, "status", "admissionChecks") {
		if check["state"] == "Pending" {
			text, _ := check["name"].(string)
			w.checks = append(w.checks, text)
		}
	}
	w.nominated, _, _ = unstructured.NestedStringSlice(u.Object, "status", "nominatedClusterNames")
	slices.Sort(w.nominated)
	return w, w.placement.Name != "" && len(w.checks) > 0
}

// is reports whether a condition is true.
func is(u *unstructured.Unstructured, condition string) bool {
	return slices.ContainsFunc(objects(u.Object, "status", "conditions"), func(c map[string]any) bool {
		return c["type"] == condition && c["status"] == "True"
	})
}

// objects returns the objects in a list.
func objects(in map[string]any, fields ...string) (all []map[string]any) {
	list, _, _ := unstructured.NestedFieldNoCopy(in, fields...)
	items, _ := list.([]any)
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			all = append(all, o)
		}
	}
	return all
}

// check is what is kept of an AdmissionCheck of MultiKueue: its name, and that of its
// MultiKueueConfig.
type check struct{ name, config string }

func newChecks() *feed.Table[check] {
	return feed.NewTable(func(object runtime.Object) (check, bool) {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return check{}, false
		}
		controller, _, _ := unstructured.NestedString(u.Object, "spec", "controllerName")
		config, _, _ := unstructured.NestedString(u.Object, "spec", "parameters", "name")
		return check{u.GetName(), config}, controller == multiKueue
	}, func(a, b check) bool { return a == b })
}

// config is what is kept of a MultiKueueConfig: the clusters that Workloads may go to.
type config struct {
	name     string
	clusters []string
}

func newConfigs() *feed.Table[config] {
	return feed.NewTable(func(object runtime.Object) (config, bool) {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return config{}, false
		}
		clusters, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "clusters")
		return config{u.GetName(), clusters}, true
	}, func(a, b config) bool { return a.name == b.name && slices.Equal(a.clusters, b.clusters) })
}

package publish

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops/slicing"
)

// API is an API in whose form decisions are written.
type API string

const (
	// Multicluster is the API of the Kubernetes project's SIG Multicluster (KEP-5313).
	Multicluster API = "multicluster"
	// OCM is the API of Open Cluster Management.
	OCM API = "ocm"
)

// APIs are all of them.
var APIs = []API{Multicluster, OCM}

// Labels by which the objects of one store are found.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "scheduler-server"
	storeLabel     = "scheduler/store"
)

// format says what an API's objects look like. Clusters are texts that the format understands.
type format struct {
	resource schema.GroupVersionResource
	// parts divides the clusters of a decision. profile returns the ClusterProfile of a cluster, as
	// namespace/name.
	parts func(decision []api.DecidedCluster, profile func(cluster string) string) []slicing.Part
	// group labels an object from the beginning, show when its clusters may be seen.
	group, show func(placement string, s *slicing.Slice) map[string]string
	// groupOf returns the group in an object's labels.
	groupOf func(labels map[string]string) (slicing.Group, bool)
	// fields leads to the list of clusters, each of which is an object.
	fields []string
	encode func(cluster string) map[string]any
	decode func(cluster map[string]any) string
	// constant are fields that all objects have.
	constant map[string]any
	// status says that the clusters are in the status, which an API server ignores in a new object.
	status bool
}

const (
	decisionKeyLabel   = "multicluster.x-k8s.io/decision-key"
	decisionIndexLabel = "multicluster.x-k8s.io/decision-index"
	placementKeyLabel  = "multicluster.x-k8s.io/placement-key"

	ocmPlacementLabel  = "cluster.open-cluster-management.io/placement"
	ocmGroupIndexLabel = "cluster.open-cluster-management.io/decision-group-index"
	ocmGroupNameLabel  = "cluster.open-cluster-management.io/decision-group-name"
)

var formats = map[API]*format{
	Multicluster: {
		resource: schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "placementdecisions"},
		parts: func(decision []api.DecidedCluster, profile func(string) string) []slicing.Part {
			part := slicing.Part{}
			for _, one := range decision {
				part.Clusters = append(part.Clusters, profile(one.Cluster))
			}
			return []slicing.Part{part}
		},
		group: func(string, *slicing.Slice) map[string]string { return nil },
		show: func(placement string, s *slicing.Slice) map[string]string {
			return map[string]string{decisionKeyLabel: placement, placementKeyLabel: placement, decisionIndexLabel: strconv.Itoa(s.Number - 1)}
		},
		groupOf: func(map[string]string) (slicing.Group, bool) { return slicing.Group{}, true },
		fields:  []string{"decisions"},
		encode: func(cluster string) map[string]any {
			namespace, name, _ := strings.Cut(cluster, "/")
			reference := map[string]any{"name": name}
			if namespace != "" {
				reference["namespace"] = namespace
			}
			return map[string]any{"clusterProfileRef": reference}
		},
		decode: func(cluster map[string]any) string {
			name, _, _ := unstructured.NestedString(cluster, "clusterProfileRef", "name")
			namespace, _, _ := unstructured.NestedString(cluster, "clusterProfileRef", "namespace")
			return namespace + "/" + name
		},
		constant: map[string]any{"schedulerName": managedBy},
	},
	OCM: {
		resource: schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Resource: "placementdecisions"},
		parts:    ocmParts,
		group: func(_ string, s *slicing.Slice) map[string]string {
			return map[string]string{ocmGroupIndexLabel: strconv.FormatInt(s.Group.Index, 10), ocmGroupNameLabel: s.Group.Name}
		},
		show: func(placement string, _ *slicing.Slice) map[string]string {
			return map[string]string{ocmPlacementLabel: placement}
		},
		groupOf: func(labels map[string]string) (slicing.Group, bool) {
			index, err := strconv.ParseInt(labels[ocmGroupIndexLabel], 10, 64)
			return slicing.Group{Index: index, Name: labels[ocmGroupNameLabel]}, err == nil
		},
		fields: []string{"status", "decisions"},
		// Argo CD's generator panics if a value is not a string, so that there is no score.
		encode: func(cluster string) map[string]any { return map[string]any{"clusterName": cluster, "reason": ""} },
		decode: func(cluster map[string]any) string {
			name, _, _ := unstructured.NestedString(cluster, "clusterName")
			return name
		},
		status: true,
	},
}

// ocmParts divides a decision into its groups. One without groups is a group without a name.
func ocmParts(decision []api.DecidedCluster, _ func(string) string) []slicing.Part {
	var parts []slicing.Part
	at := map[slicing.Group]int{}
	for _, one := range decision {
		group := slicing.Group{Name: one.DecisionGroup}
		if one.GroupIndex != nil {
			group.Index = *one.GroupIndex
		}
		i, ok := at[group]
		if !ok {
			i = len(parts)
			at[group] = i
			parts = append(parts, slicing.Part{Group: group})
		}
		parts[i].Clusters = append(parts[i].Clusters, one.Cluster)
	}
	if parts == nil {
		parts = []slicing.Part{{}}
	}
	return parts
}

// object is one slice in the hub.
type object struct {
	slicing.Slice
	placement api.Key
	uid       types.UID
}

// noGroup is the group of a slice whose labels were changed.
var noGroup = slicing.Group{Index: -1}

// nameOf returns the name of the object of a slice.
func nameOf(placement string, number int) string {
	return fmt.Sprintf("%s-decision-%d", placement, number)
}

// read returns what is kept of an object. ok is false if it is not one that the server makes.
func (f *format) read(from *unstructured.Unstructured) (o object, ok bool) {
	labels := from.GetLabels()
	o = object{placement: api.Key{Kind: api.KindPlacement, Namespace: from.GetNamespace(), Name: labels[gitops.PlacementLabel]}, uid: from.GetUID()}
	number, is := strings.CutPrefix(from.GetName(), o.placement.Name+"-decision-")
	var err error
	if o.Number, err = strconv.Atoi(number); !is || err != nil || o.Number < 1 || nameOf(o.placement.Name, o.Number) != from.GetName() {
		return object{}, false
	}
	if o.Group, ok = f.groupOf(labels); !ok {
		o.Group = noGroup
	}
	list, found, err := unstructured.NestedSlice(from.Object, f.fields...)
	for _, one := range list {
		if cluster, ok := one.(map[string]any); ok {
			o.Clusters = append(o.Clusters, f.decode(cluster))
		}
	}
	o.Hidden = !found || err != nil
	for key, value := range f.show(o.placement.Name, &o.Slice) {
		o.Hidden = o.Hidden || labels[key] != value
	}
	return o, true
}

// put writes the clusters of a slice into an object.
func (f *format) put(into *unstructured.Unstructured, clusters []string) error {
	list := make([]any, len(clusters))
	for i, cluster := range clusters {
		list[i] = f.encode(cluster)
	}
	maps.Copy(into.Object, f.constant)
	return unstructured.SetNestedSlice(into.Object, list, f.fields...)
}

// label adds labels to an object.
func label(object *unstructured.Unstructured, more map[string]string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, more)
	object.SetLabels(labels)
}

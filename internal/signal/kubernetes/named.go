package kubernetes

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
)

var (
	definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	serviceResource    = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// named is what is kept of an object of which only the name matters, and whether it changed: a type
// becomes available some time after it is defined.
type named struct{ name, version string }

func namedOf(object runtime.Object) (named, bool) {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || o.Name == "" || len(o.Name) > informer.MaxName {
		return named{}, false
	}
	return named{o.Name, o.ResourceVersion}, true
}

func namedTable() *informer.Table[named] {
	return informer.NewTable(namedOf, func(a, b named) bool { return a == b })
}

// names returns the sorted names of objects.
func names(objects map[informer.UID]named) []string {
	distinct := make(map[string]bool, len(objects))
	for _, o := range objects {
		distinct[o.name] = true
	}
	sorted := slices.Sorted(maps.Keys(distinct))
	if sorted == nil {
		sorted = []string{} // known to be none
	}
	return sorted
}

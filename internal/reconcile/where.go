package reconcile

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// where is where something is: the clusters of a placement, best first; those of a workload with
// their replicas; or the host of a guest.
type where struct {
	clusters []string
	replicas map[string]int64 // only for workloads
}

// whereIs returns the place in an object's status; ok is false if it is not decided.
func whereIs(object api.Object) (at where, ok bool) {
	if object == nil {
		return where{}, false
	}
	if k := decidedAs(object.ObjectKind()); k != nil {
		return k.at(object), true
	}
	return where{}, false
}

func onHost(name string) where {
	if name == "" {
		return where{}
	}
	return where{clusters: []string{name}}
}

// same reports whether two are the same clusters, in any order, with the same replicas.
func (w where) same(other where) bool {
	if w.replicas != nil || other.replicas != nil {
		return maps.Equal(w.replicas, other.replicas)
	}
	return len(w.clusters) == len(other.clusters) && !slices.ContainsFunc(w.clusters, func(name string) bool { return !slices.Contains(other.clusters, name) })
}

// change returns the difference between two.
func (w where) change(key api.Key, to where) api.Change {
	return api.Change{Key: key, From: listed(w.clusters), To: listed(to.clusters), FromReplicas: w.replicas, ToReplicas: to.replicas}
}

// listed returns a list that is not nil, so that it is shown even if it is empty.
func listed(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

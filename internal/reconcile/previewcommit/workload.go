package previewcommit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// workload returns a StalePreviewError if the binding of a workload now differs from the previewed one.
func workload(previewed, now *api.WorkloadStatus) error {
	if !sameBinding(previewed, now) {
		return &StalePreviewError{bindingText(previewed), bindingText(now)}
	}
	return nil
}

// sameBinding reports whether two statuses of a workload are the same decision. The policy and the
// affinity group are part of it, because they determine what happens when a cluster is lost.
func sameBinding(a, b *api.WorkloadStatus) bool {
	return a.Policy == b.Policy && a.ObservedAffinity == b.ObservedAffinity &&
		maps.Equal(a.ReplicasByCluster(), b.ReplicasByCluster()) && maps.Equal(a.Evicting(), b.Evicting()) &&
		maps.Equal(flavorByCluster(a), flavorByCluster(b))
}

// bindingText formats the binding of a workload for a message.
func bindingText(status *api.WorkloadStatus) string {
	text := replicasText(status.ReplicasByCluster())
	if flavors := flavorByCluster(status); len(flavors) > 0 {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(flavors)) {
			parts = append(parts, name+": "+flavors[name])
		}
		text += " with flavors " + Names(parts)
	}
	if leaving := status.Evicting(); len(leaving) > 0 {
		text += ", leaving " + replicasText(leaving) + ","
	}
	if status.ObservedAffinity != "" {
		text += " of affinity group " + strconv.Quote(status.ObservedAffinity)
	}
	if status.Policy == "" {
		return text + " under no policy"
	}
	return text + " under policy " + strconv.Quote(status.Policy)
}

// flavorByCluster returns the flavors of a workload's replicas by cluster, if they have any.
func flavorByCluster(status *api.WorkloadStatus) map[string]string {
	flavors := map[string]string{}
	for _, c := range status.Clusters {
		if c.Flavor != "" {
			flavors[c.Name] = c.Flavor
		}
	}
	return flavors
}

// replicasText formats replicas by cluster for a message.
func replicasText(replicas map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(replicas)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, replicas[name]))
	}
	return Names(parts)
}

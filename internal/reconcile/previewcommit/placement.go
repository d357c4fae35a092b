package previewcommit

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// placement returns the status that a placement gets now in the form that was shown: the clusters
// are in the order of the preview. The error is a StalePreviewError if the clusters differ.
func placement(previewed *api.PlacementStatus, now api.PlacementStatus) (api.PlacementStatus, error) {
	if !sameDecision(previewed, &now) {
		return now, &StalePreviewError{Names(previewed.Clusters), Names(now.Clusters)}
	}
	return inOrder(now, previewed.Clusters), nil
}

// sameDecision reports whether two statuses choose the same clusters. The order depends on scores,
// which change all the time; it matters only if it divides the clusters into groups.
func sameDecision(a, b *api.PlacementStatus) bool {
	if len(a.DecisionGroups) > 0 || len(b.DecisionGroups) > 0 {
		return slices.Equal(a.Clusters, b.Clusters) && slices.EqualFunc(a.DecisionGroups, b.DecisionGroups, func(x, y api.ChosenGroup) bool {
			return x.Index == y.Index && x.Name == y.Name && slices.Equal(x.Clusters, y.Clusters)
		})
	}
	x, y := slices.Sorted(slices.Values(a.Clusters)), slices.Sorted(slices.Values(b.Clusters))
	return slices.Equal(x, y)
}

// inOrder returns a status with its clusters in the order that was shown.
func inOrder(status api.PlacementStatus, clusters []string) api.PlacementStatus {
	if slices.Equal(status.Clusters, clusters) {
		return status
	}
	byName := make(map[string]api.Decision, len(status.Decisions))
	for _, d := range status.Decisions {
		byName[d.Cluster] = d
	}
	status.Clusters = clusters
	status.Decisions = make([]api.Decision, len(clusters))
	for i, name := range clusters {
		d := byName[name]
		d.Cluster, d.Rank = name, int64(i+1)
		status.Decisions[i] = d
	}
	return status
}

package split

// AnnotationDeletionCost holds the deletion cost of a pod in Kubernetes: when a Deployment is
// scaled down, the pods with the lowest cost are deleted first. StatefulSets ignore it.
const AnnotationDeletionCost = "controller.kubernetes.io/pod-deletion-cost"

// Deletion costs. A pod without one has 0.
const (
	costSurplus  int32 = -100
	costSpot     int32 = 0
	costOnDemand int32 = 100
)

// DeletionCosts returns the costs of on-demand and spot pods. Normally spot pods are deleted first.
// While there are too many pods of one type and too few of the other, surplus pods are deleted
// first: scaling then does at once what replacing pods would do one at a time.
func DeletionCosts(target Target, live Split) (onDemand, spot int32) {
	onDemand, spot = costOnDemand, costSpot
	switch {
	case live.OnDemand > target.OnDemand && live.Spot < target.Spot:
		onDemand = costSurplus
	case live.Spot > target.Spot && live.OnDemand < target.OnDemand:
		spot = costSurplus
	}
	return onDemand, spot
}

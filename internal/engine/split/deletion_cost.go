package split

// AnnotationDeletionCost is where Kubernetes reads what the deletion of a pod costs:
// when a Deployment gets smaller, the pods with the lowest cost go first. A
// StatefulSet does not look at it.
const AnnotationDeletionCost = "controller.kubernetes.io/pod-deletion-cost"

// The costs. A pod without one has 0.
const (
	costSurplus  int32 = -100
	costSpot     int32 = 0
	costOnDemand int32 = 100
)

// DeletionCosts are the costs of on-demand and of spot pods. Spot pods are the first
// to go. While there are too many of one type and too few of the other, those of
// which there are too many are: a change of size then does at once what replacing
// pods would do one by one.
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

package expression

import "time"

// Cluster is what an expression reads. Methods are called only for what the expression reads;
// results are not kept or modified.
type Cluster interface {
	// Name returns the cluster's name.
	Name() string
	// UID distinguishes the cluster from an earlier one of the same name, "" if unknown.
	UID() string
	// Generation grows with every change of the cluster's spec or labels.
	Generation() int64
	// CreatedAt returns when the cluster was created, zero if unknown.
	CreatedAt() time.Time
	// Labels returns the cluster's labels.
	Labels() map[string]string
	// Claims returns the cluster's claims, which are named facts about it.
	Claims() map[string]string
	// Taints returns the taints in force.
	Taints() []Taint
	// Conditions returns the cluster's conditions.
	Conditions() []Condition
	// KubernetesVersion returns the version of the cluster's API server, "" if unknown.
	KubernetesVersion() string
	// LeaseSeconds returns the interval in seconds in which the cluster must report, 0 if unknown.
	LeaseSeconds() int64
	// Region returns the region of the cluster, "" if unknown.
	Region() string
	// Zones returns the zones that the cluster spans.
	Zones() []string
	// CloudProvider returns the cloud provider of the cluster, "" if unknown.
	CloudProvider() string
	// CustomResources returns the custom resource definitions of the cluster.
	CustomResources() []string
	// Capacity returns the total amounts by resource, in Kubernetes notation.
	Capacity() map[string]string
	// Allocatable returns the amounts that workloads may use, by resource.
	Allocatable() map[string]string
	// Scores returns the scores of the cluster in the placement score with the given name, in a
	// fixed order. They are nil if the cluster has none with that name or they have expired; an
	// expression that reads them is then not true. expiredAt is zero unless they have expired.
	Scores(resource string) (scores []Score, expiredAt time.Time)
	// Metric returns the value of one of the cluster's metrics, and whether it is usable.
	Metric(name string) (float64, bool)
}

// Score is one score of a cluster.
type Score struct {
	Name  string
	Value int64
}

// Taint keeps placements off a cluster.
type Taint struct {
	Key, Value string
	// Effect is in the spelling of Open Cluster Management: NoSelect, NoSelectIfNew or
	// PreferNoSelect.
	Effect string
	// TimeAdded is when the taint was added, zero if unknown.
	TimeAdded time.Time
}

// Condition is one observation about a cluster.
type Condition struct {
	Type, Status, Reason, Message string
	// LastTransitionAt is when the status last changed, zero if unknown.
	LastTransitionAt time.Time
}

package expression

import "time"

// Cluster is what an expression reads. Nothing is asked for that the expression
// does not read, and nothing is kept or changed.
type Cluster interface {
	// Name is the cluster's name.
	Name() string
	// UID tells the cluster from another that had its name before, "" when unknown.
	UID() string
	// Generation grows with every change of what is declared of the cluster.
	Generation() int64
	// CreatedAt is when the cluster was declared, zero when unknown.
	CreatedAt() time.Time
	// Labels are the cluster's labels.
	Labels() map[string]string
	// Claims are facts about the cluster by name.
	Claims() map[string]string
	// Taints are the taints in force.
	Taints() []Taint
	// Conditions are what was observed of the cluster.
	Conditions() []Condition
	// KubernetesVersion is the version of the cluster's API server, "" when unknown.
	KubernetesVersion() string
	// LeaseSeconds is within how many seconds the cluster gives a sign of life, 0
	// when nothing is said about it.
	LeaseSeconds() int64
	// Region is where the cluster is, "" when unknown.
	Region() string
	// Zones are the zones the cluster spans.
	Zones() []string
	// CloudProvider is who runs the cluster's machines, "" when unknown.
	CloudProvider() string
	// CustomResources are the custom resource definitions the cluster has.
	CustomResources() []string
	// Capacity is the total amount by resource, in Kubernetes' notation.
	Capacity() map[string]string
	// Allocatable is the amount workloads may use, by resource.
	Allocatable() map[string]string
	// Scores are the scores that other programs gave the cluster under the name
	// of a resource, in a fixed order. They are nil when the cluster has none of
	// that name, or they expired: an expression that reads them is not true.
	// expiredAt is since when, zero unless they did.
	Scores(resource string) (scores []Score, expiredAt time.Time)
	// Metric is the value of one of the cluster's metrics, and whether there is
	// a usable one.
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
	// Effect is spelled as Open Cluster Management does: NoSelect, NoSelectIfNew or
	// PreferNoSelect.
	Effect string
	// TimeAdded is since when the taint is there, zero when unknown.
	TimeAdded time.Time
}

// Condition is one observation about a cluster.
type Condition struct {
	Type, Status, Reason, Message string
	// LastTransitionAt is when the status last changed, zero when unknown.
	LastTransitionAt time.Time
}

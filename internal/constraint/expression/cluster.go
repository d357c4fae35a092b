package expression

// Cluster is what an expression reads. Nothing is asked for that the expression
// does not read, and nothing is kept or changed.
type Cluster interface {
	// Name is the cluster's name.
	Name() string
	// Labels are the cluster's labels.
	Labels() map[string]string
	// Claims are facts about the cluster by name.
	Claims() map[string]string
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
	// of a resource, in a fixed order. It is nil when the cluster has none of
	// that name, or they expired: an expression that reads them is not true.
	Scores(resource string) []Score
	// Metric is the value of one of the cluster's metrics, and whether there is
	// a usable one.
	Metric(name string) (float64, bool)
}

// Score is one score of a cluster.
type Score struct {
	Name  string
	Value int64
}

// kubernetesVersionClaim is where Open Cluster Management's agent and others
// report the version of the Kubernetes API.
const kubernetesVersionClaim = "kubeversion.open-cluster-management.io"

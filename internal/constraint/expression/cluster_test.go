package expression

import "time"

// testCluster is a cluster with the properties that a test sets.
type testCluster struct {
	name         string
	uid          string
	generation   int64
	createdAt    time.Time
	labels       map[string]string
	claims       map[string]string
	taints       []Taint
	conditions   []Condition
	leaseSeconds int64

	kubernetesVersion string
	region            string
	zones             []string
	cloudProvider     string
	resources         []string
	capacity          map[string]string
	allocatable       map[string]string
	scores            map[string][]Score
	metrics           map[string]float64
	expired           map[string]time.Time
}

func (c *testCluster) Name() string                   { return c.name }
func (c *testCluster) Labels() map[string]string      { return c.labels }
func (c *testCluster) UID() string                    { return c.uid }
func (c *testCluster) Generation() int64              { return c.generation }
func (c *testCluster) CreatedAt() time.Time           { return c.createdAt }
func (c *testCluster) Taints() []Taint                { return c.taints }
func (c *testCluster) Conditions() []Condition        { return c.conditions }
func (c *testCluster) LeaseSeconds() int64            { return c.leaseSeconds }
func (c *testCluster) KubernetesVersion() string      { return c.kubernetesVersion }
func (c *testCluster) Claims() map[string]string      { return c.claims }
func (c *testCluster) Region() string                 { return c.region }
func (c *testCluster) Zones() []string                { return c.zones }
func (c *testCluster) CloudProvider() string          { return c.cloudProvider }
func (c *testCluster) CustomResources() []string      { return c.resources }
func (c *testCluster) Capacity() map[string]string    { return c.capacity }
func (c *testCluster) Allocatable() map[string]string { return c.allocatable }

func (c *testCluster) Metric(name string) (float64, bool) {
	v, ok := c.metrics[name]
	return v, ok
}

// full returns a cluster in which every field is set.
func full() *testCluster {
	return &testCluster{
		name:              "eu-1",
		labels:            map[string]string{"env": "prod", "cloud": "Amazon", "version": "1.30.0", "json": `{"b":[1,2],"a":"x"}`},
		claims:            map[string]string{"cloud": "Amazon", "kubeversion.open-cluster-management.io": "v1.31.2"},
		kubernetesVersion: "v1.31.2",
		region:            "eu-west-1",
		zones:             []string{"a", "b"},
		cloudProvider:     "aws",
		resources:         []string{"crontabs.stable.example.com"},
		capacity:          map[string]string{"cpu": "8", "memory": "64Gi"},
		allocatable:       map[string]string{"cpu": "7500m", "memory": "60Gi"},
		scores:            map[string][]Score{"demo": {{"cpu", 90}, {"memory", -20}}, "empty": {}},
		metrics:           map[string]float64{"latency": 12.5},
		expired:           map[string]time.Time{"old": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
}

func (c *testCluster) Scores(resource string) ([]Score, time.Time) {
	if at, ok := c.expired[resource]; ok {
		return nil, at
	}
	return c.scores[resource], time.Time{}
}

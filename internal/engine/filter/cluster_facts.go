package filter

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint/expression"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// clusterFacts presents a row to expressions.
type clusterFacts struct {
	fleet     *columns.Fleet
	namespace string // whose metrics are read
	row       int
	// unread is a metric that was asked for and cannot be read.
	unread *columns.MetricState
}

// expressionFacts are the aspects that an expression may read, besides metrics and scores.
const expressionFacts = columns.Labels | columns.Claims | columns.Taints | columns.Place | columns.CustomResources | columns.Amounts | columns.Observations

var _ expression.Versioned = (*clusterFacts)(nil)

func (c *clusterFacts) cluster() *api.Cluster { return c.fleet.Cluster(c.row) }

// Version is the cluster itself: it is never modified.
func (c *clusterFacts) Version() any { return c.cluster() }

// Name is the cluster's name.
func (c *clusterFacts) Name() string { return c.cluster().Metadata.Name }

// Labels are the cluster's labels.
func (c *clusterFacts) Labels() map[string]string { return c.cluster().Metadata.Labels }

// Claims are the cluster's claims.
func (c *clusterFacts) Claims() map[string]string { return c.cluster().Spec.Claims }

// UID distinguishes the cluster from an earlier one of the same name.
func (c *clusterFacts) UID() string { return c.cluster().Metadata.UID }

// Generation grows with every change of the cluster's spec or labels.
func (c *clusterFacts) Generation() int64 { return c.cluster().Metadata.Generation }

// CreatedAt is when the cluster was created.
func (c *clusterFacts) CreatedAt() time.Time { return columns.TimeOf(c.cluster().Metadata.CreatedAt) }

// Taints are the taints in force, declared and automatic.
func (c *clusterFacts) Taints() []expression.Taint {
	taints := c.cluster().Taints()
	out := make([]expression.Taint, len(taints))
	for i, t := range taints {
		out[i] = expression.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect.Canonical()), TimeAdded: columns.TimeOf(t.TimeAdded)}
	}
	return out
}

// Conditions returns the conditions of the cluster, preceded by the equivalent ones of Open Cluster
// Management.
func (c *clusterFacts) Conditions() []expression.Condition {
	own := c.cluster().Status.Conditions
	out := append(make([]expression.Condition, 0, len(own)+3), columns.ManagedConditions(c.cluster())...)
	for _, o := range own {
		out = append(out, expression.Condition{
			Type: o.Type, Status: string(o.Status), Reason: o.Reason, Message: o.Message, LastTransitionAt: columns.TimeOf(o.LastTransitionAt),
		})
	}
	return out
}

// KubernetesVersion returns the observed version or, if there is none, the claimed one.
func (c *clusterFacts) KubernetesVersion() string {
	return cmp.Or(c.cluster().Status.KubernetesVersion, c.Claims()[columns.KubernetesVersionClaim])
}

// LeaseSeconds returns the interval of the cluster's probes or heartbeats.
func (c *clusterFacts) LeaseSeconds() int64 {
	health := c.cluster().Spec.Health
	if health == nil {
		return 0
	}
	return int64(math.Ceil(health.Interval.Or(0).Seconds()))
}

// Region returns the region of the cluster.
func (c *clusterFacts) Region() string { return c.cluster().Spec.Region }

// Zones returns the zones that the cluster spans.
func (c *clusterFacts) Zones() []string { return c.cluster().Spec.Zones }

// CloudProvider returns the cloud provider of the cluster.
func (c *clusterFacts) CloudProvider() string { return c.cluster().Spec.CloudProvider }

// CustomResources are the custom resource definitions of the cluster.
func (c *clusterFacts) CustomResources() []string { return c.cluster().Spec.CustomResources }

// Capacity is the total amount by resource.
func (c *clusterFacts) Capacity() map[string]string {
	return amounts(c.cluster().Status.Capacity, c.cluster().Spec.Capacity)
}

// Allocatable is the amount that workloads may use by resource.
func (c *clusterFacts) Allocatable() map[string]string {
	return amounts(c.cluster().Status.Allocatable, c.cluster().Spec.Allocatable)
}

// amounts returns quantities as text. Reported quantities take precedence over declared ones.
func amounts(reported, declared api.Quantities) map[string]string {
	out := make(map[string]string, len(reported)+len(declared))
	for _, quantities := range []api.Quantities{declared, reported} {
		for name, quantity := range quantities {
			out[name] = string(quantity)
		}
	}
	return out
}

// Scores returns the valid scores of a placement score, or the time at which it expired.
func (c *clusterFacts) Scores(resource string) (scores []expression.Score, expiredAt time.Time) {
	s := c.fleet.PlacementScores()[resource]
	object := s.Object(c.row)
	switch {
	case object == nil:
		return nil, time.Time{}
	case s.Expired.Has(c.row):
		return nil, columns.TimeOf(object.Spec.ValidUntil)
	}
	out := make([]expression.Score, 0, len(object.Spec.Scores))
	for _, name := range slices.Sorted(maps.Keys(object.Spec.Scores)) {
		out = append(out, expression.Score{Name: name, Value: object.Spec.Scores[name]})
	}
	return out, time.Time{}
}

// Metric returns the value of a metric of the cluster. The name is resolved as in metric
// constraints.
func (c *clusterFacts) Metric(name string) (float64, bool) {
	m, ok := c.fleet.MetricNamed(c.namespace, name, c.row)
	if !ok {
		return 0, false
	}
	s := c.fleet.MetricOf(c.row, m)
	if s.Unread() {
		c.unread = s
	}
	return s.Raw, s.Usable
}

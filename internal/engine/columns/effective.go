package columns

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
)

// Effective returns a cluster as decisions use it: what was declared, combined with what was
// observed in it, inherited from its cloud, and the amounts of the availability zone that it
// represents. cloud is the cloud of its openstack block, or the one that it was bound to, or nil.
// If none of this applies, the cluster itself is returned.
//
// Inheritance (spec/krake-scheduling.rst, user stories 7 and 8): with inherit_labels, all labels of
// the cloud, which override those of the cluster; with inherit_metrics, its metrics, appended to
// those of the cluster. A metric that both list with the same weight counts once, with different
// weights twice: ec 1 and ge 10 plus ec 2 of the cloud give (1·ec + 10·ge + 2·ec) / 13. Labels and
// metrics that cloud_constraints name are always inherited.
func Effective(c *api.Cluster, cloud *api.Cloud) *api.Cluster {
	if cloud == nil && !observed(&c.Status) && c.Spec.OpenStack == nil {
		return c
	}
	e := *c
	e.Spec.Region, e.Spec.Zones = c.Region(), c.Zones()
	e.Spec.CustomResources = union(c.Spec.CustomResources, c.Status.CustomResources)
	e.Spec.APIResources = union(c.Spec.APIResources, c.Status.APIResources)
	if cloud != nil {
		e.Metadata.Labels = inheritedLabels(c, cloud)
		e.Spec.Metrics = inheritedMetrics(c, cloud)
	}
	if o := c.Spec.OpenStack; o != nil {
		standFor(&e, o, cloud)
	}
	return &e
}

func observed(s *api.ClusterStatus) bool {
	return s.Region != "" || len(s.Zones)+len(s.CustomResources)+len(s.APIResources) > 0
}

// union returns the union of two lists without duplicates, in the order of the first.
func union(declared, observed []string) []string {
	if len(observed) == 0 {
		return declared
	}
	if len(declared) == 0 {
		return observed
	}
	known := make(map[string]bool, len(declared))
	for _, name := range declared {
		known[name] = true
	}
	out := slices.Clip(declared)
	for _, name := range observed {
		if !known[name] {
			out = append(out, name)
		}
	}
	return out
}

// namedByConstraints returns the labels and metrics that a cluster's cloud constraints name.
func namedByConstraints(c *api.Cluster) (labels, metrics []string) {
	if c.Spec.CloudConstraints == nil {
		return nil, nil
	}
	// Constraints that do not parse never passed validation and are ignored.
	for _, text := range c.Spec.CloudConstraints.LabelConstraints {
		if parsed, err := constraint.ParseLabel(text); err == nil {
			labels = append(labels, parsed.Key())
		}
	}
	for _, text := range c.Spec.CloudConstraints.MetricConstraints {
		if parsed, err := constraint.ParseMetric(text); err == nil {
			metrics = append(metrics, parsed.Name())
		}
	}
	return labels, metrics
}

func inheritedLabels(c *api.Cluster, cloud *api.Cloud) map[string]string {
	inherited := cloud.Metadata.Labels
	if !c.Spec.InheritLabels {
		keys, _ := namedByConstraints(c)
		inherited = map[string]string{}
		for _, key := range keys {
			if value, ok := cloud.Metadata.Labels[key]; ok {
				inherited[key] = value
			}
		}
	}
	return api.Overlay(c.Metadata.Labels, inherited)
}

func inheritedMetrics(c *api.Cluster, cloud *api.Cloud) []api.MetricRef {
	_, wanted := namedByConstraints(c)
	out := slices.Clip(c.Spec.Metrics)
	for _, ref := range cloud.Spec.Metrics {
		if !c.Spec.InheritMetrics && !slices.Contains(wanted, ref.Name) {
			continue
		}
		if !slices.ContainsFunc(c.Spec.Metrics, func(own api.MetricRef) bool { return sameRef(own, ref) }) {
			out = append(out, ref)
		}
	}
	return out
}

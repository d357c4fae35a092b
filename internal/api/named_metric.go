package api

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint/expression"
)

// NamedMetric is a place in a spec that names a metric without its namespace. Which metric it means
// differs by cluster, cloud or project: see MetricNamed.
type NamedMetric struct {
	// Field is the path of the place.
	Field string
	// Name is the name of the metric. It is empty if an expression computes it.
	Name string
	// Use is everything that is said about the metric there. Equal uses read the same of it.
	Use string
}

// NamedMetrics returns the metrics that the spec of an object names without their namespaces, in
// field order. What does not parse is left out.
func NamedMetrics(object Object) []NamedMetric {
	var out []NamedMetric
	constraints := func(field string, texts []string, more string) {
		for i, text := range texts {
			if c, err := constraint.ParseMetric(text); err == nil {
				out = append(out, NamedMetric{index(field, i), c.Name(), c.Canonical() + more})
			}
		}
	}
	switch o := object.(type) {
	case *Placement:
		constraints("spec.metric_constraints", o.Spec.MetricConstraints, " "+string(o.Spec.MetricConstraintBasis))
		for i, p := range o.Spec.Predicates {
			for j, text := range p.CEL {
				if e, err := expression.Compile(text); err == nil {
					for _, name := range e.Metrics() {
						out = append(out, NamedMetric{index(index("spec.predicates", i)+".cel", j), name, text})
					}
				}
			}
		}
		if o.Spec.PrioritizerPolicy == nil {
			break
		}
		for i, c := range o.Spec.PrioritizerPolicy.Configurations {
			if c.Type == PrioritizerMetric {
				weight := int64(1)
				if c.Weight != nil {
					weight = *c.Weight
				}
				out = append(out, NamedMetric{index("spec.prioritizer_policy.configurations", i) + ".name", c.Name, fmt.Sprint(c.Name, " ", weight)})
			}
		}
	case *Cluster:
		if o.Spec.CloudConstraints != nil {
			constraints("spec.cloud_constraints.metric_constraints", o.Spec.CloudConstraints.MetricConstraints, "")
		}
	case *MagnumCluster:
		constraints("spec.metric_constraints", o.Spec.MetricConstraints, "")
	}
	return out
}

// MetricNamed returns the metric that a name in an object of a namespace means, of those that a
// cluster, cloud or project lists: the one of that namespace, else the global one, else the first.
func MetricNamed(namespace, name string, listed []MetricRef) (ref MetricRef, ok bool) {
	best := 0
	for _, candidate := range listed {
		if rank := NameRank(candidate.Key(), namespace, name); rank > best {
			ref, best = candidate, rank
		}
	}
	return ref, best > 0
}

// NameRank says how well a name in an object of a namespace fits a metric. The first metric with
// the highest rank is meant; 0 never is.
func NameRank(metric Key, namespace, name string) int {
	switch {
	case metric.Name != name:
		return 0
	case metric.Namespace == namespace:
		return 3
	case metric.Namespace == "":
		return 2
	}
	return 1
}

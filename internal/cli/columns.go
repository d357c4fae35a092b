package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// column is a column of the table of a kind.
type column struct {
	header string
	// wide columns are shown with -o wide only.
	wide  bool
	value func(o api.Object, now time.Time) string
}

// of makes a column of a kind's own type.
func of[T api.Object](header string, value func(T) string) column {
	return column{header: header, value: func(o api.Object, _ time.Time) string {
		object, ok := o.(T)
		if !ok {
			return ""
		}
		return value(object)
	}}
}

// ageOf makes a column of how long ago something was.
func ageOf[T api.Object](header string, at func(T) *time.Time) column {
	return column{header: header, value: func(o api.Object, now time.Time) string {
		object, ok := o.(T)
		if !ok {
			return ""
		}
		return age(at(object), now)
	}}
}

// wide makes a column one of -o wide.
func wide(c column) column {
	c.wide = true
	return c
}

// columns are those between the name and the age of each kind; a test checks that every kind has
// them.
var columns = map[api.Kind][]column{
	api.KindCluster: {
		of("STATE", func(c *api.Cluster) string { return string(c.Status.State) }),
		of("REGION", (*api.Cluster).Region),
		wide(of("ZONES", func(c *api.Cluster) string { return strings.Join(c.Zones(), ",") })),
		wide(of("PROVIDER", func(c *api.Cluster) string { return c.Spec.CloudProvider })),
		of("TAINTS", func(c *api.Cluster) string { return taints(c) }),
		of("FREE CPU", func(c *api.Cluster) string { return string(c.Status.Available[api.ResourceCPU]) }),
		of("FREE MEMORY", func(c *api.Cluster) string { return string(c.Status.Available[api.ResourceMemory]) }),
		wide(of("VERSION", func(c *api.Cluster) string { return c.Status.KubernetesVersion })),
		wide(ageOf("HEARTBEAT", func(c *api.Cluster) *time.Time { return c.Status.LastHeartbeatAt })),
		wide(of("DESCRIPTION", func(c *api.Cluster) string { return c.Spec.Description })),
	},
	api.KindClusterSet: {
		of("CLUSTERS", func(s *api.ClusterSet) string {
			if s.Spec.Selector != nil {
				return "by selector"
			}
			return strings.Join(s.Spec.Clusters, ",")
		}),
		of("NAMESPACES", func(s *api.ClusterSet) string { return strings.Join(s.Spec.Namespaces, ",") }),
	},
	api.KindMoveWindow: {
		of("EFFECT", func(w *api.MoveWindow) string { return w.Spec.Effect }),
		of("SCHEDULE", func(w *api.MoveWindow) string { return w.Spec.Schedule }),
		of("DURATION", func(w *api.MoveWindow) string { return string(w.Spec.Duration) }),
		of("ENDS", func(w *api.MoveWindow) string {
			if w.Spec.EndsAt == nil {
				return ""
			}
			return w.Spec.EndsAt.UTC().Format(time.RFC3339)
		}),
		wide(of("DESCRIPTION", func(w *api.MoveWindow) string { return w.Spec.Description })),
	},
	api.KindRole: {
		of("RULES", func(r *api.Role) string { return strconv.Itoa(len(r.Spec.Rules)) }),
		of("DESCRIPTION", func(r *api.Role) string { return r.Spec.Description }),
	},
	api.KindRoleBinding: {
		of("ROLE", func(b *api.RoleBinding) string { return b.Spec.Role }),
		of("NAMESPACES", func(b *api.RoleBinding) string { return cmp.Or(strings.Join(b.Spec.Namespaces, ","), "all") }),
		of("OF", func(b *api.RoleBinding) string {
			if b.Spec.Issuer == "" {
				return strings.Join(b.Spec.TokenIDs, ",")
			}
			of := []string{b.Spec.Issuer}
			for _, name := range slices.Sorted(maps.Keys(b.Spec.Claims)) {
				of = append(of, name+"="+b.Spec.Claims[name])
			}
			return strings.Join(of, " ")
		}),
		wide(of("DESCRIPTION", func(b *api.RoleBinding) string { return b.Spec.Description })),
	},
	api.KindCloud: {
		of("REGIONS", func(c *api.Cloud) string {
			var names []string
			for _, region := range c.Status.Regions {
				names = append(names, region.Name)
			}
			return strings.Join(names, ",")
		}),
		condition("COLLECTED", api.ConditionCollected),
	},
	api.KindOpenStackProject: {
		of("PROJECT ID", func(p *api.OpenStackProject) string { return p.Spec.ProjectID }),
		wide(of("TEMPLATE", func(p *api.OpenStackProject) string { return p.Spec.TemplateID })),
	},
	api.KindMagnumCluster: {
		of("PROJECT", func(c *api.MagnumCluster) string { return c.Status.Project }),
		condition("BOUND", api.ConditionBound),
		ageOf("DECIDED", func(c *api.MagnumCluster) *time.Time { return c.Status.ScheduledAt }),
		wide(message(api.ConditionBound)),
	},
	api.KindMetricsProvider: {
		of("TYPE", func(p *api.MetricsProvider) string { return string(p.Spec.Type) }),
		of("INTERVAL", func(p *api.MetricsProvider) string { return string(p.Spec.Interval) }),
		condition("AVAILABLE", api.ConditionAvailable),
		wide(message(api.ConditionAvailable)),
	},
	api.KindMetric: {
		of("VALUE", func(m *api.Metric) string {
			if m.Status.Clusters != nil {
				return "by cluster"
			}
			return number(m.Status.Value)
		}),
		of("NORMALIZED", func(m *api.Metric) string { return number(m.Status.Normalized) }),
		condition("AVAILABLE", api.ConditionAvailable),
		of("PROVIDER", func(m *api.Metric) string { return m.Spec.MetricsProvider.Name }),
		ageOf("CHANGED", func(m *api.Metric) *time.Time { return m.Status.ObservedAt }),
		wide(message(api.ConditionAvailable)),
	},
	api.KindPlacementScore: {
		of("SCORES", func(p *api.PlacementScore) string {
			var scores []string
			for _, name := range slices.Sorted(maps.Keys(p.Spec.Scores)) {
				scores = append(scores, fmt.Sprintf("%s=%d", name, p.Spec.Scores[name]))
			}
			return strings.Join(scores, ",")
		}),
		of("VALID UNTIL", func(p *api.PlacementScore) string {
			if p.Spec.ValidUntil == nil {
				return "forever"
			}
			return p.Spec.ValidUntil.UTC().Format(time.RFC3339)
		}),
	},
	api.KindPlacement: {
		of("CLUSTERS", func(p *api.Placement) string { return strings.Join(p.Status.Clusters, ",") }),
		of("WANTED", func(p *api.Placement) string {
			if p.Spec.NumberOfClusters == nil {
				return "all"
			}
			return strconv.FormatInt(*p.Spec.NumberOfClusters, 10)
		}),
		condition("SATISFIED", api.ConditionSatisfied),
		ageOf("DECIDED", func(p *api.Placement) *time.Time { return p.Status.ScheduledAt }),
		wide(message(api.ConditionSatisfied)),
	},
	api.KindPropagationPolicy: {
		of("PRIORITY", func(p *api.PropagationPolicy) string { return strconv.FormatInt(p.Spec.Priority, 10) }),
		of("WORKLOADS", func(p *api.PropagationPolicy) string { return strconv.Itoa(len(p.Status.Bindings)) }),
	},
	api.KindWorkload: {
		of("CLUSTERS", func(w *api.Workload) string { return replicas(w) }),
		of("REPLICAS", func(w *api.Workload) string {
			if w.Spec.Replicas == nil {
				return ""
			}
			return strconv.FormatInt(*w.Spec.Replicas, 10)
		}),
		of("POLICY", func(w *api.Workload) string { return w.Status.Policy }),
		condition("SCHEDULED", api.ConditionScheduled),
		ageOf("DECIDED", func(w *api.Workload) *time.Time { return w.Status.ScheduledAt }),
		wide(message(api.ConditionScheduled)),
	},
}

// condition makes a column of the status of a condition.
func condition(header, conditionType string) column {
	return column{header: header, value: func(o api.Object, _ time.Time) string {
		if c := conditionOf(o, conditionType); c != nil {
			return string(c.Status)
		}
		return ""
	}}
}

// message makes a column of the message of a condition.
func message(conditionType string) column {
	return column{header: "MESSAGE", value: func(o api.Object, _ time.Time) string {
		if c := conditionOf(o, conditionType); c != nil {
			return c.Message
		}
		return ""
	}}
}

func conditionOf(o api.Object, conditionType string) *api.Condition {
	list := api.ConditionsOf(o)
	if list == nil {
		return nil
	}
	return api.FindCondition(*list, conditionType)
}

// taints returns the taints in force, as "key=value:effect".
func taints(c *api.Cluster) string {
	var all []string
	if c.Spec.Paused {
		all = append(all, "paused")
	}
	for _, t := range c.Status.Taints {
		all = append(all, taintText(t.Key, t.Value, t.Effect))
	}
	return strings.Join(all, ",")
}

func taintText(key, value string, effect api.TaintEffect) string {
	if value != "" {
		key += "=" + value
	}
	return key + ":" + string(effect)
}

// replicas returns the clusters of a workload, with their replicas if it has any.
func replicas(w *api.Workload) string {
	var clusters []string
	for _, c := range w.Status.Clusters {
		text := c.Name
		if w.Spec.Replicas != nil {
			text += "=" + strconv.FormatInt(c.Replicas, 10)
		}
		clusters = append(clusters, text)
	}
	return strings.Join(clusters, ",")
}

// number formats a value with four significant digits.
func number(value *float64) string {
	if value == nil {
		return ""
	}
	return strconv.FormatFloat(*value, 'g', 4, 64)
}

// age returns how long ago a time was: "5m", "3d4h".
func age(at *time.Time, now time.Time) string {
	if at == nil {
		return ""
	}
	// The clocks of two machines differ: what is new is not from the future.
	return duration.HumanDuration(max(0, now.Sub(*at)))
}

// tableOf returns the columns of a kind's table, with those of where its objects are.
func tableOf(info api.KindInfo, everywhere, isWide bool) []column {
	var all []column
	name := func(o api.Object) string { return o.Meta().Name }
	place := func(o api.Object) string { return api.KeyOf(o).Namespace }
	switch {
	case info.Scope == api.OfCluster:
		all = append(all, of("CLUSTER", place))
	case info.Scope == api.GlobalOrNamespaced || info.Scope == api.Namespaced && everywhere:
		all = append(all, of("NAMESPACE", place))
	}
	all = append(all, of("NAME", name))
	for _, c := range columns[info.Kind] {
		if isWide || !c.wide {
			all = append(all, c)
		}
	}
	return append(all, ageOf("AGE", func(o api.Object) *time.Time { return o.Meta().CreatedAt }))
}

// row returns the cells of an object.
func row(all []column, o api.Object, now time.Time) []string {
	cells := make([]string, len(all))
	for i, c := range all {
		cells[i] = c.value(o, now)
	}
	return cells
}

// clustersOf returns where an object is, as a sorted set of names with replicas; decided says that
// its kind has a decision.
func clustersOf(o api.Object) (names []string, decided bool) {
	switch o := o.(type) {
	case *api.Placement:
		names = slices.Clone(o.Status.Clusters)
	case *api.Workload:
		if text := replicas(o); text != "" {
			names = strings.Split(text, ",")
		}
	case *api.MagnumCluster:
		if o.Status.Project != "" {
			names = []string{o.Status.Project}
		}
	case *api.Cluster:
		if o.Spec.CloudConstraints == nil && o.Status.Cloud == "" {
			return nil, false // it is created on no cloud
		}
		if o.Status.Cloud != "" {
			names = []string{o.Status.Cloud}
		}
	default:
		return nil, false
	}
	slices.Sort(names)
	return names, true
}

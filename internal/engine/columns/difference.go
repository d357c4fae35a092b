package columns

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Difference is one thing that decisions are based on and that differs between two versions of a fleet.
type Difference struct {
	Aspect Aspects // exactly one
	Object api.Key
	Field  string // "" if the object was created or deleted
	Old    string
	New    string
	// Gain is how much more it speaks for the cluster, in the unit of the aspect: the difference of a
	// metric's normalized value or of a score. It is 0 where there is no such measure.
	Gain float64
	// Aged says that only time has passed.
	Aged bool
}

// facts are the fields of a cluster in which each aspect of it can be seen, as text. The aspects that
// objects of other kinds determine are in Differences.
var facts = []struct {
	aspect Aspects
	of     func(c *api.Cluster, put func(field, value string))
}{
	{Online, func(c *api.Cluster, put func(field, value string)) { put("status.state", string(State(c))) }},
	{Paused, func(c *api.Cluster, put func(field, value string)) {
		put("spec.paused", strconv.FormatBool(c.Spec.Paused))
	}},
	{Taints, func(c *api.Cluster, put func(field, value string)) {
		for _, t := range taintsOf(c) {
			at := "status.taints"
			if slices.ContainsFunc(c.Spec.Taints, func(d api.Taint) bool { return (api.ClusterTaint{Key: t.Key, Value: t.Value, Effect: t.Effect}).Is(d) }) {
				at = "spec.taints"
			}
			put(at, t.String())
		}
	}},
	{Labels, func(c *api.Cluster, put func(field, value string)) { putMap(put, "metadata.labels", c.Metadata.Labels) }},
	{Claims, func(c *api.Cluster, put func(field, value string)) { putMap(put, "spec.claims", c.Spec.Claims) }},
	{Owners, func(c *api.Cluster, put func(field, value string)) {
		put("spec.namespace", c.Spec.Namespace)
		put("spec.namespaces", strings.Join(c.Spec.Namespaces, ", "))
	}},
	{Place, func(c *api.Cluster, put func(field, value string)) {
		put("spec.cloud_provider", c.Spec.CloudProvider)
		put("spec.region", c.Spec.Region)
		put("spec.zones", strings.Join(c.Spec.Zones, ", "))
	}},
	{CustomResources, func(c *api.Cluster, put func(field, value string)) {
		put("spec.custom_resources", strings.Join(c.Spec.CustomResources, ", "))
	}},
	{APIResources, func(c *api.Cluster, put func(field, value string)) {
		put("spec.api_resources", strings.Join(c.Spec.APIResources, ", "))
	}},
	{Amounts, func(c *api.Cluster, put func(field, value string)) {
		for _, part := range []struct {
			name               string
			reported, declared api.Quantities
		}{
			{"allocatable", c.Status.Allocatable, c.Spec.Allocatable},
			{"allocated", c.Status.Allocated, c.Spec.Allocated},
			{"capacity", c.Status.Capacity, c.Spec.Capacity},
		} {
			for resource, amount := range part.declared {
				if _, reported := part.reported[resource]; !reported {
					put("spec."+part.name+"."+resource, string(amount))
				}
			}
			putMap(put, "status."+part.name, part.reported)
		}
		for flavor, n := range c.Status.Flavors {
			put("status.flavors."+flavor, strconv.FormatInt(n, 10))
		}
		for _, resource := range c.Status.GoneResources {
			put("status.gone_resources", resource)
		}
	}},
	{Flavors, func(c *api.Cluster, put func(field, value string)) {
		if len(c.Spec.Flavors) > 0 {
			text, _ := json.Marshal(c.Spec.Flavors) // plain numbers and strings
			put("spec.flavors", string(text))
		}
	}},
	{Observations, func(c *api.Cluster, put func(field, value string)) {
		put("status.kubernetes_version", c.Status.KubernetesVersion)
		for i := range c.Status.Conditions {
			condition := &c.Status.Conditions[i]
			put("status.conditions."+condition.Type, string(condition.Status))
		}
	}},
	{MetricValues, func(c *api.Cluster, put func(field, value string)) {
		if len(c.Spec.Metrics) > 0 {
			text, _ := json.Marshal(c.Spec.Metrics)
			put("spec.metrics", string(text))
		}
	}},
}

func putMap[V ~string](put func(field, value string), at string, m map[string]V) {
	for key, value := range m {
		put(at+"."+key, string(value))
	}
}

// Differences returns what of the given aspects differs about a cluster between two versions of a fleet:
// first what changed of the cluster itself, then of other objects.
func Differences(before, after *Fleet, cluster string, aspects Aspects) []Difference {
	was, is := clusterNamed(before, cluster), clusterNamed(after, cluster)
	if was == nil || is == nil {
		if was == is {
			return nil
		}
		return []Difference{{Aspect: presence, Object: api.Key{Kind: api.KindCluster, Name: cluster}}}
	}
	var out []Difference
	if was != is {
		for _, f := range facts {
			if aspects.Any(f.aspect) {
				out = appendFacts(out, f.aspect, cluster, factsOf(was, f.of), factsOf(is, f.of))
			}
		}
	}
	x, y := before.index[cluster], after.index[cluster]
	if aspects.Any(MetricValues | MetricNames | Failing) {
		out = appendMetrics(out, before, after, x, y)
	}
	if aspects.Any(ScoreValues) {
		out = appendScores(out, before, after, x, y)
	}
	if aspects.Any(Membership | Sets) {
		out = appendSets(out, before, after, x, y)
	}
	return out
}

func clusterNamed(f *Fleet, name string) *api.Cluster {
	if row, ok := f.index[name]; ok {
		return f.Cluster(row)
	}
	return nil
}

// factsOf returns the fields of an aspect. Several values of one field are a list.
func factsOf(c *api.Cluster, of func(c *api.Cluster, put func(field, value string))) map[string]string {
	out := map[string]string{}
	of(c, func(field, value string) {
		if known := out[field]; known != "" && value != "" {
			value = known + ", " + value
		}
		out[field] = value
	})
	return out
}

func appendFacts(out []Difference, aspect Aspects, cluster string, was, is map[string]string) []Difference {
	if maps.Equal(was, is) {
		return out
	}
	fields := slices.Collect(maps.Keys(was))
	for field := range is {
		if _, known := was[field]; !known {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	for _, field := range fields {
		if was[field] != is[field] {
			out = append(out, Difference{
				Aspect: aspect, Object: api.Key{Kind: api.KindCluster, Name: cluster}, Field: field,
				Old: api.ShortValue(was[field]), New: api.ShortValue(is[field]),
			})
		}
	}
	return out
}

// appendMetrics appends the metrics that both versions of a cluster list and that differ, the
// largest difference first.
func appendMetrics(out []Difference, before, after *Fleet, x, y int) []Difference {
	first := len(out)
	for _, listed := range after.rows[y].Metrics {
		is := after.MetricOf(y, listed)
		at := slices.IndexFunc(before.rows[x].Metrics, func(m RowMetric) bool {
			return before.metrics[m.ID].Key == is.Key && m.Weight == listed.Weight
		})
		if at < 0 {
			continue // the list of the cluster says so
		}
		was := before.MetricOf(x, before.rows[x].Metrics[at])
		if !was.differs(is) && was.failsLike(is) {
			continue
		}
		in := Difference{Aspect: MetricValues, Object: is.Key, Field: "status.value", Old: was.shownValue(), New: is.shownValue(), Gain: is.worth() - was.worth()}
		if (was.Metric == nil) != (is.Metric == nil) {
			in.Field = ""
		} else if in.Old == in.New && was.Metric != nil {
			if d, ok := api.FirstDifference(&was.Metric.Spec, &is.Metric.Spec); ok {
				in.Field, in.Old, in.New = "spec."+d.Field, d.Old, d.New
			}
		}
		out = append(out, in)
	}
	slices.SortStableFunc(out[first:], func(a, b Difference) int { return cmp.Compare(abs(b.Gain), abs(a.Gain)) })
	return out
}

func abs(x float64) float64 { return max(x, -x) }

// worth is what the metric counts in a mean.
func (s *MetricState) worth() float64 {
	if !s.Usable {
		return 0
	}
	return s.Normalized
}

func (s *MetricState) shownValue() string {
	if !s.Usable {
		return ""
	}
	return formatNumber(s.Raw)
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// appendScores appends the placement scores of a cluster that differ.
func appendScores(out []Difference, before, after *Fleet, x, y int) []Difference {
	names := map[string]struct{}{}
	for _, f := range [...]*Fleet{before, after} {
		for name := range f.scores {
			names[name] = struct{}{}
		}
	}
	cluster := after.Name(y)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := before.scores[name].Object(x), after.scores[name].Object(y)
		object := api.Key{Kind: api.KindPlacementScore, Namespace: cluster, Name: name}
		switch {
		case was == nil && is == nil:
		case was == nil || is == nil:
			out = append(out, Difference{Aspect: ScoreValues, Object: object})
		case before.Expired(name).Has(x) != after.Expired(name).Has(y) && SameTime(was.Spec.ValidUntil, is.Spec.ValidUntil):
			until := is.Spec.ValidUntil.UTC().Format(time.RFC3339)
			out = append(out, Difference{Aspect: ScoreValues, Object: object, Field: "spec.valid_until", Old: until, Aged: true})
		default:
			out = appendScore(out, object, &was.Spec, &is.Spec)
		}
	}
	return out
}

func appendScore(out []Difference, object api.Key, was, is *api.PlacementScoreSpec) []Difference {
	scores := maps.Clone(is.Scores)
	maps.Copy(scores, was.Scores)
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		old, had := was.Scores[name]
		now, has := is.Scores[name]
		if old == now && had == has {
			continue
		}
		in := Difference{Aspect: ScoreValues, Object: object, Field: "spec.scores." + name, Gain: float64(now - old)}
		if had {
			in.Old = strconv.FormatInt(old, 10)
		}
		if has {
			in.New = strconv.FormatInt(now, 10)
		}
		out = append(out, in)
	}
	if d, ok := api.FirstDifference(was, is); ok && d.Field == "valid_until" {
		out = append(out, Difference{Aspect: ScoreValues, Object: object, Field: "spec.valid_until", Old: d.Old, New: d.New})
	}
	return out
}

// appendSets appends the sets that a cluster entered or left, and those that changed otherwise.
func appendSets(out []Difference, before, after *Fleet, x, y int) []Difference {
	names := maps.Clone(after.sets)
	if names == nil {
		names = map[string]*SetState{}
	}
	maps.Copy(names, before.sets)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := before.sets[name], after.sets[name]
		in := Difference{Aspect: Membership, Object: api.Key{Kind: api.KindClusterSet, Name: name}}
		switch {
		case was == nil || is == nil:
			out = append(out, in)
		case was.Set == is.Set:
			// The cluster's labels differ, which is said of them.
			if was.Rows.Has(x) != is.Rows.Has(y) {
				out = appendFacts(out, Labels, after.Name(y), labelFacts(before.Cluster(x)), labelFacts(after.Cluster(y)))
			}
		default:
			if d, ok := api.FirstDifference(&was.Set.Spec, &is.Set.Spec); ok {
				in.Field, in.Old, in.New = "spec."+d.Field, d.Old, d.New
				out = append(out, in)
			}
		}
	}
	return out
}

func labelFacts(c *api.Cluster) map[string]string {
	out := map[string]string{}
	putMap(func(field, value string) { out[field] = value }, "metadata.labels", c.Metadata.Labels)
	return out
}

// Fact returns how the first of some aspects of a cluster looks at present, as an input without an
// old value; nil if the cluster has none of them.
func Fact(f *Fleet, cluster string, aspects Aspects) *Difference {
	c := clusterNamed(f, cluster)
	if c == nil {
		return nil
	}
	for _, fact := range facts {
		if !aspects.Any(fact.aspect) || fact.aspect == Online && isOnline(c) {
			continue // being online rejects nothing
		}
		for _, in := range appendFacts(nil, fact.aspect, cluster, nil, factsOf(c, fact.of)) {
			return &in
		}
	}
	return nil
}

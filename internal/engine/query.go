package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
)

// All is the number of clusters of a query that wants every cluster that fits.
const All = -1

// Query is a placement made ready to decide: constraints parsed, quantities and
// durations as numbers. Immutable.
type Query struct {
	Key api.Key
	// Class is equal for two queries that admit and score the same, whatever they
	// are named and however they spell it: their mask can be shared.
	Class string
	// Wanted is how many clusters to choose, or All.
	Wanted          int
	RescheduleAfter time.Duration
	Migration       bool

	seed            uint64 // of the tie hash
	namespace       string
	sets            []string // sorted
	labels          []constraint.Label
	metrics         []constraint.Metric
	basis           api.Basis
	customResources []string
	predicates      []predicate
	tolerations     []api.Toleration
	requests        []request
	stickiness      float64
	minImprovement  float64
	scorer          Scorer
	policy          *policy // of strategy prioritizers, else nil
	spread          []api.SpreadConstraint
	groups          *api.DecisionStrategy

	// Of a workload; see propagation.go.
	tiers       []affinity // its affinity group, then the overflow tiers; none = every cluster
	apiResource string
	groupBy     []api.GroupConstraint // those that group clusters by more than themselves
	site        []siteDemand          // of an allocation; see allocation.go

	// Of what looks for a host; see host.go.
	one, many      string // what hosts are called; empty = "cluster", "clusters"
	ignoresFailing bool   // metrics without a value keep nothing out
}

// request is an amount of a resource in thousandths.
type request struct {
	resource string
	text     api.Quantity
	milli    int64
}

// NewQuery compiles a placement. The error is that of a spec that never should
// have passed validation.
func NewQuery(p *api.Placement) (*Query, error) {
	spec := &p.Spec
	q := &Query{
		Key:             api.KeyOf(p),
		Wanted:          All,
		RescheduleAfter: spec.RescheduleAfter.Or(0),
		Migration:       spec.Migration == nil || *spec.Migration,
		namespace:       p.Metadata.Namespace,
		basis:           spec.MetricConstraintBasis,
		customResources: spec.CustomResources,
		tolerations:     spec.Tolerations,
		minImprovement:  spec.MinImprovement,
	}
	q.seed = hashText(p.Metadata.UID)
	if p.Metadata.UID == "" {
		q.seed = hashText(q.Key.Path())
	}
	if spec.NumberOfClusters != nil {
		q.Wanted = int(*spec.NumberOfClusters)
	}
	if spec.Metrics != nil && spec.Metrics.Stickiness != nil {
		q.stickiness = *spec.Metrics.Stickiness
	}
	q.sets = slices.Compact(slices.Sorted(slices.Values(spec.ClusterSets)))
	for i, text := range spec.LabelConstraints {
		c, err := constraint.ParseLabel(text)
		if err != nil {
			return nil, fmt.Errorf("%s: spec.label_constraints[%d]: %w", q.Key, i, err)
		}
		q.labels = append(q.labels, c)
	}
	for i, text := range spec.MetricConstraints {
		c, err := constraint.ParseMetric(text)
		if err != nil {
			return nil, fmt.Errorf("%s: spec.metric_constraints[%d]: %w", q.Key, i, err)
		}
		q.metrics = append(q.metrics, c)
	}
	var err error
	if q.predicates, err = compilePredicates(spec.Predicates); err != nil {
		return nil, fmt.Errorf("%s: %w", q.Key, err)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.ResourceRequests)) {
		milli, err := spec.ResourceRequests[name].Milli()
		if err != nil {
			return nil, fmt.Errorf("%s: spec.resource_requests[%q]: %w", q.Key, name, err)
		}
		q.requests = append(q.requests, request{name, spec.ResourceRequests[name], milli})
	}
	scorer, ok := scorers[spec.Strategy]
	if !ok {
		return nil, fmt.Errorf("%s: spec.strategy: %q is not known", q.Key, spec.Strategy)
	}
	q.scorer = scorer
	q.spread, q.groups = spec.SpreadConstraints, spec.DecisionStrategy
	if spec.Strategy == api.StrategyPrioritizers {
		q.policy = newPolicy(spec.PrioritizerPolicy)
	}
	q.Class = q.class(string(spec.Strategy))
	return q, nil
}

// class renders what the filters look at in a normal form.
func (q *Query) class(strategy string) string {
	var b strings.Builder
	write := func(tag byte, text string) {
		b.WriteByte(tag)
		b.WriteString(text)
		b.WriteByte(0)
	}
	write('s', strategy)
	write('p', q.policy.normal())
	write('n', q.namespace)
	for _, name := range q.sets {
		write('S', name)
	}
	sorted := func(tag byte, texts []string) {
		slices.Sort(texts)
		for _, text := range slices.Compact(texts) {
			write(tag, text)
		}
	}
	labels := make([]string, len(q.labels))
	for i, c := range q.labels {
		labels[i] = c.Canonical()
	}
	sorted('l', labels)
	metrics := make([]string, len(q.metrics))
	for i, c := range q.metrics {
		metrics[i] = c.Canonical()
	}
	if len(metrics) > 0 {
		write('b', string(q.basis))
		sorted('m', metrics)
	}
	sorted('c', slices.Clone(q.customResources))
	predicates := make([]string, len(q.predicates))
	for i := range q.predicates {
		predicates[i] = q.predicates[i].normal()
	}
	sorted('P', predicates)
	tolerations := make([]string, len(q.tolerations))
	for i := range q.tolerations {
		tolerations[i] = normalToleration(&q.tolerations[i])
	}
	sorted('t', tolerations)
	for i := range q.tiers {
		write('a', q.tiers[i].normal())
	}
	write('k', q.apiResource)
	for i := range q.groupBy {
		write('g', q.groupBy[i].By())
	}
	if len(q.site) > 0 {
		write('A', normalSite(q.site))
	}
	if q.ignoresFailing {
		write('i', "")
	}
	for _, r := range q.requests {
		write('r', fmt.Sprintf("%s=%d", r.resource, r.milli))
	}
	return b.String()
}

// Sets are the cluster sets that the query is confined to, in the order of their
// names; none stands for every cluster.
func (q *Query) Sets() []string { return q.sets }

// HasRequests reports that the decision reserves resources.
func (q *Query) HasRequests() bool { return len(q.requests) > 0 }

// UnknownMetrics lists the metrics that the query's constraints name and that
// do not exist, in the order of the constraints.
func (q *Query) UnknownMetrics(f *Fleet) []string {
	var unknown []string
	for _, c := range q.metrics {
		if !f.HasMetric(c.Name()) && !slices.Contains(unknown, c.Name()) {
			unknown = append(unknown, c.Name())
		}
	}
	return unknown
}

// ReadsValues reports that the values of metrics or of placement scores decide
// who is admitted: then rows of a Delta that are not among its Facts can change
// who is, too.
func (q *Query) ReadsValues() bool {
	return len(q.metrics) > 0 || slices.ContainsFunc(q.predicates, func(p predicate) bool { return p.readsValues() })
}

// HasMetricConstraints reports that the query compares metrics.
func (q *Query) HasMetricConstraints() bool { return len(q.metrics) > 0 }

package api

import (
	"reflect"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
)

// Placement requests clusters and holds the resulting decision.
type Placement struct {
	Kind     Kind            `json:"kind" enum:"placement"`
	Metadata Metadata        `json:"metadata"`
	Spec     PlacementSpec   `json:"spec"`
	Status   PlacementStatus `json:"status,omitzero"`
}

// Basis is the value of a metric that metric constraints compare.
type Basis string

// Values of Basis.
const (
	BasisRaw        Basis = "raw"
	BasisNormalized Basis = "normalized"
	BasisWeighted   Basis = "weighted"
)

// Strategy is how candidates are scored.
type Strategy string

// StrategyMetrics scores a cluster by the weighted mean of its metrics.
const StrategyMetrics Strategy = "metrics"

// PlacementSpec is what the user asks for.
type PlacementSpec struct {
	NumberOfClusters      *int64             `json:"number_of_clusters,omitempty" minimum:"0" doc:"Number of clusters to choose. If omitted, all that fit."`
	ClusterSets           []string           `json:"cluster_sets,omitempty" ref:"cluster_set" absent:"all clusters that the namespace sees" doc:"Names of the cluster sets to choose from. Only sets that allow this namespace are used."`
	ClusterNames          []string           `json:"cluster_names,omitempty" ref:"cluster" absent:"all clusters" doc:"Names of the clusters to choose from."`
	ExcludeClusters       []string           `json:"exclude_clusters,omitempty" ref:"cluster,optional" doc:"Names of clusters that are never chosen."`
	KubernetesVersion     string             `json:"kubernetes_version,omitempty" doc:"Constraint on the cluster's observed Kubernetes version: '>= 1.33, < 2', '~> 1.33.0'. Only the numbers count: 'v1.33.2+k3s1' is 1.33.2. A cluster whose version is not known does not match."`
	LabelConstraints      []string           `json:"label_constraints,omitempty" doc:"Constraints on the cluster's labels, all of which must hold: 'location is DE', 'tier != edge', 'zone in (a, b)', 'zone not in (c)'. A cluster without the label does not match."`
	MetricConstraints     []string           `json:"metric_constraints,omitempty" doc:"Constraints on the cluster's metrics, all of which must hold: 'load < 5', 'latency less than or equal 0.2'. A metric without a value satisfies none."`
	MetricConstraintBasis Basis              `json:"metric_constraint_basis,omitempty" enum:"raw,normalized,weighted" default:"raw" doc:"Which value of a metric 'metric_constraints' compare."`
	CustomResources       []string           `json:"custom_resources,omitempty" doc:"Custom resource definitions that the cluster must have, as '<plural>.<group>'."`
	Predicates            []Predicate        `json:"predicates,omitempty" absent:"all clusters" doc:"Sets of conditions. A cluster must match at least one set. It matches a set if all conditions in it hold."`
	Tolerations           []Toleration       `json:"tolerations,omitempty" doc:"Taints that the placement tolerates."`
	ResourceRequests      Quantities         `json:"resource_requests,omitempty" doc:"Amounts that must be available on each chosen cluster, as Kubernetes quantities. They are reserved there."`
	SpreadConstraints     []SpreadConstraint `json:"spread_constraints,omitempty" doc:"How the chosen clusters are spread over labels, claims, regions, zones or providers."`
	Strategy              Strategy           `json:"strategy,omitempty" enum:"metrics,prioritizers" default:"metrics" doc:"How candidates are scored: 'metrics' is the weighted mean of a cluster's metrics, 'prioritizers' the weighted sum of the scores in 'prioritizer_policy'."`
	Metrics               *MetricsStrategy   `json:"metrics,omitempty" defaultBy:"strategy metrics={}" doc:"Settings of the 'metrics' strategy. Not allowed with another strategy."`
	PrioritizerPolicy     *PrioritizerPolicy `json:"prioritizer_policy,omitempty" defaultBy:"strategy prioritizers={}" doc:"Settings of the 'prioritizers' strategy. Not allowed with another strategy."`
	Migration             *bool              `json:"migration,omitempty" default:"true" doc:"If false, a decision that still fits is never moved."`
	RescheduleAfter       Duration           `json:"reschedule_after,omitempty" defaultBy:"strategy prioritizers=0s else=60s" doc:"A decision younger than this is kept as long as it fits."`
	MinImprovement        float64            `json:"min_improvement,omitempty" default:"0" minimum:"0" doc:"A decision moves only if the score improves by more than this."`
	DecisionStrategy      *DecisionStrategy  `json:"decision_strategy,omitempty" doc:"How the chosen clusters are divided into groups, such as the steps of a rollout."`
}

// MetricsStrategy configures the metrics strategy.
type MetricsStrategy struct {
	Stickiness *float64 `json:"stickiness,omitempty" default:"0.1" minimum:"0" doc:"Weight of staying on the current cluster."`
}

// PlacementStatus holds the decision and its conditions.
type PlacementStatus struct {
	ObservedGeneration         int64         `json:"observed_generation,omitempty" doc:"Generation of the spec that the decision answers."`
	ObservedRescheduleRequests int64         `json:"observed_reschedule_requests,omitempty" doc:"Number of requests for a fresh decision that were answered."`
	Clusters                   []string      `json:"clusters,omitempty" ref:"cluster,optional" doc:"Names of the chosen clusters, best first."`
	Decisions                  []Decision    `json:"decisions,omitempty" doc:"Details of the chosen clusters, best first."`
	DecisionGroups             []ChosenGroup `json:"decision_groups,omitempty" doc:"The chosen clusters by group."`
	ScheduledAt                *time.Time    `json:"scheduled_at,omitempty" doc:"When the decision last changed."`
	DecisionRevision           int64         `json:"decision_revision,omitempty" doc:"Number of times that the decision has changed."`
	Cause                      *Cause        `json:"cause,omitempty" doc:"What made the decision change last. Absent if nothing was decided yet."`
	// Margin is nil if no score decided.
	Margin     *DecisionMargin `json:"margin,omitempty" doc:"The scores by which a cluster was left for another when the decision last changed. Absent if no cluster was left that could have been kept, or if other things than its own score decided, such as a spread."`
	Conditions []Condition     `json:"conditions,omitempty" doc:"Conditions that the server observed."`
}

// DecisionMargin are the scores by which a cluster was left for another. It is immutable.
type DecisionMargin struct {
	From   string  `json:"from" doc:"Cluster that was left, the best of them."`
	To     string  `json:"to" doc:"Cluster that was chosen, the last of them."`
	Old    float64 `json:"old" doc:"Score of 'from', as that of a cluster that was not chosen before."`
	New    float64 `json:"new" doc:"Score of 'to'."`
	Needed float64 `json:"needed" doc:"What 'new' had to exceed: the score of 'from' with stickiness and 'min_improvement', unless a fresh decision was requested."`
}

// Answers reports whether the decision was made for the spec as it is now, and whether a fresh one was
// requested since.
func (s *PlacementStatus) Answers(meta *Metadata) (answered, fresh bool) {
	return s.ObservedGeneration == meta.Generation, s.ObservedRescheduleRequests != meta.RescheduleRequests
}

// Agrees reports whether two statuses differ in nothing but the cause and the margin: which changes came
// together differs among servers.
func (s *PlacementStatus) Agrees(other *PlacementStatus) bool {
	alike := *s
	alike.Cause, alike.Margin = other.Cause, other.Margin
	return reflect.DeepEqual(&alike, other)
}

// Decision is one chosen cluster. Score is as of the time of the decision.
type Decision struct {
	Cluster string  `json:"cluster" ref:"cluster,optional" doc:"Name of the cluster."`
	Score   float64 `json:"score" doc:"Score when the decision was made."`
	// Withheld is never stored: it depends on the reader.
	Withheld bool   `json:"withheld,omitempty" doc:"True if a metric of a namespace that the reader may not read is part of the score, which is shown as 0 then. The order of the clusters is not affected."`
	Rank     int64  `json:"rank" doc:"Rank of the cluster, where 1 is best."`
	Group    string `json:"group,omitempty" doc:"Name of the cluster's decision group."`
	// GroupIndex is set if the placement divides its clusters into groups.
	GroupIndex *int64     `json:"group_index,omitempty" doc:"Position of the cluster's group among 'decision_groups'."`
	Since      *time.Time `json:"since,omitempty" doc:"When the cluster was chosen."`
}

// ObjectKind implements Object.
func (p *Placement) ObjectKind() Kind { return KindPlacement }

// Meta implements Object.
func (p *Placement) Meta() *Metadata { return &p.Metadata }

// SpecPart implements Object.
func (p *Placement) SpecPart() any { return &p.Spec }

// StatusPart implements Object.
func (p *Placement) StatusPart() any { return &p.Status }

// Copy implements Object.
func (p *Placement) Copy() Object { d := *p; return &d }

// Secrets implements Object.
func (p *Placement) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (p *Placement) SetSecret(string, Secret) {}

// DefaultStickiness is the default weight for staying on the current cluster.
const DefaultStickiness = 0.1

// SetDefaults implements Object.
func (p *Placement) SetDefaults() {
	p.Kind = KindPlacement
	p.Metadata.setDefaults(Namespaced)
	setDefaults(&p.Spec)
}

// Validate implements Object.
func (p *Placement) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(p, Namespaced)
	s := &p.Spec
	checkUnique(&errs, "spec.cluster_sets", s.ClusterSets)
	checkNames(&errs, "spec.cluster_sets", s.ClusterSets)
	checkNames(&errs, "spec.cluster_names", s.ClusterNames)
	checkNames(&errs, "spec.exclude_clusters", s.ExcludeClusters)
	if s.KubernetesVersion != "" {
		if _, err := constraint.ParseVersion(s.KubernetesVersion); err != nil {
			errs.Add("spec.kubernetes_version", "%s", err)
		}
	}
	validateConstraints(&errs, "spec", s.LabelConstraints, s.MetricConstraints)
	validateCustomResources(&errs, "spec.custom_resources", s.CustomResources)
	validatePredicates(&errs, "spec.predicates", s.Predicates)
	validateTolerations(&errs, "spec.tolerations", s.Tolerations)
	validateSpread(&errs, "spec.spread_constraints", s.SpreadConstraints)
	s.validatePrioritizers(&errs)
	s.DecisionStrategy.validate(&errs, "spec.decision_strategy")
	return errs.inOrder(p)
}

package api

import (
	"math"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
)

// Placement asks for clusters, and holds the decision that answers it.
type Placement struct {
	Kind     Kind            `json:"kind" enum:"placement"`
	Metadata Metadata        `json:"metadata"`
	Spec     PlacementSpec   `json:"spec"`
	Status   PlacementStatus `json:"status,omitzero"`
}

// Basis says which figure of a metric a metric constraint compares.
type Basis string

// The bases of metric constraints.
const (
	BasisRaw        Basis = "raw"
	BasisNormalized Basis = "normalized"
	BasisWeighted   Basis = "weighted"
)

// Strategy names the way candidates are scored.
type Strategy string

// StrategyMetrics scores a cluster by the weighted mean of its metrics.
const StrategyMetrics Strategy = "metrics"

// PlacementSpec is what the user asks for.
type PlacementSpec struct {
	NumberOfClusters      *int64             `json:"number_of_clusters,omitempty" doc:"How many clusters to choose. Absent = all that fit."`
	ClusterSets           []string           `json:"cluster_sets,omitempty" ref:"cluster_set" doc:"Sets to choose from. Absent = every cluster that the namespace sees."`
	ClusterNames          []string           `json:"cluster_names,omitempty" ref:"cluster" doc:"Names of clusters to choose from. Absent = every name."`
	ExcludeClusters       []string           `json:"exclude_clusters,omitempty" ref:"cluster,optional" doc:"Names of clusters that are out in any case."`
	KubernetesVersion     string             `json:"kubernetes_version,omitempty" doc:"What the Kubernetes version observed of the cluster must meet: \">= 1.33, < 2\". Only its numbers count; one that is not known meets nothing."`
	LabelConstraints      []string           `json:"label_constraints,omitempty" doc:"All must hold: \"location is DE\", \"tier != edge\", \"zone in (a, b)\", \"zone not in (c)\"."`
	MetricConstraints     []string           `json:"metric_constraints,omitempty" doc:"All must hold: \"load < 5\", \"latency less than or equal 0.2\"."`
	MetricConstraintBasis Basis              `json:"metric_constraint_basis,omitempty" enum:"raw,normalized,weighted" doc:"Which figure metric_constraints compare. Default raw."`
	CustomResources       []string           `json:"custom_resources,omitempty" doc:"Custom resource definitions the cluster must have, as <plural>.<group>."`
	Predicates            []Predicate        `json:"predicates,omitempty" doc:"A cluster must match one of them, if there are any."`
	Tolerations           []Toleration       `json:"tolerations,omitempty" doc:"Taints that do not keep the placement off a cluster."`
	ResourceRequests      Quantities         `json:"resource_requests,omitempty" doc:"Amounts that must be available on every chosen cluster, and are reserved there."`
	SpreadConstraints     []SpreadConstraint `json:"spread_constraints,omitempty" doc:"How the chosen clusters are to be divided over labels, claims, regions, zones or providers."`
	Strategy              Strategy           `json:"strategy,omitempty" enum:"metrics,prioritizers" doc:"How candidates are scored. Default metrics."`
	Metrics               *MetricsStrategy   `json:"metrics,omitempty" doc:"Settings of the metrics strategy."`
	PrioritizerPolicy     *PrioritizerPolicy `json:"prioritizer_policy,omitempty" doc:"Settings of the prioritizers strategy."`
	Migration             *bool              `json:"migration,omitempty" doc:"false: a decision that still fits is never moved. Default true."`
	RescheduleAfter       Duration           `json:"reschedule_after,omitempty" doc:"A decision younger than this is kept while it fits. Default \"60s\" under metrics, \"0s\" under prioritizers."`
	MinImprovement        float64            `json:"min_improvement,omitempty" doc:"A decision moves only for a score better by more than this. Default 0."`
	DecisionStrategy      *DecisionStrategy  `json:"decision_strategy,omitempty" doc:"How the chosen clusters are divided into groups."`
}

// MetricsStrategy are the settings of the metrics strategy.
type MetricsStrategy struct {
	Stickiness *float64 `json:"stickiness,omitempty" doc:"Weight of staying on the current cluster. Default 0.1."`
}

// PlacementStatus is the decision and what is known about it.
type PlacementStatus struct {
	ObservedGeneration         int64         `json:"observed_generation,omitempty" doc:"Generation of the spec that the decision answers."`
	ObservedRescheduleRequests int64         `json:"observed_reschedule_requests,omitempty"`
	Clusters                   []string      `json:"clusters,omitempty" ref:"cluster,optional" doc:"Chosen clusters, best first."`
	Decisions                  []Decision    `json:"decisions,omitempty"`
	DecisionGroups             []ChosenGroup `json:"decision_groups,omitempty" doc:"The chosen clusters by group."`
	ScheduledAt                *time.Time    `json:"scheduled_at,omitempty" doc:"When the decision last changed."`
	DecisionRevision           int64         `json:"decision_revision,omitempty" doc:"Counts the changes of the decision."`
	Conditions                 []Condition   `json:"conditions,omitempty"`
}

// Decision is one chosen cluster. Score is as of the moment of the decision.
type Decision struct {
	Cluster string  `json:"cluster" ref:"cluster,optional"`
	Score   float64 `json:"score"`
	Rank    int64   `json:"rank" doc:"1 is best."`
	Group   string  `json:"group,omitempty" doc:"Name of the cluster's decision group."`
	// GroupIndex is set where the placement divides its clusters into groups.
	GroupIndex *int64     `json:"group_index,omitempty" doc:"Position of the cluster's group among decision_groups."`
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

// The defaults of a placement.
const (
	DefaultStickiness               = 0.1
	DefaultRescheduleAfter Duration = "60s" // under metrics
	PromptRescheduleAfter  Duration = "0s"  // under prioritizers
)

// SetDefaults implements Object.
func (p *Placement) SetDefaults() {
	p.Kind = KindPlacement
	p.Metadata.setDefaults(Namespaced)
	s := &p.Spec
	if s.MetricConstraintBasis == "" {
		s.MetricConstraintBasis = BasisRaw
	}
	if s.Strategy == "" {
		s.Strategy = StrategyMetrics
	}
	if s.Strategy == StrategyMetrics {
		m := MetricsStrategy{}
		if s.Metrics != nil {
			m = *s.Metrics
		}
		if m.Stickiness == nil {
			stickiness := DefaultStickiness
			m.Stickiness = &stickiness
		}
		s.Metrics = &m
	}
	if s.Migration == nil {
		yes := true
		s.Migration = &yes
	}
	if s.RescheduleAfter == "" {
		s.RescheduleAfter = DefaultRescheduleAfter
		if s.Strategy == StrategyPrioritizers {
			s.RescheduleAfter = PromptRescheduleAfter
		}
	}
	setTolerationDefaults(s.Tolerations)
	s.setPrioritizerDefaults()
	if d := s.DecisionStrategy; d != nil && d.ClustersPerDecisionGroup == "" {
		d.ClustersPerDecisionGroup = DefaultGroupSize
	}
}

// Validate implements Object.
func (p *Placement) Validate() FieldErrors {
	var errs FieldErrors
	p.Metadata.validate(Namespaced, &errs)
	s := &p.Spec
	if s.NumberOfClusters != nil && *s.NumberOfClusters < 0 {
		errs.Add("spec.number_of_clusters", "%d must be at least 0", *s.NumberOfClusters)
	}
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
	errs.check("spec.metric_constraint_basis", oneOf(s.MetricConstraintBasis, BasisRaw, BasisNormalized, BasisWeighted))
	validateCustomResources(&errs, "spec.custom_resources", s.CustomResources)
	validatePredicates(&errs, "spec.predicates", s.Predicates)
	validateTolerations(&errs, "spec.tolerations", s.Tolerations)
	validateQuantities(&errs, "spec.resource_requests", s.ResourceRequests)
	validateSpread(&errs, "spec.spread_constraints", s.SpreadConstraints)
	errs.check("spec.strategy", oneOf(s.Strategy, StrategyMetrics, StrategyPrioritizers))
	s.validatePrioritizers(&errs)
	s.DecisionStrategy.validate(&errs, "spec.decision_strategy")
	if s.Metrics != nil && s.Metrics.Stickiness != nil {
		if v := *s.Metrics.Stickiness; !(v >= 0) || math.IsInf(v, 0) {
			errs.Add("spec.metrics.stickiness", "%v must be a finite number of at least 0", v)
		}
	}
	errs.check("spec.reschedule_after", s.RescheduleAfter.check(0))
	if v := s.MinImprovement; !(v >= 0) || math.IsInf(v, 0) {
		errs.Add("spec.min_improvement", "%v must be a finite number of at least 0", v)
	}
	return errs
}

package api

import (
	"slices"
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
	ClusterSets           []string           `json:"cluster_sets,omitempty" ref:"cluster_set" doc:"Names of the cluster sets to choose from. Only sets that admit the namespace count. If omitted, every cluster that the namespace sees."`
	ClusterNames          []string           `json:"cluster_names,omitempty" ref:"cluster" doc:"Names of the clusters to choose from. If omitted, clusters of any name."`
	ExcludeClusters       []string           `json:"exclude_clusters,omitempty" ref:"cluster,optional" doc:"Names of clusters that are never chosen."`
	KubernetesVersion     string             `json:"kubernetes_version,omitempty" doc:"Constraint on the cluster's observed Kubernetes version: '>= 1.33, < 2', '~> 1.33.0'. Only the numbers count: 'v1.33.2+k3s1' is 1.33.2. A cluster whose version is not known does not match."`
	LabelConstraints      []string           `json:"label_constraints,omitempty" doc:"Constraints on the cluster's labels, all of which must hold: 'location is DE', 'tier != edge', 'zone in (a, b)', 'zone not in (c)'. A cluster without the label does not match."`
	MetricConstraints     []string           `json:"metric_constraints,omitempty" doc:"Constraints on the cluster's metrics, all of which must hold: 'load < 5', 'latency less than or equal 0.2'. A metric without a value satisfies none."`
	MetricConstraintBasis Basis              `json:"metric_constraint_basis,omitempty" enum:"raw,normalized,weighted" default:"raw" doc:"Which value of a metric 'metric_constraints' compare."`
	CustomResources       []string           `json:"custom_resources,omitempty" doc:"Custom resource definitions that the cluster must have, as '<plural>.<group>'."`
	Predicates            []Predicate        `json:"predicates,omitempty" doc:"Sets of conditions. If there are any, a cluster must match at least one set. It matches a set if all conditions in it hold."`
	Tolerations           []Toleration       `json:"tolerations,omitempty" doc:"Taints that the placement tolerates."`
	ResourceRequests      Quantities         `json:"resource_requests,omitempty" doc:"Amounts that must be available on each chosen cluster, as Kubernetes quantities. They are reserved there."`
	SpreadConstraints     []SpreadConstraint `json:"spread_constraints,omitempty" doc:"How the chosen clusters are spread over labels, claims, regions, zones or providers."`
	Strategy              Strategy           `json:"strategy,omitempty" enum:"metrics,prioritizers" default:"metrics" doc:"How candidates are scored: 'metrics' is the weighted mean of a cluster's metrics, 'prioritizers' the weighted sum of the scores in 'prioritizer_policy'."`
	Metrics               *MetricsStrategy   `json:"metrics,omitempty" defaultBy:"strategy metrics={}" doc:"Settings of the 'metrics' strategy. Not allowed with another strategy."`
	PrioritizerPolicy     *PrioritizerPolicy `json:"prioritizer_policy,omitempty" defaultBy:"strategy prioritizers={}" doc:"Settings of the 'prioritizers' strategy. Not allowed with another strategy."`
	Migration             *bool              `json:"migration,omitempty" default:"true" doc:"If false, a decision that still fits is never moved."`
	RescheduleAfter       Duration           `json:"reschedule_after,omitempty" defaultBy:"strategy prioritizers=0s else=60s" doc:"A decision younger than this is kept as long as it fits."`
	MinImprovement        float64            `json:"min_improvement,omitempty" default:"0" minimum:"0" doc:"A decision moves only if the score improves by more than this."`
	MoveBudget            *MoveBudgetSpec    `json:"move_budget,omitempty" doc:"Limit on how many clusters the decision leaves in a time although nothing forces it. Budgets of the namespace and of the server apply as well."`
	DecisionStrategy      *DecisionStrategy  `json:"decision_strategy,omitempty" doc:"How the chosen clusters are divided into groups, such as the steps of a rollout."`
	Rollout               *Rollout           `json:"rollout,omitempty" doc:"Makes a later change of the decision happen in steps: a cluster is left only when its successor is healthy. If omitted, the decision changes at once. The first decision, and clusters that are offline, deleted or have a taint that evicts, are never staged."`
	AutoCluster           *AutoCluster       `json:"auto_cluster,omitempty" doc:"If set, the server declares the clusters that the placement lacks: without access, bound to a cloud. Terraform, or whatever a notification starts, makes them real."`
}

// MetricsStrategy configures the metrics strategy.
type MetricsStrategy struct {
	Stickiness *float64 `json:"stickiness,omitempty" default:"0.1" minimum:"0" doc:"Weight of staying on the current cluster."`
}

// PlacementStatus holds the decision and its conditions.
type PlacementStatus struct {
	ObservedGeneration         int64         `json:"observed_generation,omitempty" doc:"Generation of the spec that the decision answers."`
	ObservedRescheduleRequests int64         `json:"observed_reschedule_requests,omitempty" doc:"Number of requests for a fresh decision that were answered."`
	Clusters                   []string      `json:"clusters,omitempty" ref:"cluster,optional" doc:"Names of the chosen clusters, best first. During a rollout, those that stand: the ones that are still being left come last."`
	Decisions                  []Decision    `json:"decisions,omitempty" doc:"Details of the chosen clusters, best first."`
	DecisionGroups             []ChosenGroup `json:"decision_groups,omitempty" doc:"The chosen clusters by group."`
	ScheduledAt                *time.Time    `json:"scheduled_at,omitempty" doc:"When the decision last changed."`
	DecisionRevision           int64         `json:"decision_revision,omitempty" doc:"Number of times that the decision has changed."`
	Demand                     *Demand       `json:"demand,omitempty" doc:"Clusters that would give the placement what it lacks. Absent if it lacks none."`
	Moves                      []Moves       `json:"moves,omitempty" doc:"Moves that count in budgets. Absent if there is no budget."`
	// Rollout is set while the decision changes in steps.
	Rollout         *RolloutStatus  `json:"rollout,omitempty" doc:"What is meant, and how far the decision has come, while it changes in steps."`
	RolloutRevision int64           `json:"rollout_revision,omitempty" doc:"Number of rollouts so far."`
	Health          []ClusterHealth `json:"health,omitempty" doc:"What was last reported about the placement on its clusters."`
	Conditions      []Condition     `json:"conditions,omitempty" doc:"Conditions that the server observed."`
}

// Meant returns the clusters that are meant: those that stand, unless a rollout is under way.
func (s *PlacementStatus) Meant() []Decision {
	if s.Rollout == nil {
		return s.Decisions
	}
	meant := make([]Decision, len(s.Rollout.Target))
	for i, t := range s.Rollout.Target {
		meant[i] = Decision{Cluster: t.Cluster, Score: t.Score, Rank: int64(i + 1), Since: t.Since}
	}
	return meant
}

// Holding returns the clusters that stand or are meant, on which the placement's amounts are
// reserved.
func (s *PlacementStatus) Holding() []Decision {
	if s.Rollout == nil {
		return s.Decisions
	}
	holding := slices.Clip(s.Decisions)
	for _, d := range s.Meant() {
		if !slices.Contains(s.Clusters, d.Cluster) {
			holding = append(holding, d)
		}
	}
	return holding
}

// Involved returns the names of the clusters that stand or are meant.
func (s *PlacementStatus) Involved() []string {
	if s.Rollout == nil {
		return s.Clusters
	}
	return slices.Concat(s.Clusters, s.Awaited())
}

// Awaited returns the names of the clusters that are meant and do not stand yet.
func (s *PlacementStatus) Awaited() (names []string) {
	if s.Rollout == nil {
		return nil
	}
	for _, t := range s.Rollout.Target {
		if !slices.Contains(s.Clusters, t.Cluster) {
			names = append(names, t.Cluster)
		}
	}
	return names
}

// Decision is one chosen cluster. Score is as of the time of the decision.
type Decision struct {
	Cluster string  `json:"cluster" ref:"cluster,optional" doc:"Name of the cluster."`
	Score   float64 `json:"score" doc:"Score when the decision was made."`
	Rank    int64   `json:"rank" doc:"Rank of the cluster, where 1 is best."`
	Group   string  `json:"group,omitempty" doc:"Name of the cluster's decision group."`
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
	s.MoveBudget.validate(&errs, "spec.move_budget")
	s.DecisionStrategy.validate(&errs, "spec.decision_strategy")
	s.Rollout.validate(&errs, "spec.rollout", s.DecisionStrategy != nil)
	s.AutoCluster.validate(&errs, "spec.auto_cluster")
	return errs.inOrder(p)
}

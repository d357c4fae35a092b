package api

import "slices"

// StrategyPrioritizers scores a cluster by the weighted sum of prioritizers, as Open Cluster
// Management does.
const StrategyPrioritizers Strategy = "prioritizers"

// PrioritizerMode says which prioritizers a policy starts with.
type PrioritizerMode string

// Modes of a prioritizer policy.
const (
	// ModeAdditive starts with balance and steady, each with weight 1. Configurations override
	// these or are added.
	ModeAdditive PrioritizerMode = "additive"
	// ModeExact uses only the listed configurations.
	ModeExact PrioritizerMode = "exact"
)

// PrioritizerType is where a prioritizer's score comes from.
type PrioritizerType string

// Types of prioritizers.
const (
	PrioritizerBuiltin PrioritizerType = "builtin" // computed by the server
	PrioritizerAddon   PrioritizerType = "addon"   // read from placement scores
	PrioritizerMetric  PrioritizerType = "metric"  // a live metric of the cluster
)

// Names of the built-in prioritizers.
const (
	PrioritizerBalance           = "balance"
	PrioritizerSteady            = "steady"
	PrioritizerAllocatableCPU    = "resource_allocatable_cpu"
	PrioritizerAllocatableMemory = "resource_allocatable_memory"
	PrioritizerAvailableCPU      = "resource_available_cpu"
	PrioritizerAvailableMemory   = "resource_available_memory"
	PrioritizerSpread            = "spread"
)

// BuiltinPrioritizers are the names of all built-in prioritizers.
var BuiltinPrioritizers = []string{
	PrioritizerBalance, PrioritizerSteady, PrioritizerAllocatableCPU, PrioritizerAllocatableMemory,
	PrioritizerAvailableCPU, PrioritizerAvailableMemory, PrioritizerSpread,
}

// maxPrioritizerWeight is the maximum weight; its negative is the minimum.
const maxPrioritizerWeight = 10

// PrioritizerPolicy configures which prioritizers add up to the score of a cluster.
type PrioritizerPolicy struct {
	Mode           PrioritizerMode     `json:"mode,omitempty" enum:"additive,exact" default:"additive" doc:"'additive': 'balance' and 'steady' with weight 1 each, which 'configurations' override or extend. 'exact': only what is listed."`
	Configurations []PrioritizerConfig `json:"configurations,omitempty" doc:"Prioritizers and their weights. The score of a cluster is the sum of weight × score, where each score is from -100 to 100."`
}

// PrioritizerConfig is one prioritizer and its weight.
type PrioritizerConfig struct {
	Type         PrioritizerType `json:"type,omitempty" enum:"builtin,addon,metric" default:"builtin" doc:"'builtin': computed by the server. 'addon': a score in the clusters' placement scores. 'metric': a metric that the clusters list, mapped to the range -100 to 100."`
	Name         string          `json:"name,omitempty" doc:"For type 'builtin': 'balance' (clusters with fewer decisions of other placements), 'steady' (clusters of the current decision), 'resource_allocatable_cpu', 'resource_allocatable_memory', 'resource_available_cpu', 'resource_available_memory' or 'spread'. For type 'metric': name of the metric."`
	ResourceName string          `json:"resource_name,omitempty" doc:"For type 'addon': name of the placement score, the same on every cluster."`
	ScoreName    string          `json:"score_name,omitempty" doc:"For type 'addon': name of the score in it."`
	Weight       *int64          `json:"weight,omitempty" default:"1" minimum:"-10" maximum:"10" doc:"Weight of the score. '0' disables the prioritizer; a negative weight prefers low scores."`
}

// SpreadType is what a spread constraint groups clusters by.
type SpreadType string

// Types of spread constraints.
const (
	SpreadLabel SpreadType = "Label"
	SpreadClaim SpreadType = "Claim"
	SpreadField SpreadType = "Field"
)

// Fields that a spread constraint of type Field may name.
const (
	SpreadRegion   = "region"
	SpreadZone     = "zone"
	SpreadProvider = "cloud_provider"
)

// Unsatisfiable is what happens to a cluster that would violate a spread constraint.
type Unsatisfiable string

// Values of Unsatisfiable.
const (
	DoNotSchedule  Unsatisfiable = "DoNotSchedule"
	ScheduleAnyway Unsatisfiable = "ScheduleAnyway"
)

// SpreadConstraint spreads the chosen clusters evenly.
type SpreadConstraint struct {
	TopologyKey       string        `json:"topology_key" doc:"Label or claim whose values group the clusters, or 'region', 'zone' or 'cloud_provider' if 'type' is 'Field'."`
	Type              SpreadType    `json:"type,omitempty" enum:"Label,Claim,Field" default:"Label" doc:"What 'topology_key' refers to."`
	MaxSkew           *int64        `json:"max_skew,omitempty" default:"1" minimum:"1" doc:"Largest allowed difference between the groups with the most and the fewest chosen clusters. Only groups with clusters that fit count."`
	WhenUnsatisfiable Unsatisfiable `json:"when_unsatisfiable,omitempty" enum:"DoNotSchedule,ScheduleAnyway" default:"ScheduleAnyway" doc:"'ScheduleAnyway': clusters that would violate the constraint come last. 'DoNotSchedule': they are not chosen."`
}

// maxSpreadConstraints limits the number of spread constraints of a placement.
const maxSpreadConstraints = 8

func (s *PlacementSpec) validatePrioritizers(errs *FieldErrors) {
	switch {
	case s.Strategy == StrategyPrioritizers && s.Metrics != nil:
		errs.Add("spec.metrics", "must be absent because spec.strategy is %q", string(s.Strategy))
	case s.Strategy == StrategyMetrics && s.PrioritizerPolicy != nil:
		errs.Add("spec.prioritizer_policy", "must be absent because spec.strategy is %q", string(s.Strategy))
	}
	if p := s.PrioritizerPolicy; p != nil {
		for i := range p.Configurations {
			p.Configurations[i].validate(errs, index("spec.prioritizer_policy.configurations", i))
		}
	}
}

func (c *PrioritizerConfig) validate(errs *FieldErrors, field string) {
	unused := func(name, value string) {
		if value != "" {
			errs.Add(field+"."+name, "must be absent because type is %q", string(c.Type))
		}
	}
	switch c.Type {
	case PrioritizerBuiltin, "":
		if !slices.Contains(BuiltinPrioritizers, c.Name) {
			errs.check(field+".name", oneOf(c.Name, BuiltinPrioritizers...))
		}
		unused("resource_name", c.ResourceName)
		unused("score_name", c.ScoreName)
	case PrioritizerAddon:
		unused("name", c.Name)
		errs.check(field+".resource_name", checkName(c.ResourceName))
		errs.check(field+".score_name", checkScoreName(c.ScoreName))
	case PrioritizerMetric:
		errs.check(field+".name", checkName(c.Name))
		unused("resource_name", c.ResourceName)
		unused("score_name", c.ScoreName)
	}
}

func validateSpread(errs *FieldErrors, field string, constraints []SpreadConstraint) {
	if len(constraints) > maxSpreadConstraints {
		errs.Add(field, "must have at most %d entries, has %d", maxSpreadConstraints, len(constraints))
	}
	type topology struct {
		kind SpreadType
		key  string
	}
	seen := map[topology]int{}
	for i, c := range constraints {
		at := index(field, i)
		switch {
		case c.TopologyKey == "":
			errs.Add(at+".topology_key", "is required")
		case c.Type == SpreadField:
			errs.check(at+".topology_key", oneOf(c.TopologyKey, SpreadRegion, SpreadZone, SpreadProvider))
		default:
			errs.check(at+".topology_key", checkLabelKey(c.TopologyKey))
		}
		if first, ok := seen[topology{c.Type, c.TopologyKey}]; ok {
			errs.Add(at+".topology_key", "%q is already listed at position %d", c.TopologyKey, first)
		} else {
			seen[topology{c.Type, c.TopologyKey}] = i
		}
	}
}

package enginetest

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// versionConstraints are the version constraints to draw from.
var versionConstraints = []string{"!= 1.33.0", "< 2, >= 1.33", ">= 1.33", ">=1.33", "~> 1.32.0"}

// expressions are the CEL expressions to draw from.
var expressions = []string{
	`!("zone" in managedCluster.metadata.labels)`,
	`cluster.metadata.labels["tier"] != "b" && cluster.spec.claims["version"] == "1.31"`,
	`cluster.metric("load") < 5.0`,
	`cluster.scores("speed").exists(s, s.name == "cpu" && s.value > 0)`,
	`cluster.spec.region == "eu"`,
	`managedCluster.metadata.labels["zone"] == "a"`,
	`managedCluster.spec.taints.exists(t, t.effect == "NoSelectIfNew")`,
	`managedCluster.status.conditions.exists(c, c.type == "ManagedClusterConditionAvailable" && c.status == "False")`,
	`managedCluster.status.conditions.exists(c, c.type == "Ready" && c.reason == "Slow") || managedCluster.status.version.kubernetes == "v1.33.0"`,
}

// RollPlacement draws a placement.
func RollPlacement(d Dice) *api.Placement {
	p := &api.Placement{Metadata: api.Metadata{
		Name: Pick(d, "web", "db", "job"), Namespace: Pick(d, placementNamespaces...),
	}}
	p.Metadata.UID = Pick(d, "", "uid-"+p.Metadata.Name)
	s := &p.Spec
	if !d.Chance(4) {
		s.NumberOfClusters = new(Pick[int64](d, 0, 1, 1, 2, 3, 5, 70, 1000))
	}
	for range d(3) {
		s.LabelConstraints = append(s.LabelConstraints, Pick(d,
			"zone is a", "zone is not b", "zone in (a, b)", "zone in (c, a, nowhere)", "zone not in (c)", "tier != a",
			"tier = c", "host not in (c001, c002)", "host is c003", "ghost != x", "example.com/gpu == b", "zone in (b)"))
	}
	if d.Chance(3) {
		for range 1 + d(2) {
			s.MetricConstraints = append(s.MetricConstraints, Pick(d,
				"load < 5", "load > 0.4", "load >= 0.25", "cost is not 0", "cost != 1", "power <= 0.5", "ghost > 0", "rare > -1"))
		}
	}
	s.MetricConstraintBasis = Pick(d, api.BasisRaw, api.BasisNormalized, api.BasisWeighted)
	if d.Chance(4) {
		s.CustomResources = []string{Pick(d, "a.example.com", "b.example.com", "c.example.com")}
	}
	if d.Chance(6) {
		for range 1 + d(3) {
			s.ClusterNames = append(s.ClusterNames, Pick(d, "c000", "c001", "c002", "c003", "gone"))
		}
	}
	if d.Chance(6) {
		for range 1 + d(3) {
			s.ExcludeClusters = append(s.ExcludeClusters, Pick(d, "c000", "c001", "c002", "c003", "gone"))
		}
	}
	if d.Chance(6) {
		s.KubernetesVersion = Pick(d, versionConstraints...)
	}
	if d.Chance(3) {
		s.ResourceRequests = api.Quantities{Pick(d, "cpu", "cpu", "memory", "nvidia.com/gpu"): Pick[api.Quantity](d, "0", "500m", "1", "1Gi")}
	}
	if d.Chance(4) {
		s.Metrics = &api.MetricsStrategy{Stickiness: new(Pick(d, 0, 0.1, 1, 5))}
	}
	RollFilters(d, s)
	s.RescheduleAfter = Pick[api.Duration](d, "0s", "30s", "60s")
	s.MinImprovement = Pick(d, 0, 0, 0.05, 0.5)
	s.Migration = new(!d.Chance(4))
	p.SetDefaults()
	return p
}

// RollFilters draws cluster sets, tolerations and predicates.
func RollFilters(d Dice, s *api.PlacementSpec) {
	if d.Chance(4) {
		for range 1 + d(2) {
			s.ClusterSets = append(s.ClusterSets, Pick(d, append(SetNames, "ghost")...))
		}
	}
	for range d(4) {
		t := api.Toleration{Key: Pick(d, "disk", "gpu", api.TaintUnreachable, api.TaintUnhealthy, "")}
		if t.Key == "" || d.Chance(2) {
			t.Operator = api.TolerationExists
		} else {
			t.Value = Pick(d, "", "full")
		}
		if d.Chance(2) {
			t.Effect = Pick(d, api.TaintEffects...)
		}
		if d.Chance(2) {
			t.TolerationSeconds = new(Pick[int64](d, -1, 0, 30, 60, 61, 90, 1<<62))
		}
		s.Tolerations = append(s.Tolerations, t)
	}
	if !d.Chance(4) {
		return
	}
	for range 1 + d(3) {
		p := api.Predicate{}
		if d.Chance(2) {
			p.LabelSelector = rollSelector(d, "zone", "tier")
		}
		if d.Chance(3) {
			p.ClaimSelector = rollSelector(d, "version", "id")
		}
		for range d(3) {
			p.CEL = append(p.CEL, Pick(d, expressions...))
		}
		s.Predicates = append(s.Predicates, p)
	}
}

// RollPrioritizers draws prioritizers, some of them twice, with weights of all signs.
func RollPrioritizers(d Dice) *api.PrioritizerPolicy {
	policy := &api.PrioritizerPolicy{Mode: Pick(d, api.ModeAdditive, api.ModeExact)}
	for range d(5) {
		c := api.PrioritizerConfig{Type: Pick(d, api.PrioritizerBuiltin, api.PrioritizerBuiltin, api.PrioritizerAddon, api.PrioritizerAddon, api.PrioritizerMetric)}
		switch c.Type {
		case api.PrioritizerBuiltin:
			c.Name = Pick(d, "balance", "steady", "resource_allocatable_cpu", "resource_allocatable_memory", "resource_available_cpu", "resource_available_memory")
		case api.PrioritizerAddon:
			c.ResourceName, c.ScoreName = Pick(d, append(ScoreResources, "ghost")...), Pick(d, append(ScoreNames, "ghost")...)
		case api.PrioritizerMetric:
			c.Name = Pick(d, "load", "load", "cost", "power", "rare", "ghost")
		}
		if !d.Chance(3) {
			c.Weight = new(Pick[int64](d, -10, -1, 0, 1, 2, 3, 10))
		}
		policy.Configurations = append(policy.Configurations, c)
	}
	return policy
}

// RollScoring draws how a placement rates clusters, often with a single term.
func RollScoring(d Dice) *api.Placement {
	p := NewPlacement("web")
	p.Spec.Strategy = api.StrategyPrioritizers
	switch d(10) {
	case 0:
		p.Spec.Strategy = api.StrategyMetrics
		p.Spec.Metrics = &api.MetricsStrategy{Stickiness: new(Pick(d, 0, 0.1, 2))}
	case 1, 2, 3:
		p.Spec.PrioritizerPolicy = RollPrioritizers(d)
	default:
		one := api.PrioritizerConfig{Type: Pick(d, api.PrioritizerBuiltin, api.PrioritizerAddon, api.PrioritizerMetric), Weight: new(Pick[int64](d, -1, 1, 2))}
		switch one.Type {
		case api.PrioritizerBuiltin:
			one.Name = Pick(d, api.BuiltinPrioritizers...)
		case api.PrioritizerAddon:
			one.ResourceName, one.ScoreName = Pick(d, ScoreResources...), Pick(d, ScoreNames...)
		default: // a metric may have the name of a built-in prioritizer
			one.Name = Pick(d, "load", "cost", "rare", "ghost", api.PrioritizerAllocatableCPU)
		}
		p.Spec.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{one}}
	}
	return p
}

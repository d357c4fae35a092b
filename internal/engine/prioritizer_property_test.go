package engine

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// rollPolicy draws prioritizers, some of them twice, with weights of all signs.
func rollPolicy(d dice) *api.PrioritizerPolicy {
	policy := &api.PrioritizerPolicy{Mode: pick(d, api.ModeAdditive, api.ModeExact)}
	for range d(5) {
		c := api.PrioritizerConfig{Type: pick(d, api.PrioritizerBuiltin, api.PrioritizerBuiltin, api.PrioritizerAddon, api.PrioritizerAddon, api.PrioritizerMetric)}
		switch c.Type {
		case api.PrioritizerBuiltin:
			c.Name = pick(d, "balance", "steady", "resource_allocatable_cpu", "resource_allocatable_memory", "resource_available_cpu", "resource_available_memory")
		case api.PrioritizerAddon:
			c.ResourceName, c.ScoreName = pick(d, append(scoreResources, "ghost")...), pick(d, append(scoreNames, "ghost")...)
		case api.PrioritizerMetric:
			c.Name = pick(d, "load", "load", "cost", "power", "rare", "ghost")
		}
		if !d.chance(3) {
			c.Weight = ptr(pick[int64](d, -10, -1, 0, 1, 2, 3, 10))
		}
		policy.Configurations = append(policy.Configurations, c)
	}
	return policy
}

// prioritized is a decision under strategy prioritizers: what the engine is
// given, and the oracle.
type prioritized struct {
	*world
	fleet     *Fleet
	placement *api.Placement
	query     *Query
	others    Others
	present   Present
	oracle    prioritizerOracle
}

func rollPrioritized(t *rapid.T) (dice, prioritized) {
	d, w := rollFleet(t)
	f, delta := (&Fleet{}).With(w.changes(), w.now)
	p, present := rollPlacement(d, w)
	p.Spec.Strategy, p.Spec.Metrics = api.StrategyPrioritizers, nil
	p.Spec.MinImprovement = pick[float64](d, 0, 0, 1, 50)
	p.Spec.PrioritizerPolicy = rollPolicy(d)
	p.SetDefaults()

	load := NewLoad()
	names := append(w.names(), "gone")
	var elsewhere []string
	for range d(4) {
		for range d(2 * len(names)) {
			elsewhere = append(elsewhere, pick(d, names...))
		}
	}
	for _, name := range elsewhere {
		load.Add(f, name)
	}
	for _, x := range present.Decisions {
		load.Add(f, x.Cluster)
	}
	load.Sync(f, delta)
	reserved, holds := rollHolds(t, d, w, f, p, present)
	return d, prioritized{
		world: w, fleet: f, placement: p, query: compile(t, p),
		others: Others{Reserved: reserved, Load: load}, present: present,
		oracle: prioritizerOracle{oracle{w, holds}, elsewhere},
	}
}

func (x prioritized) decide() Outcome {
	return Decide(x.fleet, x.query, NewView(x.fleet, x.query, x.others, nil), x.others, x.present, x.now)
}

func (x prioritized) String() string {
	text := fmt.Sprintf("policy %s", x.placement.Spec.PrioritizerPolicy.Mode)
	for _, c := range x.placement.Spec.PrioritizerPolicy.Configurations {
		text += fmt.Sprintf(", %d x %s %s%s/%s", *c.Weight, c.Type, c.Name, c.ResourceName, c.ScoreName)
	}
	return text + fmt.Sprintf("; present %+v, others %v", x.present, x.oracle.elsewhere)
}

func TestPrioritizersAgreeWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, x := rollPrioritized(t)
		want := x.oracle.decide(x.placement, x.present)
		if got := answerOf(x.fleet, x.decide()); !sameAnswer(got, want) {
			t.Fatalf("%s\ndecided %+v\nwant    %+v", x, got, want)
		}
	})
}

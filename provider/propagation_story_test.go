package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The user stories about propagation, each tested with its example. The test plays the agents and what happens to
// clusters.

// shows is like then, but the plan already shows the outputs: nothing is left to apply, but the change is visible.
func shows(step resource.TestStep, happens func(), variables config.Variables, outputs map[string]knownvalue.Check) resource.TestStep {
	step = then(step, happens, variables, outputs)
	for name, want := range outputs {
		step.ConfigPlanChecks.PreApply = append(step.ConfigPlanChecks.PreApply, plancheck.ExpectKnownOutputValue(name, want))
	}
	return step
}

// moves is a step that changes no workload, after which some move later, which the next refresh shows. bound waits for it.
func moves(step resource.TestStep, variables config.Variables, bound func()) resource.TestStep {
	step = then(step, nil, variables, nil)
	step.ConfigPlanChecks, step.ExpectNonEmptyPlan = resource.ConfigPlanChecks{}, true
	step.ConfigStateChecks = []statecheck.StateCheck{afterwards(func() error { bound(); return nil })}
	return step
}

// Private clusters first: one workload moves to the managed cluster as a whole if the private ones have too little
// capacity, and returns. The other sends only what does not fit there.
func TestAccStoryPrivateFirst(t *testing.T) {
	f, step := story(t, "private-first")
	web := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
	rendering := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "rendering"}
	variables := func(frames int, maintenance bool) config.Variables {
		return config.Variables{
			"frames": config.IntegerVariable(frames), "maintenance": config.BoolVariable(maintenance), "stabilization": config.StringVariable("2s"),
		}
	}
	runs := func(web, rendering counts) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"web": web.check(), "rendering": rendering.check()}
	}
	private := counts{"private1": 2, "private2": 2}
	// The whole shop is on the managed cluster, and of the frames what does not fit on private2.
	managed, spilled, back := counts{"managed": 4}, counts{"private2": 4, "managed": 2}, counts{"private1": 4}
	bound := func(on, frames counts) func() {
		return func() {
			f.untilBound(web, on, nil)
			f.untilBound(rendering, frames, nil)
		}
	}
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			then(step, nil, variables(8, false), runs(private, counts{"private1": 3, "private2": 3, "managed": 2})),
			then(step, nil, variables(6, false), runs(private, counts{"private1": 3, "private2": 3})),
			then(step, nil, variables(6, true), runs(managed, spilled)),
			// The shop returns after the window; the frames stay where they are.
			moves(step, variables(6, false), bound(back, spilled)),
			shows(step, nil, variables(6, false), runs(back, spilled)),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: variables(6, false), Destroy: true},
		},
	})
}

// A primary and a backup site: when the primary is lost, the replicas appear on the backup; when it is back, they
// return after the window. Each step shows in a plan.
func TestAccStoryPrimaryBackup(t *testing.T) {
	f, step := story(t, "primary-backup")
	agents := f.agents("member1", "member2")
	ledger := api.Key{Kind: api.KindWorkload, Namespace: "bank", Name: "ledger"}
	variables := func(maintenance bool) config.Variables {
		return config.Variables{
			"heartbeat_interval": config.StringVariable("5s"), "grace_period": config.StringVariable("1h"),
			"stabilization": config.StringVariable("2s"), "maintenance": config.BoolVariable(maintenance),
		}
	}
	runs := func(on, leaving counts) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"runs_on": on.check(), "leaving": leaving.check()}
	}
	primary, backup := counts{"member1": 3}, counts{"member2": 3}
	bound := func(on, leaving counts) func() { return func() { f.untilBound(ledger, on, leaving) } }
	after := func(first, next func()) func() { return func() { first(); next() } }
	silence := func(cluster string, silent bool) func() { return func() { agents.of(cluster).Store(silent) } }
	healthy := func(cluster string) func() { return func() { f.healthy(ledger, cluster) } }

	// The clusters are created before their agents report, so that none is online for the first decision. The server
	// makes the next one on its own.
	create := moves(step, variables(false), func() {
		agents.of("member1").Store(false)
		f.untilBound(ledger, primary, nil)
		agents.of("member2").Store(false)
	})
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			create,
			shows(step, nil, variables(false), runs(primary, nil)),

			// The heartbeats of the primary stop. Its copy counts as running until the backup is healthy.
			shows(step, after(silence("member1", true), bound(backup, primary)), variables(false), runs(backup, primary)),
			shows(step, after(healthy("member2"), bound(backup, nil)), variables(false), runs(backup, nil)),

			// It has been back for long enough: the backup runs until the primary is healthy.
			shows(step, after(silence("member1", false), bound(primary, backup)), variables(false), runs(primary, backup)),
			shows(step, after(healthy("member1"), bound(primary, nil)), variables(false), runs(primary, nil)),

			// The same with a taint, which is removed before the backup is healthy.
			then(step, nil, variables(true), runs(backup, primary)),
			moves(step, variables(false), bound(primary, backup)), // after the window
			shows(step, nil, variables(false), runs(primary, backup)),

			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: variables(false), Destroy: true},
		},
	})
}

// A team's resources follow the binding of its workload, in the same apply that creates it. The clusters and the policy
// belong to another configuration.
func TestAccStoryFollowTheBinding(t *testing.T) {
	f, team := story(t, "follow-the-binding")
	platform := team
	platform.ConfigFile = config.StaticFile("../examples/follow-the-binding/platform/main.tf")
	web := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
	replicas := func(n int) config.Variables { return config.Variables{"replicas": config.IntegerVariable(n)} }
	deployed := func(on counts) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"deployments": knownvalue.ObjectExact(func() map[string]knownvalue.Check {
			checks := map[string]knownvalue.Check{}
			for cluster, n := range on {
				checks[cluster] = knownvalue.Int64Exact(n)
			}
			return checks
		}())}
	}
	planned := func(step resource.TestStep, on counts) resource.TestStep {
		step.ConfigPlanChecks.PreApply = append(step.ConfigPlanChecks.PreApply,
			plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("clusters"), on.check()))
		return step
	}
	use := func() {
		each := func(n int64) counts { return counts{"member1": n, "member2": n, "member3": n} }
		resource.Test(t, resource.TestCase{
			Steps: []resource.TestStep{
				planned(then(team, nil, replicas(3), deployed(each(1))), each(1)),
				planned(then(team, nil, replicas(6), deployed(each(2))), each(2)),
				// A cluster is drained. Its replicas stay until the others are healthy.
				shows(team, func() {
					f.taint("member2", api.EffectNoSelect)
					f.untilBound(web, counts{"member1": 3, "member3": 3}, counts{"member2": 2})
				}, replicas(6), deployed(counts{"member1": 3, "member2": 2, "member3": 3})),
				then(team, func() {
					f.healthy(web, "member1")
					f.healthy(web, "member3")
					f.untilBound(web, counts{"member1": 3, "member3": 3}, nil)
				}, replicas(6), deployed(counts{"member1": 3, "member3": 3})),
				{ProtoV6ProviderFactories: team.ProtoV6ProviderFactories, ConfigFile: team.ConfigFile, ConfigVariables: replicas(6), Destroy: true},
			},
		})
	}
	apply := moves(platform, nil, use) // the team's part has tainted a cluster
	resource.Test(t, resource.TestCase{Steps: []resource.TestStep{
		apply,
		{ProtoV6ProviderFactories: platform.ProtoV6ProviderFactories, ConfigFile: platform.ConfigFile, Destroy: true},
	}})
}

package provider_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// untilStands waits until a decision stands on some clusters, in any order.
func (f *fleet) untilStands(key api.Key, clusters ...string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), eventually.Limit)
	defer cancel()
	object, err := f.client.Get(ctx, key)
	for err == nil {
		var stands []string
		switch o := object.(type) {
		case *api.Placement:
			stands = slices.Sorted(slices.Values(o.Status.Clusters))
		case *api.Workload:
			stands = o.Status.Names()
		}
		if slices.Equal(stands, clusters) {
			return
		}
		object, err = f.client.GetNewer(ctx, key, object.Meta().ResourceVersion, 10*time.Second)
	}
	f.t.Fatalf("%s does not stand on %v: %v", key, clusters, err)
}

// noOutput checks that an output is null: Terraform keeps no such output.
type noOutput string

func (n noOutput) CheckState(_ context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	if output, kept := req.State.Values.Outputs[string(n)]; kept {
		resp.Error = fmt.Errorf("output %s is %v, want none", n, output.Value)
	}
}

// A staged move with approval: each ring is approved in the configuration, and a cluster is left when the shop is
// reported healthy on its successor.
func TestAccStoryStagedMove(t *testing.T) {
	f, step := story(t, "staged-move")
	shop := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "shop"}
	variables := func(generation string, approved int) config.Variables {
		v := config.Variables{"generation": config.StringVariable(generation), "min_success_time": config.StringVariable("1s")}
		if approved > 0 {
			v["approve"] = config.ObjectVariable(map[string]config.Variable{"revision": config.IntegerVariable(1), "step": config.IntegerVariable(approved)})
		}
		return v
	}
	moving := func(approved int, happens func(), waiting string, at int64, runsOn ...string) resource.TestStep {
		return then(step, happens, variables("green", approved), map[string]knownvalue.Check{
			"runs_on": names(runsOn...),
			"rollout": knownvalue.ObjectExact(map[string]knownvalue.Check{
				"revision": knownvalue.Int64Exact(1), "step": knownvalue.Int64Exact(at),
				"waiting_for": knownvalue.StringExact(waiting), "target": names("green-1", "green-2"),
			}),
		})
	}
	settled := func(generation string, approved int, happens func(), runsOn ...string) resource.TestStep {
		s := then(step, happens, variables(generation, approved), map[string]knownvalue.Check{"runs_on": names(runsOn...)})
		s.ConfigStateChecks = append(s.ConfigStateChecks, noOutput("rollout"))
		return s
	}
	healthy := func(cluster string, then ...string) func() {
		return func() { f.healthy(shop, cluster); f.untilStands(shop, then...) }
	}
	stale := step
	stale.ConfigVariables, stale.ExpectError = config.Variables{
		"generation": config.StringVariable("green"), "min_success_time": config.StringVariable("1s"),
		"approve": config.ObjectVariable(map[string]config.Variable{"revision": config.IntegerVariable(7)}),
	}, regexp.MustCompile(`rollout 1 of .*\s+is\s+under\s+way`)
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			settled("blue", 0, nil, "blue-1", "blue-2"),
			moving(0, nil, "approval", 1, "blue-1", "blue-2"),
			stale,
			moving(1, nil, "health", 1, "blue-1", "blue-2", "green-1"),
			moving(1, healthy("green-1", "blue-2", "green-1"), "approval", 2, "blue-2", "green-1"),
			moving(2, nil, "health", 2, "blue-2", "green-1", "green-2"),
			settled("green", 2, healthy("green-2", "green-1", "green-2"), "green-1", "green-2"),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: variables("green", 2), Destroy: true},
		},
	})
}

// The replicas of a workload move when those that replace them are healthy. The plan stays empty meanwhile.
func TestAccWorkloadRollout(t *testing.T) {
	f := newFleet(t)
	f.member("member1", "8")
	f.member("member2", "8")
	configOf := func(cluster, approve string) string {
		return f.config(policy(fmt.Sprintf(`
			placement = {
			  cluster_affinity   = { cluster_names = [%q] }
			  replica_scheduling = {}
			}
			rollout = { approval = "step", min_success_time = "1s", health = "reported" }`, cluster)),
			workload(3, strings.Join([]string{"depends_on = [scheduler_propagation_policy.web]", approve}, "\n")))
	}
	const approve = "approve = { revision = 1 }"
	settled := resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: configOf("member1", ""), ConfigPlanChecks: settled, ConfigStateChecks: binding(workloadAddress, counts{"member1": 3}, nil)},
			{Config: configOf("member2", ""), ConfigStateChecks: binding(workloadAddress, counts{"member1": 3}, nil)},
			{Config: configOf("member2", approve), ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionUpdate)},
				PostApplyPostRefresh: emptyPlan(),
			}, ConfigStateChecks: binding(workloadAddress, counts{"member1": 3, "member2": 3}, nil)},
			{
				PreConfig: func() { f.healthy(webWorkload, "member2"); f.untilStands(webWorkload, "member2") },
				Config:    configOf("member2", approve), ConfigPlanChecks: settled,
				ConfigStateChecks: binding(workloadAddress, counts{"member2": 3}, nil),
			},
		},
	})
}

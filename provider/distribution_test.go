package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// splits adds a cluster with observed splits, which otherwise takes a real cluster. Everything else is up to the
// server.
func (f *fleet) splits(cluster string, workloads ...api.DistributedWorkload) *fleet {
	f.t.Helper()
	address, err := url.Parse(f.endpoint)
	if err != nil {
		f.t.Fatal(err)
	}
	rest := httputil.NewSingleHostReverseProxy(address)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/clusters/"+cluster+"/distributions" {
			rest.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"items": workloads}); err != nil {
			f.t.Error(err)
		}
	}))
	f.t.Cleanup(front.Close)
	splitting := *f
	splitting.endpoint = front.URL
	return &splitting
}

// untilObserved waits until a workload's split has been observed on a number of clusters.
func (f *fleet) untilObserved(key api.Key, clusters int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), eventually.Limit)
	defer cancel()
	object, err := f.client.Get(ctx, key)
	for err == nil {
		if w, ok := object.(*api.Workload); ok && len(w.Status.Distribution) == clusters {
			return
		}
		object, err = f.client.GetNewer(ctx, key, object.Meta().ResourceVersion, 10*time.Second)
	}
	f.t.Fatalf("%s was not observed on %d clusters: %v", key, clusters, err)
}

// splitting returns a Deployment "web" whose replicas a policy divides over two clusters, or duplicates, with
// additional attributes.
func splitting(division string, replicas int, more ...string) string {
	return policy(fmt.Sprintf(`placement = { replica_scheduling = { type = %q } }`, division)) + fmt.Sprintf(`
		resource "scheduler_workload" "web" {
		  name        = "web"
		  namespace   = "shop"
		  api_version = "apps/v1"
		  kind        = "Deployment"
		  replicas    = %d
		  depends_on  = [scheduler_propagation_policy.web]
		  %s
		}`, replicas, strings.Join(more, "\n"))
}

// split checks the split of the workload in the state.
func split(clusters, onDemand, spot counts) []statecheck.StateCheck {
	check := func(name string, c counts) statecheck.StateCheck {
		if c == nil {
			return statecheck.ExpectKnownValue(workloadAddress, tfjsonpath.New(name), knownvalue.Null())
		}
		return statecheck.ExpectKnownValue(workloadAddress, tfjsonpath.New(name), c.check())
	}
	return []statecheck.StateCheck{check("clusters", clusters), check("on_demand", onDemand), check("spot", spot)}
}

// resplits checks that a plan changes only the split.
func resplits(clusters counts) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{
		PreApply: []plancheck.PlanCheck{
			plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionUpdate),
			plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("clusters"), clusters.check()),
			plancheck.ExpectUnknownValue(workloadAddress, tfjsonpath.New("on_demand")),
			plancheck.ExpectUnknownValue(workloadAddress, tfjsonpath.New("spot")),
		},
		PostApplyPostRefresh: emptyPlan(),
	}
}

const customThree = `distribution = { mode = "custom", custom_on_demand = "3" }`

// Replicas are first divided over clusters, and then split in each: a count applies to the total, a percentage to each
// cluster, and with duplicated replicas a count to each copy. Only what changes is unknown in a plan, and everything is
// known after an apply.
func TestAccDistribution(t *testing.T) {
	f := newFleet(t)
	f.member("member1", "40")
	f.member("member2", "40")
	divided, duplicated := counts{"member1": 5, "member2": 5}, counts{"member1": 10, "member2": 10}
	preview := `
		data "scheduler_propagation_preview" "web" {
		  workload = { name = "web", namespace = "shop", api_version = "apps/v1", kind = "Deployment", replicas = 4, ` + customThree + ` }
		}`
	previewed := resource.ConfigPlanChecks{
		PreApply: []plancheck.PlanCheck{
			plancheck.ExpectResourceAction(workloadAddress, plancheck.ResourceActionUpdate),
			plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("clusters"), counts{"member1": 2, "member2": 2}.check()),
			plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("on_demand"), counts{"member1": 2, "member2": 1}.check()),
			plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("spot"), counts{"member1": 0, "member2": 1}.check()),
		},
		PostApplyPostRefresh: emptyPlan(),
	}
	unsplit := resource.ConfigPlanChecks{
		PreApply: []plancheck.PlanCheck{
			plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("clusters"), duplicated.check()),
			plancheck.ExpectKnownValue(workloadAddress, tfjsonpath.New("on_demand"), knownvalue.Null()),
		},
		PostApplyPostRefresh: emptyPlan(),
	}
	seen := func(at tfjsonpath.Path, want knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.scheduler_workload.web", at, want)
	}
	created := resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectUnknownValue(workloadAddress, tfjsonpath.New("on_demand"))},
		PostApplyPostRefresh: emptyPlan(),
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(webWorkload) },
		Steps: []resource.TestStep{
			{
				Config:           f.config(splitting("Divided", 10, customThree)),
				ConfigPlanChecks: created,
				// 1.5 each; the first of equals gets the remainder.
				ConfigStateChecks: split(divided, counts{"member1": 2, "member2": 1}, counts{"member1": 3, "member2": 4}),
			},
			{
				ResourceName: workloadAddress, ImportState: true, ImportStateId: "shop/web",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{ // removed outside of Terraform: the plan reverts it
				PreConfig:         func() { edit(f, webWorkload, func(w *api.Workload) { w.Spec.Distribution = nil }) },
				Config:            f.config(splitting("Divided", 10, customThree)),
				ConfigPlanChecks:  resplits(divided),
				ConfigStateChecks: split(divided, counts{"member1": 2, "member2": 1}, counts{"member1": 3, "member2": 4}),
			},
			{
				// Spot is disabled on both clusters, which has been observed.
				PreConfig: func() { f.untilObserved(webWorkload, 2) },
				Config: f.config(splitting("Divided", 10, `distribution = { mode = "custom", custom_on_demand = "30%" }`), `
					data "scheduler_workload" "web" {
					  name       = "web"
					  namespace  = "shop"
					  depends_on = [scheduler_workload.web]
					}`),
				ConfigPlanChecks: resplits(divided),
				ConfigStateChecks: append(split(divided, counts{"member1": 2, "member2": 2}, counts{"member1": 3, "member2": 3}),
					seen(tfjsonpath.New("distribution_spec").AtMapKey("custom_on_demand"), knownvalue.StringExact("30%")),
					seen(tfjsonpath.New("on_demand"), counts{"member1": 2, "member2": 2}.check()),
					seen(tfjsonpath.New("spot"), counts{"member1": 3, "member2": 3}.check()),
					seen(tfjsonpath.New("distribution").AtSliceIndex(1).AtMapKey("cluster"), knownvalue.StringExact("member2")),
					seen(tfjsonpath.New("distribution").AtSliceIndex(1).AtMapKey("state"), knownvalue.StringExact("unmanaged")),
					seen(tfjsonpath.New("distribution").AtSliceIndex(1).AtMapKey("replicas"), knownvalue.NotNull()),
				),
			},
			{ // the default for a Deployment
				Config:            f.config(splitting("Divided", 10, `distribution = {}`)),
				ConfigPlanChecks:  resplits(divided),
				ConfigStateChecks: split(divided, counts{"member1": 0, "member2": 0}, divided),
			},
			{ // it is meaningful although it is empty
				PreConfig:         func() { edit(f, webWorkload, func(w *api.Workload) { w.Spec.Distribution = nil }) },
				Config:            f.config(splitting("Divided", 10, `distribution = {}`)),
				ConfigPlanChecks:  resplits(divided),
				ConfigStateChecks: split(divided, counts{"member1": 0, "member2": 0}, divided),
			},
			{ // a preview also says how a smaller number is split
				Config:            f.config(splitting("Divided", 4, customThree, `preview_token_wo = data.scheduler_propagation_preview.web.token`), preview),
				ConfigPlanChecks:  previewed,
				ConfigStateChecks: split(counts{"member1": 2, "member2": 2}, counts{"member1": 2, "member2": 1}, counts{"member1": 0, "member2": 1}),
			},
			{ // every cluster has a copy with the whole count
				Config:            f.config(splitting("Duplicated", 10, customThree)),
				ConfigStateChecks: split(duplicated, counts{"member1": 3, "member2": 3}, counts{"member1": 7, "member2": 7}),
			},
			{
				Config:            f.config(splitting("Duplicated", 10)),
				ConfigPlanChecks:  unsplit,
				ConfigStateChecks: split(duplicated, nil, nil),
			},
		},
	})
}

// The example of spot nodes, without kubeconfigs, which decisions do not need. A separate configuration reads what is
// observed.
func TestAccStorySpot(t *testing.T) {
	f, step := story(t, "spot")
	progress := step
	progress.ConfigFile = config.StaticFile("../examples/spot/progress/main.tf")
	each := func(n int64) counts { return counts{"berlin": n, "paris": n} }
	decided := func(web, database counts) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{"web": web.check(), "database": database.check()})
	}
	enabled := func(spot bool, onDemand string) config.Variables {
		return config.Variables{"spot": config.BoolVariable(spot), "on_demand": config.StringVariable(onDemand)}
	}
	shop := then(step, nil, nil, map[string]knownvalue.Check{"on_demand": decided(each(2), each(2)), "spot": decided(each(3), each(1))})
	shop.ConfigStateChecks = append(shop.ConfigStateChecks, afterwards(func() error {
		f.untilObserved(webWorkload, 2)
		both := knownvalue.ObjectExact(map[string]knownvalue.Check{"berlin": knownvalue.NotNull(), "paris": knownvalue.NotNull()})
		resource.Test(t, resource.TestCase{Steps: []resource.TestStep{then(progress, nil, nil, map[string]knownvalue.Check{"progress": both})}})
		return nil
	}))
	resource.Test(t, resource.TestCase{Steps: []resource.TestStep{
		shop,
		then(step, nil, enabled(false, "100%"), map[string]knownvalue.Check{"on_demand": decided(each(5), each(2)), "spot": decided(each(0), each(1))}),
		{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: enabled(false, "100%"), Destroy: true},
	}})
}

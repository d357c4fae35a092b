package provider_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// green adds static metrics "green" from 0 to 10, each in the namespace of the thing that it rates.
func (f *fleet) green(values map[string]float64) {
	f.t.Helper()
	for name, value := range values {
		f.put(&api.MetricsProvider{Metadata: api.Metadata{Name: "table", Namespace: name}, Spec: api.MetricsProviderSpec{
			Type: api.ProviderStatic, Interval: "200ms", Static: &api.StaticSpec{Metrics: map[string]float64{"green": value}},
		}})
		f.put(&api.Metric{Metadata: api.Metadata{Name: "green", Namespace: name}, Spec: api.MetricSpec{
			Min: new(0.0), Max: new(10.0), MetricsProvider: api.MetricProviderRef{Name: "table", Metric: "green"},
		}})
	}
}

// clouds adds the clouds de and fr in the namespace shop, rated by a static metric: de 0.2, fr 0.8.
func (f *fleet) clouds() {
	f.t.Helper()
	f.green(map[string]float64{"de": 2, "fr": 8})
	for _, name := range []string{"de", "fr"} {
		f.put(&api.Cloud{
			Metadata: api.Metadata{Name: name, Labels: map[string]string{"location": name, "tier": "prod"}},
			Spec:     api.CloudSpec{Namespace: "shop", Metrics: []api.MetricRef{{Name: "green", Namespace: name}}},
		})
	}
}

// untilChosen waits until the chosen cloud or project is one of the names.
func (f *fleet) untilChosen(key api.Key, names ...string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), eventually.Limit)
	defer cancel()
	object, err := f.client.Get(ctx, key)
	for err == nil {
		chosen := ""
		switch o := object.(type) {
		case *api.Cluster:
			chosen = o.Status.Cloud
		case *api.MagnumCluster:
			chosen = o.Status.Project
		}
		if slices.Contains(names, chosen) {
			return
		}
		object, err = f.client.GetNewer(ctx, key, object.Meta().ResourceVersion, 10*time.Second)
	}
	f.t.Fatalf("%s is not on one of %v: %v", key, names, err)
}

// wanted returns a cluster "east" in the namespace shop that is to be created, with attributes.
func wanted(attributes string) string {
	return fmt.Sprintf("resource \"scheduler_cluster\" \"east\" {\n name = \"east\"\n namespace = \"shop\"\n %s\n}", attributes)
}

// onCloud checks the cluster's cloud.
func onCloud(name string) []statecheck.StateCheck {
	want := knownvalue.Null()
	check := statecheck.ExpectKnownValue("scheduler_cluster.east", tfjsonpath.New("cloud"), want)
	if name != "" {
		check = statecheck.ExpectKnownValue("scheduler_cluster.east", tfjsonpath.New("cloud"), knownvalue.StringExact(name))
	}
	return []statecheck.StateCheck{check}
}

func TestAccClusterCloud(t *testing.T) {
	f := newFleet(t)
	f.clouds()
	cloud := tfjsonpath.New("cloud")
	east := "scheduler_cluster.east"
	asks := resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectUnknownValue(east, cloud)},
		PostApplyPostRefresh: emptyPlan(),
	}
	keeps := func(name string) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{
			PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(east, plancheck.ResourceActionUpdate),
				plancheck.ExpectKnownValue(east, cloud, knownvalue.StringExact(name)),
			},
			PostApplyPostRefresh: emptyPlan(),
		}
	}
	anywhere := `cloud_constraints = { label_constraints = ["location in (de, fr)"], metric_constraints = ["green > 1"] }`
	germany := `cloud_constraints = { label_constraints = ["location is de"] }`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: f.config(wanted(anywhere)), ConfigPlanChecks: asks, ConfigStateChecks: onCloud("fr")},
			{
				ResourceName: east, ImportState: true, ImportStateId: "east",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			{ // a better cloud: an existing cluster stays
				PreConfig:        func() { f.green(map[string]float64{"de": 9}) },
				Config:           f.config(wanted(anywhere + "\n labels = { team = \"web\" }")),
				ConfigPlanChecks: keeps("fr"), ConfigStateChecks: onCloud("fr"),
			},
			{ // it exists, and its kubeconfig is passed back: the cloud stays
				Config: f.config(wanted(anywhere + `
					kubernetes = { kubeconfig_wo_version = 1, kubeconfig_wo = yamlencode({
					  current-context = "c"
					  contexts        = [{ name = "c", context = { cluster = "c", user = "u" } }]
					  clusters        = [{ name = "c", cluster = { server = "https://127.0.0.1:1" } }]
					  users           = [{ name = "u", user = { token = "t" } }]
					}) }
					inherit_labels = true`)),
				ConfigPlanChecks: keeps("fr"), ConfigStateChecks: onCloud("fr"),
			},
			{ // the inherited values
				Config: f.config(wanted(anywhere+`
					kubernetes     = { kubeconfig_wo_version = 1 }
					inherit_labels = true`), `data "scheduler_cluster" "east" { name = scheduler_cluster.east.name }`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectKnownValue(east, cloud, knownvalue.StringExact("fr"))}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue("data.scheduler_cluster.east", tfjsonpath.New("status").AtMapKey("cloud"), knownvalue.StringExact("fr")),
					statecheck.ExpectKnownValue("data.scheduler_cluster.east", tfjsonpath.New("status").AtMapKey("labels"), knownvalue.MapExact(map[string]knownvalue.Check{
						"location": knownvalue.StringExact("fr"), "tier": knownvalue.StringExact("prod"),
					})),
				},
			},
			{ // other constraints, which the cloud does not satisfy
				Config: f.config(wanted(germany)), ConfigPlanChecks: asks, ConfigStateChecks: onCloud("de"),
			},
			{
				Config:      f.config(wanted(`cloud_constraints = { label_constraints = ["location is es"] }`)),
				ExpectError: regexp.MustCompile(`(?s)No cloud for cluster "east".*0 of 2 clouds\s+fit.*location is es`),
			},
			{ // the zone that it represents determines its cloud
				Config: f.config(wanted(`openstack = { cloud = "de", region = "RegionOne", availability_zone = "az1" }`)), ConfigPlanChecks: asks,
				ConfigStateChecks: onCloud(""),
			},
		},
	})
}

// If a cloud is deleted, the next refresh shows the new choice, and nothing is left to apply.
func TestAccClusterCloudIsGone(t *testing.T) {
	f := newFleet(t)
	f.clouds()
	config := f.config(wanted(`cloud_constraints = { label_constraints = ["tier is prod"] }`))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: onCloud("fr")},
			{
				PreConfig: func() {
					f.delete(api.Key{Kind: api.KindCloud, Name: "fr"})
					f.untilChosen(eastKey, "de")
				},
				Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: emptyPlan(), PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: onCloud("de"),
			},
		},
	})
}

// A cluster without cloud constraints, and one with constraints that no cloud satisfies: for the first the provider
// does not wait, the second is created with a warning.
func TestAccClusterWithoutCloud(t *testing.T) {
	f := newFleet(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config:           f.config(wanted(`labels = { location = "DE" }`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}, ConfigStateChecks: onCloud(""),
			},
			{
				Config:            f.config(wanted(`paused = true`)),
				ConfigStateChecks: onCloud(""),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectKnownValue("scheduler_cluster.east", tfjsonpath.New("cloud"), knownvalue.Null())},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
		},
	})
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{{
			Config:           f.config(wanted(`cloud_constraints = { label_constraints = ["location is es"] }`)),
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}, ConfigStateChecks: onCloud(""),
		}},
	})
}

// A cluster that is yet to be created gets no placement until something shows that it exists.
func TestAccClusterToBeCreated(t *testing.T) {
	f := newFleet(t)
	f.clouds()
	config := f.config(wanted(`cloud_constraints = {}`), `
		resource "scheduler_placement" "web" {
			name              = "web"
			namespace         = "shop"
			number_of_clusters = 1
			wait              = { "for" = "none" }
			depends_on        = [scheduler_cluster.east]
		}
		data "scheduler_placement_explanation" "web" {
			name      = scheduler_placement.web.name
			namespace = "shop"
		}
		data "scheduler_cluster" "east" {
			name       = scheduler_cluster.east.name
			depends_on = [scheduler_placement.web]
		}`)
	state := func(want string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.scheduler_cluster.east", tfjsonpath.New("status").AtMapKey("state"), knownvalue.StringExact(want))
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: config,
				ConfigStateChecks: append(onCloud("fr"), state("pending"),
					statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("clusters"), knownvalue.ListSizeExact(0)),
					statecheck.ExpectKnownValue("data.scheduler_placement_explanation.web", tfjsonpath.New("candidates").AtSliceIndex(0).AtMapKey("reason"),
						knownvalue.StringRegexp(regexp.MustCompile("^is pending: it has yet to be created")))),
			},
			{
				PreConfig: func() {
					if _, err := f.client.Heartbeat(f.ctx(), "east", api.Heartbeat{}); err != nil {
						t.Fatal(err)
					}
				},
				RefreshState: true,
			},
			{
				Config: config,
				ConfigStateChecks: append(onCloud("fr"), state("online"),
					statecheck.ExpectKnownValue("scheduler_placement.web", tfjsonpath.New("clusters"), knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("east")}))),
			},
		},
	})
}

package provider_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

const cloudAddress = "scheduler_cloud.de"

var deCloud = api.Key{Kind: api.KindCloud, Name: "de"}

// fullCloud is an OpenStack that does not respond.
const fullCloud = `
	resource "scheduler_cloud" "de" {
	  name      = "de"
	  namespace = "shop"
	  labels    = { location = "DE", "team/tier" = "prod" }
	  metrics   = [{ name = "price", weight = 0.1 }, { name = "green", namespace = "shop" }]
	  openstack = {
	    auth_url             = "http://127.0.0.1:1/v3"
	    username             = "scheduler"
	    password_wo          = "the first secret"
	    password_wo_version  = %d
	    project_name         = "admin"
	    project_domain_name  = "corp"
	    regions              = ["RegionOne"]
	    interval             = "1m0s"
	    timeout              = "2s"
	    insecure_skip_verify = true
	  }
	}`

func TestAccCloudLifecycle(t *testing.T) {
	f := newFleet(t)
	access := tfjsonpath.New("openstack")
	bare := f.config(`resource "scheduler_cloud" "de" { name = "de" }`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(deCloud) },
		Steps: []resource.TestStep{
			{Config: bare, ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}},
			{
				Config: f.config(fmt.Sprintf(fullCloud, 1)),
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(cloudAddress, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(cloudAddress, access.AtMapKey("user_domain_name"), knownvalue.StringExact("Default")),
					statecheck.ExpectKnownValue(cloudAddress, access.AtMapKey("project_domain_name"), knownvalue.StringExact("corp")),
					statecheck.ExpectKnownValue(cloudAddress, access.AtMapKey("interval"), knownvalue.StringExact("1m0s")),
					statecheck.ExpectKnownValue(cloudAddress, access.AtMapKey("password_wo"), knownvalue.Null()),
				},
			},
			{
				ResourceName: cloudAddress, ImportState: true, ImportStateId: "de",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name", ImportStateVerifyIgnore: []string{"openstack.password_wo_version"},
			},
			{ // an application credential in place of the user
				Config: f.config(`
					resource "scheduler_cloud" "de" {
					  name = "de"
					  openstack = {
					    auth_url                         = "http://127.0.0.1:1/v3"
					    application_credential_id        = "4711"
					    application_credential_secret_wo = "another secret"
					    timeout                          = "2s"
					  }
					}`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(cloudAddress, access.AtMapKey("user_domain_name"), knownvalue.Null()),
					statecheck.ExpectKnownValue(cloudAddress, access.AtMapKey("interval"), knownvalue.StringExact(string(api.DefaultCollectInterval))),
				},
			},
			{ // all optional attributes are removed
				Config: bare,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(cloudAddress, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
		},
	})
}

func TestAccCloudDrift(t *testing.T) {
	f := newFleet(t)
	config := f.config(`
		resource "scheduler_cloud" "de" {
		  name      = "de"
		  labels    = { location = "DE" }
		  openstack = { auth_url = "http://127.0.0.1:1/v3" }
		}`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}},
			{
				PreConfig: func() {
					edit(f, deCloud, func(c *api.Cloud) {
						c.Metadata.Labels["location"] = "FR"
						c.Spec.OpenStack.Interval, c.Spec.OpenStack.Regions = "5m", []string{"a"}
					})
				},
				Config: config,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(cloudAddress, plancheck.ResourceActionUpdate)},
					PostApplyPostRefresh: emptyPlan(),
				},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(cloudAddress, tfjsonpath.New("openstack").AtMapKey("interval"), knownvalue.StringExact("60s")),
				},
			},
			{
				PreConfig: func() { f.delete(deCloud) },
				Config:    config,
				ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(cloudAddress, plancheck.ResourceActionCreate)},
					PostApplyPostRefresh: emptyPlan(),
				},
			},
		},
	})
}

// The credentials of every kind reach the server and are not in the state; a new version sends them again.
func TestAccOpenStackSecrets(t *testing.T) {
	f := newFleet(t)
	noSecret := func(s *terraform.State) error {
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if strings.Contains(string(data), "secret\"") || strings.Contains(string(data), "the first") {
			return fmt.Errorf("the state has the secret: %s", data)
		}
		return nil
	}
	generations := map[api.Key]int64{}
	changed := func(want bool, keys ...api.Key) resource.TestCheckFunc {
		return func(*terraform.State) error {
			for _, key := range keys {
				object, err := f.client.Get(f.ctx(), key)
				if err != nil {
					return err
				}
				generation := object.Meta().Generation
				if (generation != generations[key]) != want {
					return fmt.Errorf("%s has the generation %d after %d", key, generation, generations[key])
				}
				generations[key] = generation
			}
			return nil
		}
	}
	project := `
		resource "scheduler_openstack_project" "web" {
		  name      = "web"
		  namespace = "shop"
		  openstack = {
		    auth_url                                 = "http://127.0.0.1:1/v3"
		    application_credential_id                = "4711"
		    application_credential_secret_wo         = "the first secret"
		    application_credential_secret_wo_version = %d
		  }
		}`
	influx := `
		resource "scheduler_metrics_provider" "influx" {
		  name   = "influx"
		  type   = "influx"
		  influx = { url = "http://127.0.0.1:1", org = "shop", bucket = "figures", token_wo = "the first secret", token_wo_version = %d }
		}`
	configuration := func(secret string, version int) string {
		text := f.config(fmt.Sprintf(fullCloud, version), fmt.Sprintf(project, version), fmt.Sprintf(influx, version))
		return strings.ReplaceAll(text, "the first secret", secret)
	}
	keys := []api.Key{
		deCloud, {Kind: api.KindOpenStackProject, Namespace: "shop", Name: "web"}, {Kind: api.KindMetricsProvider, Name: "influx"},
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { return f.gone(keys...) },
		Steps: []resource.TestStep{
			{
				Config:           configuration("the first secret", 1),
				Check:            resource.ComposeTestCheckFunc(noSecret, changed(true, keys...)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
			},
			{ // Terraform cannot see that the secrets have changed
				Config:           configuration("the second secret", 1),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: emptyPlan()},
				Check:            changed(false, keys...),
			},
			{ // the new version shows it
				Config: configuration("the second secret", 2),
				Check:  resource.ComposeTestCheckFunc(noSecret, changed(true, keys...)),
			},
			{ // sending the same secrets again changes nothing on the server
				Config: configuration("the second secret", 3),
				Check:  changed(false, keys...),
			},
		},
	})
}

// Invalid input fails the plan, and the error says what would be valid.
func TestAccOpenStackBadInput(t *testing.T) {
	f := newFleet(t)
	cloud := func(access string) string {
		return "resource \"scheduler_cloud\" \"de\" {\n name = \"de\"\n openstack = {\n" + access + "\n}\n}"
	}
	for _, test := range []struct{ name, config, want string }{
		{"no address", cloud(`auth_url = "keystone:5000"`), `(?s)openstack.auth_url.*is\s+not\s+an\s+address`},
		{"no project", cloud("auth_url = \"https://k/v3\"\n username = \"u\"\n password_wo = \"p\""), `(?s)openstack.project_name.*is\s+required\s+with\s+a\s+user`},
		{"two kinds of credentials", cloud("auth_url = \"https://k/v3\"\n username = \"u\"\n application_credential_id = \"a\""), `(?s)openstack.username.*must\s+be\s+absent`},
		{"no certificate", cloud("auth_url = \"https://k/v3\"\n ca_cert = \"x\""), `(?s)openstack.ca_cert.*no\s+PEM\s+certificate`},
		{"constraints", "resource \"scheduler_cluster\" \"c\" {\n name = \"c\"\n cloud_constraints = { label_constraints = [\"location DE\"] }\n}", `(?s)cloud_constraints.label_constraints\[0\]`},
		{"metric constraint", "resource \"scheduler_magnum_cluster\" \"c\" {\n name = \"c\"\n metric_constraints = [\"price cheap\"]\n}", `(?s)metric_constraints\[0\]`},
		{"a kubeconfig that runs a program", `
			resource "scheduler_cluster" "c" {
			  name       = "c"
			  kubernetes = { kubeconfig_wo = yamlencode({
			    current-context = "c"
			    contexts        = [{ name = "c", context = { cluster = "c", user = "u" } }]
			    clusters        = [{ name = "c", cluster = { server = "https://127.0.0.1:6443" } }]
			    users           = [{ name = "u", user = { exec = { command = "rm" } } }]
			  }) }
			}`, `(?s)kubernetes.kubeconfig_wo.*must\s+not\s+run\s+programs`},
		{"influx without a bucket", "resource \"scheduler_metrics_provider\" \"i\" {\n name = \"i\"\n type = \"influx\"\n influx = { url = \"http://i\", bucket = \"\" }\n}", `(?s)influx.bucket.*is\s+required`},
		{"kafka without its block", "resource \"scheduler_metrics_provider\" \"k\" {\n name = \"k\"\n type = \"kafka\"\n}", `(?s)kafka.*is\s+required\s+because\s+type\s+is\s+"kafka"`},
		{"an allocation of nothing", "resource \"scheduler_workload\" \"w\" {\n name = \"w\"\n api_version = \"v1\"\n kind = \"Pod\"\n allocation = {}\n}", `(?s)replicas.*is\s+required\s+with\s+allocation`},
		{"another strategy", "resource \"scheduler_workload\" \"w\" {\n name = \"w\"\n api_version = \"v1\"\n kind = \"Pod\"\n replicas = 1\n allocation = { location_strategy = \"near\" }\n}", `(?s)allocation.location_strategy.*"near"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps:                    []resource.TestStep{{Config: f.config(test.config), PlanOnly: true, ExpectError: regexp.MustCompile(test.want)}},
			})
		})
	}
}

// The data source shows the amounts that a collector has pushed.
func TestAccCloudDataSource(t *testing.T) {
	f := newFleet(t)
	f.put(&api.Cloud{Metadata: api.Metadata{Name: "de", Labels: map[string]string{"location": "DE"}}})
	f.pushZones("de", "RegionOne", map[string]api.Quantities{
		"az1": {api.ResourceCPU: "8", api.ResourceMemory: "16384Mi", "storage/ssd": "100Gi"},
		"az2": {api.ResourceCPU: "4", api.ResourceMemory: "8192Mi", "storage/ssd": "100Gi"},
	})
	cloud := "data.scheduler_cloud.de"
	// Paths share their common prefix, so each is built separately.
	region := func() tfjsonpath.Path { return tfjsonpath.New("status").AtMapKey("regions").AtSliceIndex(0) }
	zone := func() tfjsonpath.Path { return region().AtMapKey("zones").AtSliceIndex(1) }
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				Config: f.config(`data "scheduler_cloud" "de" { name = "de" }`),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(cloud, tfjsonpath.New("labels").AtMapKey("location"), knownvalue.StringExact("DE")),
					statecheck.ExpectKnownValue(cloud, region().AtMapKey("name"), knownvalue.StringExact("RegionOne")),
					statecheck.ExpectKnownValue(cloud, zone().AtMapKey("name"), knownvalue.StringExact("az2")),
					statecheck.ExpectKnownValue(cloud, zone().AtMapKey("available").AtMapKey("cpu"), knownvalue.StringExact("4")),
					statecheck.ExpectKnownValue(cloud, zone().AtMapKey("available").AtMapKey("storage/ssd"), knownvalue.StringExact("100Gi")),
					statecheck.ExpectKnownValue(cloud, region().AtMapKey("flavors").AtSliceIndex(0).AtMapKey("memory_mib"), knownvalue.Int64Exact(16384)),
					statecheck.ExpectKnownValue(cloud, region().AtMapKey("volume_types").AtSliceIndex(0).AtMapKey("name"), knownvalue.StringExact("ssd")),
					statecheck.ExpectKnownValue(cloud, tfjsonpath.New("status").AtMapKey("collector").AtMapKey("sequence"), knownvalue.Int64Exact(1)),
				},
			},
			{
				Config:      f.config(`data "scheduler_cloud" "x" { name = "nowhere" }`),
				ExpectError: regexp.MustCompile(`(?s)Cannot read cloud nowhere.*does not\s+exist`),
			},
		},
	})
}

// pushZones pushes the resources of a region's zones, all of them available, with the flavors "small" (2 CPUs, 4 GiB)
// and "large" (8 CPUs, 16 GiB).
func (f *fleet) pushZones(cloud, region string, zones map[string]api.Quantities) {
	f.t.Helper()
	report := api.CloudRegionReport{
		Name: region,
		Flavors: &[]api.CloudFlavor{
			{ID: "2", Name: "large", VCPUs: 8, MemoryMiB: 16384, Public: true},
			{ID: "1", Name: "small", VCPUs: 2, MemoryMiB: 4096, Public: true},
		},
		VolumeTypes: &[]api.CloudVolumeType{{ID: "3", Name: "ssd", Backend: "ceph"}},
	}
	for name, amounts := range zones {
		report.Zones = append(report.Zones, api.CloudZone{Name: name, Hosts: 1, Capacity: amounts, Allocatable: amounts, Available: amounts})
	}
	full := api.CloudReport{Collector: "test", Sequence: 1, Full: true, Regions: []api.CloudRegionReport{report}}
	if _, err := f.client.ReportCloud(f.ctx(), cloud, full); err != nil {
		f.t.Fatal(err)
	}
}

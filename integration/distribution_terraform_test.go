//go:build integration

package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// distributionConfiguration has a cluster, a policy, and a workload whose
// distribution is what the variable says.
const distributionConfiguration = `
	terraform {
	  required_providers {
	    scheduler = { source = "scheduler/scheduler" }
	  }
	}
	variable "distribution" {
	  type    = object({ mode = string, custom_on_demand = string })
	  default = null
	}
	resource "scheduler_cluster" "real" {
	  name            = "real"
	  kubernetes      = { kubeconfig = file("kubeconfig") }
	  secrets_version = 1
	  spot            = { enabled = true }
	}
	resource "scheduler_propagation_policy" "all" {
	  name               = "all"
	  namespace          = "shop"
	  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]
	  placement          = {}
	}
	resource "scheduler_workload" "web" {
	  name         = "web"
	  namespace    = "shop"
	  api_version  = "apps/v1"
	  kind         = "Deployment"
	  replicas     = 5
	  distribution = var.distribution
	  depends_on   = [scheduler_cluster.real, scheduler_propagation_policy.all]
	}
	output "split" {
	  value = { on_demand = scheduler_workload.web.on_demand, spot = scheduler_workload.web.spot }
	}
`

// observedConfiguration reads what is observed of it.
const observedConfiguration = `
	terraform {
	  required_providers {
	    scheduler = { source = "scheduler/scheduler" }
	  }
	}
	data "scheduler_workload" "web" {
	  name      = "web"
	  namespace = "shop"
	}
	output "observed" { value = data.scheduler_workload.web.distribution }
`

// beside is Terraform with another configuration.
func (f *terraform) beside(config string) *terraform {
	f.t.Helper()
	other := *f
	other.dir = f.t.TempDir()
	if err := os.WriteFile(filepath.Join(other.dir, "main.tf"), []byte(config), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return &other
}

// output reads one output.
func (f *terraform) output(name string, into any) {
	f.t.Helper()
	cmd := exec.Command(f.binary, "output", "-json", name)
	cmd.Dir, cmd.Env = f.dir, f.environment
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		f.t.Fatalf("output %s: %v\n%s", name, err, text)
	}
}

// TestDistributionTerraform switches the distribution on for a Deployment that
// runs already, by terraform apply, and reads how its split comes about.
func TestDistributionTerraform(t *testing.T) {
	s := startSplitCluster(t, 2, 0)
	s.namespace("shop", nil)
	web := s.create(manifest{workloadID: workloadID{"Deployment", "shop", "web"}, replicas: 5, readyAfter: 2 * time.Second})
	s.becomes(web, rolloutTime, counts.complete, "complete")
	s.addNodes(spotNode, 2, nil)
	s.startServer()
	f := newTerraform(t, s.server.url, distributionConfiguration)
	if err := os.WriteFile(filepath.Join(f.dir, "kubeconfig"), []byte(s.kubeconfig(userServer).Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	unchanged := func(args ...string) {
		t.Helper()
		f.run([]int{0}, append([]string{"plan", "-detailed-exitcode"}, args...)...)
	}
	type split struct {
		OnDemand map[string]int `json:"on_demand"`
		Spot     map[string]int `json:"spot"`
	}
	f.run([]int{0}, "apply", "-auto-approve")
	unchanged()
	var got split
	if f.output("split", &got); len(got.OnDemand) > 0 || len(got.Spot) > 0 {
		t.Errorf("without a distribution the split is %+v", got)
	}

	wanted := []string{"-var", `distribution={"mode": "custom", "custom_on_demand": "1"}`}
	f.run([]int{0}, append([]string{"apply", "-auto-approve"}, wanted...)...)
	// The split is in state at once, and how far it is nowhere there.
	if f.output("split", &got); got.OnDemand["real"] != 1 || got.Spot["real"] != 4 {
		t.Errorf("the apply says that the split is %+v", got)
	}
	unchanged(wanted...)

	seen := f.beside(observedConfiguration)
	states, last := map[api.DistributionState]bool{}, int64(-1)
	eventually(t, time.Minute, "the data source reports the split as converged", func() bool {
		seen.run([]int{0}, "apply", "-auto-approve")
		var observed []api.ClusterDistribution
		seen.output("observed", &observed)
		if len(observed) == 0 {
			return false
		}
		d := observed[0]
		if d.Cluster != "real" || d.TargetOnDemand != 1 || d.TargetSpot != 4 {
			t.Fatalf("the data source reports %+v", d)
		}
		if !states[d.State] || d.Spot != last {
			t.Logf("%s: %d on-demand, %d spot: %s", d.State, d.OnDemand, d.Spot, d.Message)
		}
		states[d.State] = true
		if d.Spot < last-1 {
			t.Errorf("the split goes back from %d pods for spot nodes to %d", last, d.Spot)
		}
		last = d.Spot
		return d.State == api.DistributionConverged && d.OnDemand == 1 && d.Spot == 4
	})
	if !states[api.DistributionReplacing] && !states[api.DistributionWaiting] {
		t.Errorf("the data source reported nothing between: %v", states)
	}
	s.becomes(web, rolloutTime, func(c counts) bool { return c.complete() && c.onDemandNodes == 1 && c.spotNodes == 4 }, "1 on-demand + 4 spot")
	s.ended(web, 4, onDemandNode)
	w := get[*api.Workload](s.server, api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"})
	if c := api.FindCondition(w.Status.Conditions, api.ConditionDistributed); c == nil || c.Status != api.ConditionTrue {
		t.Errorf("the condition is %+v", c)
	}
	unchanged(wanted...)
	f.run([]int{0}, "destroy", "-auto-approve")
}

//go:build integration

package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// distributionConfiguration has a cluster, a policy, and a workload whose distribution comes from a variable.
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
	variable "spot" {
	  type    = bool
	  default = true
	}
	resource "scheduler_cluster" "real" {
	  name       = "real"
	  kubernetes = { kubeconfig_wo = file("kubeconfig"), kubeconfig_wo_version = 1 }
	  spot       = { enabled = var.spot }
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

// beside returns Terraform with another configuration.
func (f *terraform) beside(config string) *terraform {
	f.t.Helper()
	other := *f
	other.dir = f.t.TempDir()
	if err := os.WriteFile(filepath.Join(other.dir, "main.tf"), []byte(config), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return &other
}

// output reads an output.
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

// TestDistributionTerraform enables the distribution of a running Deployment with terraform apply, and reads its
// progress.
func TestDistributionTerraform(t *testing.T) {
	t.Parallel()
	s := startSplitCluster(t, 2, 0)
	s.namespace("shop", nil)
	web := s.create(manifest{workloadID: workloadID{"Deployment", "shop", "web"}, replicas: 5, readyAfter: 2 * time.Second})
	s.becomes(web, counts.complete, "complete")
	s.addNodes(spotNode, 2, nil)
	s.startServer()
	f := newTerraform(t, s.server.url, distributionConfiguration)
	if err := os.WriteFile(filepath.Join(f.dir, "kubeconfig"), []byte(s.credentials.Reveal()), 0o600); err != nil {
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
		t.Errorf("split %+v without a distribution", got)
	}

	allow := sync.OnceFunc(s.forbidDisruption(web, 5)) // until the data source has shown that it waits
	wanted := []string{"-var", `distribution={"mode": "custom", "custom_on_demand": "1"}`}
	f.run([]int{0}, append([]string{"apply", "-auto-approve"}, wanted...)...)
	// The state contains the split at once, but not its progress.
	if f.output("split", &got); got.OnDemand["real"] != 1 || got.Spot["real"] != 4 {
		t.Errorf("split %+v in the output of the apply", got)
	}
	unchanged(wanted...)

	seen := f.beside(observedConfiguration)
	states, last := map[api.DistributionState]bool{}, int64(-1)
	eventually.True(t, "the data source reports the split as converged", func() bool {
		seen.run([]int{0}, "apply", "-auto-approve")
		var observed []api.ClusterDistribution
		seen.output("observed", &observed)
		if len(observed) == 0 {
			return false
		}
		d := observed[0]
		if d.Cluster != "real" || d.TargetOnDemand != 1 || d.TargetSpot != 4 {
			t.Fatalf("the data source returned %+v", d)
		}
		if !states[d.State] || d.Spot != last {
			t.Logf("%s: %d on-demand, %d spot: %s", d.State, d.OnDemand, d.Spot, d.Message)
		}
		states[d.State] = true
		if d.Spot < last-1 {
			t.Errorf("the split went back from %d pods for spot nodes to %d", last, d.Spot)
		}
		if last = d.Spot; d.State == api.DistributionWaiting {
			allow()
		}
		return d.State == api.DistributionConverged && d.OnDemand == 1 && d.Spot == 4
	})
	if !states[api.DistributionWaiting] {
		t.Errorf("the data source did not show that the disruption budget was waited for: %v", states)
	}
	s.becomes(web, func(c counts) bool { return c.complete() && c.onDemandNodes == 1 && c.spotNodes == 4 }, "1 on-demand + 4 spot")
	s.ended(web, 4, onDemandNode)
	w := get[*api.Workload](s.server, api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"})
	if c := api.FindCondition(w.Status.Conditions, api.ConditionDistributed); c == nil || c.Status != api.ConditionTrue {
		t.Errorf("unexpected condition %+v", c)
	}
	unchanged(wanted...)

	// Disabling it removes everything, and leaves the pods where they are.
	webhooks := s.client.AdmissionregistrationV1()
	installed := func() int {
		mutating, err := webhooks.MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		validating, err := webhooks.ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(mutating.Items) + len(validating.Items)
	}
	if n := installed(); n != 2 {
		t.Errorf("%d webhook configurations are installed, want 2", n)
	}
	s.keepsSecret(t)
	f.run([]int{0}, append([]string{"apply", "-auto-approve", "-var", "spot=false"}, wanted...)...)
	eventually.True(t, "the webhook configurations are removed", func() bool { return installed() == 0 })
	s.ended(web, 4, onDemandNode)
	f.run([]int{0}, "destroy", "-auto-approve")
}

// keepsSecret checks that the secret part of the webhook's URL is in no log and no status.
func (s *splitCluster) keepsSecret(t *testing.T) {
	t.Helper()
	list, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 || len(list.Items[0].Webhooks) == 0 {
		t.Fatalf("webhook configurations: %v", err)
	}
	address := *list.Items[0].Webhooks[0].ClientConfig.URL
	parts := strings.Split(strings.TrimPrefix(address, "https://"+s.webhook+"/"), "/")
	if len(parts) != 4 || parts[1] != "real" || len(parts[2]) < 20 {
		t.Fatalf("the webhook's address does not have the form /clusters/real/secret/pods: it has %d parts", len(parts))
	}
	if s.server.stderr.Contains(parts[2]) {
		t.Error("the server's log contains the secret of the webhook's address")
	}
	if strings.Contains(jsonOf(t, clusterStatus(s.server, "real")), parts[2]) {
		t.Error("the status of the cluster contains the secret of the webhook's address")
	}
}

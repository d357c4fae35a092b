package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The examples in the documentation work as they are, with a provider block.
func TestAccResourceExamples(t *testing.T) {
	for _, file := range exampleFiles(t, "../examples/resources/*/resource*.tf") {
		t.Run(strings.TrimPrefix(file, "../examples/resources/"), func(t *testing.T) {
			f := newFleet(t)
			config := f.config(readExample(t, file))
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps: []resource.TestStep{
					{
						Config: config,
						ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{
							plancheck.ExpectEmptyPlan(),
						}},
					},
					// The library cannot clean up after for_each.
					{Config: config, Destroy: true},
				},
			})
		})
	}
}

func TestAccDataSourceExamples(t *testing.T) {
	f := newFleet(t)
	f.put(&api.Cluster{Metadata: api.Metadata{Name: "berlin"}})
	f.put(&api.Metric{Metadata: api.Metadata{Namespace: "berlin", Name: "electricity"}, Spec: api.MetricSpec{
		Min: new(0.0), Max: new(1.0), MetricsProvider: api.MetricProviderRef{Name: "p", Metric: "m"},
	}})
	f.put(&api.Placement{Metadata: webMetadata()})
	f.put(&api.PropagationPolicy{Metadata: webMetadata(), Spec: api.PropagationPolicySpec{
		ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
	}})
	f.put(&api.Workload{Metadata: webMetadata(), Spec: api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: new(int64(3))}})
	f.put(&api.Cloud{Metadata: api.Metadata{Name: "de"}, Spec: api.CloudSpec{OpenStack: openStack(t)}})
	f.put(&api.MagnumCluster{Metadata: api.Metadata{Name: "shop", Namespace: "shop"}})
	f = f.splits("berlin", api.DistributedWorkload{
		Kind: api.KindDeployment, Namespace: "shop", Name: "web", Source: api.DistributionOfLabels,
		ClusterDistribution: api.ClusterDistribution{Cluster: "berlin", Replicas: 3, TargetSpot: 3, OnDemand: 1, Spot: 2, State: api.DistributionReplacing},
	})
	for _, file := range exampleFiles(t, "../examples/data-sources/*/data-source.tf") {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			config := f.config(readExample(t, file))
			steps := []resource.TestStep{{Config: config}}
			if strings.Contains(config, "\nresource ") {
				// The library cannot clean up after for_each.
				steps = append(steps, resource.TestStep{Config: config, Destroy: true})
			} else {
				t.Parallel() // after the tests that write
			}
			resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: steps})
		})
	}
}

func exampleFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no examples: %v", pattern, err)
	}
	return files
}

func readExample(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package provider

import (
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newClusterResource() *terraform.Resource {
	attributes := terraform.SpecAttributes(api.KindCluster)
	maps.Copy(attributes, clusterCloudAttributes())
	return &terraform.Resource{
		Kind:       api.KindCluster,
		Dependents: api.KindPlacementScore,
		Description: "A cluster that placements can choose: its labels, where it is, what it has and which metrics rate it. " +
			"One that is still to be created gets the `cloud` to create it on. " +
			"Its state (online or not, amounts reported or observed, values of metrics) is read with the data source `scheduler_cluster`.",
		Attributes: attributes,
		Local:      map[string]bool{terraform.SecretsVersion: true, "wait": true},
		Decision:   clusterCloud,
		// Neither labels nor a kubeconfig are among them: what is created on the cloud
		// must not have to be replaced when they are written.
		Inputs: []string{"namespace", "namespaces", "cloud_constraints", "openstack"},
		Choice: cloudOfCluster(),
		Warn:   spotWithoutKubeconfig,
	}
}

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
		Description: "A cluster that placements and workloads can use: its labels, location, capacity, and the metrics that rate it. " +
			"For a cluster that has yet to be created, the server chooses the `cloud` to create it on. " +
			"Use the data source `scheduler_cluster` to read its state, its observed capacity and the values of its metrics.",
		Attributes:  attributes,
		Local:       map[string]bool{"wait": true},
		Decision:    clusterCloud,
		ConcernedBy: concerned,
		// Labels and the kubeconfig are not included, so that resources created on the cloud need
		// not be replaced when these are written.
		Inputs: []string{"namespace", "namespaces", "cloud_constraints", "openstack"},
		Choice: cloudOfCluster(),
		Warn:   spotWithoutKubeconfig,
	}
}

package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newClusterSetResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindClusterSet,
		Unsettled: terraform.Companions("selector", "clusters"),
		Description: "A named set of clusters to which placements can be restricted with `cluster_sets`, and the namespaces that may use it. " +
			"The clusters are selected by their labels or listed by name.",
		Attributes: terraform.SpecAttributes(api.KindClusterSet),
	}
}

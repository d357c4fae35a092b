package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newClusterSetResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindClusterSet,
		Unsettled: terraform.Companions("selector", "clusters"),
		Description: "A named set of clusters that placements may be confined to with `cluster_sets`, and the namespaces that may use it. " +
			"Clusters come and go by their labels, or are listed by name.",
		Attributes: terraform.SpecAttributes(api.KindClusterSet),
	}
}

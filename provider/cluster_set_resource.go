package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newClusterSetResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindClusterSet,
		Unsettled: terraform.Companions("selector", "clusters"),
		Description: "A named set of clusters that placements may be confined to with `cluster_sets`, and the namespaces that may use it. " +
			"Clusters come and go by their labels, or are listed by name.",
		Attributes: map[string]schema.Attribute{
			"selector": labelSelectorAttribute("Clusters whose labels match belong to the set; an empty selector (`{}`) matches all. Either this or `clusters`."),
			"clusters": schema.ListAttribute{
				MarkdownDescription: "Clusters that belong to the set, by name; those that do not exist are passed over. Either this or `selector`.",
				ElementType:         types.StringType,
				Optional:            true,
			},
			"namespaces": schema.ListAttribute{
				MarkdownDescription: "Namespaces whose placements may use the set. Default `[\"*\"]`: all.",
				ElementType:         types.StringType,
				Optional:            true,
				Computed:            true,
				Default: listdefault.StaticValue(types.ListValueMust(types.StringType, []attr.Value{
					types.StringValue(api.AllNamespaces),
				})),
			},
		},
	}
}

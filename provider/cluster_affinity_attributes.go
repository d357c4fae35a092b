package provider

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// clusterAffinityAttributes select clusters.
func clusterAffinityAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster_names": schema.ListAttribute{
			MarkdownDescription: "Names of clusters. Without it every name.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"exclude_clusters": schema.ListAttribute{
			MarkdownDescription: "Names of clusters that are out whatever else says.",
			ElementType:         types.StringType,
			Optional:            true,
		},
		"label_selector": labelSelectorAttribute("Conditions on the cluster's labels."),
		"field_selector": schema.ListNestedAttribute{
			MarkdownDescription: "Conditions on where the cluster is, all of which must hold.",
			Optional:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key": schema.StringAttribute{
					MarkdownDescription: "`provider` (the cluster's `cloud_provider`), `region` or `zone`.",
					Required:            true,
				},
				"operator": schema.StringAttribute{
					MarkdownDescription: "`In` or `NotIn`. A cluster in several zones meets `In` with one of them, and `NotIn` with none.",
					Required:            true,
				},
				"values": schema.ListAttribute{
					MarkdownDescription: "Values to compare with.",
					ElementType:         types.StringType,
					Required:            true,
				},
			}},
		},
	}
}

// clusterAffinityAttribute is an affinity without a name.
func clusterAffinityAttribute(description string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes:          clusterAffinityAttributes(),
	}
}

// affinityTermAttributes are those of a named affinity, and more.
func affinityTermAttributes(name string, more map[string]schema.Attribute) map[string]schema.Attribute {
	attributes := clusterAffinityAttributes()
	attributes["affinity_name"] = schema.StringAttribute{
		MarkdownDescription: name,
		Required:            true,
	}
	maps.Copy(attributes, more)
	return attributes
}

package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// labelSelectorAttribute is a selector of labels or claims.
func labelSelectorAttribute(description string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"match_labels": schema.MapAttribute{
				MarkdownDescription: "Names that must have exactly these values.",
				ElementType:         types.StringType,
				Optional:            true,
			},
			"match_expressions": schema.ListNestedAttribute{
				MarkdownDescription: "Conditions on single names, all of which must hold.",
				Optional:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"key": schema.StringAttribute{
						MarkdownDescription: "Name that the condition is about.",
						Required:            true,
					},
					"operator": schema.StringAttribute{
						MarkdownDescription: "`In`, `NotIn`, `Exists` or `DoesNotExist`. `NotIn` and `DoesNotExist` also hold where the name is absent.",
						Required:            true,
					},
					"values": schema.ListAttribute{
						MarkdownDescription: "Values that `In` and `NotIn` compare with.",
						ElementType:         types.StringType,
						Optional:            true,
					},
				}},
			},
		},
	}
}

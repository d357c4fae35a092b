package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// tolerationsAttribute lists taints that are tolerated.
func tolerationsAttribute(description string) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"key": schema.StringAttribute{
				MarkdownDescription: "Key of the taint. Without it, and with operator `Exists`, every taint.",
				Optional:            true,
			},
			"operator": schema.StringAttribute{
				MarkdownDescription: "`Equal` (default) compares the value, `Exists` does not.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.TolerationEqual)),
				Validators:          terraform.NotEmpty,
			},
			"value": schema.StringAttribute{
				MarkdownDescription: "Value of the taint.",
				Optional:            true,
			},
			"effect": schema.StringAttribute{
				MarkdownDescription: "Effect of the taint, in either spelling. Without it every effect.",
				Optional:            true,
			},
			"toleration_seconds": schema.Int64Attribute{
				CustomType:          terraform.WholeNumber{},
				MarkdownDescription: "For how long after it was added the taint is tolerated. Without it for ever; `0` or less is not at all.",
				Optional:            true,
			},
		}},
	}
}

package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// waitAttribute says what an apply waits for. what names the object, chosen what
// is chosen for it, and attribute the attribute that has the choice: "placement",
// "cluster", "clusters".
func waitAttribute(what, chosen, attribute string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "What an apply waits for. `for` is a word of Terraform's language, so write it in quotes: `wait = { \"for\" = \"none\" }`.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"for": schema.StringAttribute{
				MarkdownDescription: fmt.Sprintf("`decided` (default): the decision that answers what was written. `none`: nothing; `%s` is then what the server happened to have.", attribute),
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(waitDecided, waitNone)},
			},
			"on_timeout": schema.StringAttribute{
				MarkdownDescription: fmt.Sprintf("What it means when no decision comes in time, or no %s fits: `warning` (default on create) or `error` (default on update). Terraform replaces what failed to be created, so an `error` on create makes the next apply create the %s anew.", chosen, what),
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(onTimeoutWarning, onTimeoutError)},
			},
		},
	}
}

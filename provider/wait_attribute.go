package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// waitAttribute says what an apply waits for. what names the object: "placement".
func waitAttribute(what string) schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "What an apply waits for. `for` is a word of Terraform's language, so write it in quotes: `wait = { \"for\" = \"none\" }`.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"for": schema.StringAttribute{
				MarkdownDescription: "`decided` (default): the decision that answers what was written. `none`: nothing; `clusters` is then what the server happened to have.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(waitDecided, waitNone)},
			},
			"on_timeout": schema.StringAttribute{
				MarkdownDescription: fmt.Sprintf("What it means when no decision comes in time, or no cluster fits: `warning` (default on create) or `error` (default on update). Terraform replaces what failed to be created, so an `error` on create makes the next apply create the %s anew.", what),
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(onTimeoutWarning, onTimeoutError)},
			},
		},
	}
}

package terraform

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// WaitAttribute says what an apply waits for. what names the object, chosen what
// is chosen for it, and attribute the attribute that has the choice: "placement",
// "cluster", "clusters".
func WaitAttribute(what, chosen, attribute string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "What an apply waits for. `for` is a word of Terraform's language, so write it in quotes: `wait = { \"for\" = \"none\" }`.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"for": waitForAttribute(fmt.Sprintf("`decided` (default): the decision that answers what was written. `none`: nothing; `%s` is then what the server happened to have.", attribute), waitDecided, waitNone),
			"on_timeout": schema.StringAttribute{
				MarkdownDescription: fmt.Sprintf("What it means when no decision comes in time, or no %s fits: `warning` (default on create) or `error` (default on update). Terraform replaces what failed to be created, so an `error` on create makes the next apply create the %s anew.", chosen, what),
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(onTimeoutWarning, onTimeoutError)},
			},
		},
	}
}

func waitForAttribute(description string, values ...string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Validators:          []validator.String{stringvalidator.OneOf(values...)},
	}
}

// WorkloadWaitAttribute is that of a workload, whose pods can be waited for, too.
func WorkloadWaitAttribute() schema.SingleNestedAttribute {
	wait := WaitAttribute("workload", "cluster", "clusters")
	wait.Attributes["for"] = waitForAttribute("`decided` (default): the decision that answers what was written. `distributed`: also until the pods are split as `distribution` says, for which the time limits have to be long enough. It is for workloads that run already: what is created after this resource is not there to be split. `none`: nothing; `clusters` is then what the server happened to have.", waitDecided, waitDistributed, waitNone)
	return wait
}

package terraform

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// WaitAttribute returns the attribute that says what an apply waits for. what names the object,
// chosen what is chosen for it, and attribute the attribute with the choice: "placement",
// "cluster", "clusters".
func WaitAttribute(what, chosen, attribute string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "What `terraform apply` waits for. `for` is a keyword of Terraform, so put it in quotes: `wait = { \"for\" = \"none\" }`.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"for": waitForAttribute(fmt.Sprintf("`decided` (default): wait until the server has decided. `none`: do not wait; `%s` then shows the decision that the server has at that moment, if any.", attribute), waitDecided, waitNone),
			"on_timeout": schema.StringAttribute{
				MarkdownDescription: fmt.Sprintf("What to report if there is no decision within the time limit, or no %s fits: `warning` (default on create) or `error` (default on update). An `error` on create makes the next apply replace the %s, because Terraform replaces what it failed to create.", chosen, what),
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

// WorkloadWaitAttribute is WaitAttribute for workloads, which can also wait for their pods.
func WorkloadWaitAttribute() schema.SingleNestedAttribute {
	wait := WaitAttribute("workload", "cluster", "clusters")
	wait.Attributes["for"] = waitForAttribute("`decided` (default): wait until the server has decided. `distributed`: also wait until the pods are split as `distribution` says; allow enough time in `timeouts`. Use it only for workloads that are already running: pods that are created after this resource cannot be split yet. `none`: do not wait; `clusters` then shows the decision that the server has at that moment, if any.", waitDecided, waitDistributed, waitNone)
	return wait
}

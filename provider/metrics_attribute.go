package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// metricsAttribute lists the metrics that rate an object. what names it:
// "cluster".
func metricsAttribute(what string) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		MarkdownDescription: fmt.Sprintf("Metrics that rate the %s.", what),
		Optional:            true,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the `scheduler_metric`.",
				Required:            true,
			},
			"namespace": schema.StringAttribute{
				MarkdownDescription: "Namespace of the metric. Without it a global metric.",
				Optional:            true,
				Validators:          terraform.NotEmpty,
			},
			"weight": schema.Float64Attribute{
				MarkdownDescription: fmt.Sprintf("Weight of the metric in the %s's score, at least 0. Default `1`.", what),
				Optional:            true,
				Computed:            true,
				Default:             terraform.StaticDecimal(1),
			},
		}},
	}
}

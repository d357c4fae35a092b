package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMetricResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindMetric,
		Unavailable: "No value of %s",
		Description: "One live figure: where it is read, and which range of values maps to the scores 0 to 1. " +
			"Its present value is read with the data source `scheduler_metric`.",
		Attributes: map[string]schema.Attribute{
			"min": schema.Float64Attribute{
				MarkdownDescription: "Value that maps to 0 (to 1 when descending).",
				Required:            true,
			},
			"max": schema.Float64Attribute{
				MarkdownDescription: "Value that maps to 1 (to 0 when descending), above `min`.",
				Required:            true,
			},
			"allowed_values": schema.ListAttribute{
				MarkdownDescription: "If not empty, any other value is invalid.",
				ElementType:         types.Float64Type,
				Optional:            true,
			},
			"metrics_provider": schema.SingleNestedAttribute{
				MarkdownDescription: "Where the value is read.",
				Required:            true,
				Attributes: map[string]schema.Attribute{
					"name": schema.StringAttribute{
						MarkdownDescription: "Name of the `scheduler_metrics_provider`, in the namespace of the metric.",
						Required:            true,
					},
					"metric": schema.StringAttribute{
						MarkdownDescription: "What the provider is asked for. Prometheus: an expression; InfluxDB: a measurement, also as `measurement.field{tag=\"value\"}`, with names in double quotes where they have a dot; ksqlDB: what the comparison column holds; static: a name; http_json: what `$${metric}` stands for.",
						Required:            true,
					},
				},
			},
			"direction": schema.StringAttribute{
				MarkdownDescription: "`ascending` (default): bigger is better. `descending`: smaller is better.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.Ascending)),
				Validators:          terraform.NotEmpty,
			},
			"on_failure": schema.StringAttribute{
				MarkdownDescription: "What becomes of a cluster when the metric has no usable value: `exclude` it (default), `ignore` the metric, or go on with the `last_value`.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.FailureExclude)),
				Validators:          terraform.NotEmpty,
			},
			"max_age": schema.StringAttribute{
				MarkdownDescription: "How long the last good value stays usable while the provider cannot be reached. Default: 4 intervals of the provider.",
				Optional:            true,
			},
		},
	}
}

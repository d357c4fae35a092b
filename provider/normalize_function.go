package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

type normalizeFunction struct{}

func newNormalizeFunction() function.Function { return normalizeFunction{} }

// Metadata implements function.Function.
func (normalizeFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "normalize"
}

// Definition implements function.Function.
func (normalizeFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:             "Maps the value of a metric to the range 0 to 1",
		MarkdownDescription: "Maps a value to the range 0 to 1, as the server does with the values of a metric: `(value - min) / (max - min)`. A value outside the range is an error.",
		Parameters: []function.Parameter{
			function.Float64Parameter{Name: "value", MarkdownDescription: "Value of the metric."},
			function.Float64Parameter{Name: "min", MarkdownDescription: "Value that maps to 0."},
			function.Float64Parameter{Name: "max", MarkdownDescription: "Value that maps to 1. Must be greater than `min`."},
		},
		Return: function.Float64Return{},
	}
}

// Run implements function.Function.
func (normalizeFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var value, low, high float64
	resp.Error = req.Arguments.Get(ctx, &value, &low, &high)
	if resp.Error != nil {
		return
	}
	normalized, err := columns.Normalize(api.MetricSpec{Min: &low, Max: &high}, value)
	if err != nil {
		resp.Error = function.NewFuncError(terraform.Clause(err))
		return
	}
	resp.Error = resp.Result.Set(ctx, terraform.Decimal(ctx, normalized))
}

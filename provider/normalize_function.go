package provider

import (
	"context"
	"fmt"
	"math"
	"math/big"

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
			function.NumberParameter{Name: "value", MarkdownDescription: "Value of the metric."},
			function.NumberParameter{Name: "min", MarkdownDescription: "Value that maps to 0."},
			function.NumberParameter{Name: "max", MarkdownDescription: "Value that maps to 1. Must be greater than `min`."},
		},
		Return: function.Float64Return{},
	}
}

// Run implements function.Function.
func (normalizeFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var given [3]*big.Float
	resp.Error = req.Arguments.Get(ctx, &given[0], &given[1], &given[2])
	if resp.Error != nil {
		return
	}
	// Rounded, as the server does with numbers in JSON: 100 / 3 has no exact float64.
	var numbers [len(given)]float64
	for i, number := range given {
		if numbers[i], _ = number.Float64(); math.IsInf(numbers[i], 0) {
			resp.Error = terraform.ArgumentError(int64(i), fmt.Errorf("%s is too large a number", terraform.NumberText(number)))
			return
		}
	}
	normalized, err := columns.Normalize(api.MetricSpec{Min: &numbers[1], Max: &numbers[2]}, numbers[0])
	if err != nil {
		resp.Error = function.NewFuncError(terraform.Clause(err))
		return
	}
	resp.Error = resp.Result.Set(ctx, terraform.Decimal(ctx, normalized))
}

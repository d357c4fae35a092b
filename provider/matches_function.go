package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

type matchesFunction struct{}

func newMatchesFunction() function.Function { return matchesFunction{} }

// Metadata implements function.Function.
func (matchesFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "matches"
}

// Definition implements function.Function.
func (matchesFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:             "Whether labels satisfy constraints",
		MarkdownDescription: "Returns whether labels satisfy every label constraint in a list, as in a placement. An empty list is satisfied by any labels. A label that is absent satisfies no constraint.",
		Parameters: []function.Parameter{
			function.MapParameter{Name: "labels", ElementType: types.StringType, AllowNullValue: true, MarkdownDescription: "Labels, such as those of a cluster. `null` means none."},
			function.ListParameter{Name: "constraints", ElementType: types.StringType, AllowNullValue: true, MarkdownDescription: "Label constraints, such as `location is DE`. `null` means none."},
		},
		Return: function.BoolReturn{},
	}
}

// Run implements function.Function.
func (matchesFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var given map[string]types.String
	var list []types.String
	resp.Error = req.Arguments.Get(ctx, &given, &list)
	if resp.Error != nil {
		return
	}
	labels := make(map[string]string, len(given))
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if given[key].IsNull() {
			resp.Error = function.NewArgumentFuncError(0, fmt.Sprintf("labels[%q] must not be null", key))
			return
		}
		labels[key] = given[key].ValueString()
	}
	expressions := make([]string, len(list))
	for i, expression := range list {
		if expression.IsNull() {
			resp.Error = function.NewArgumentFuncError(1, fmt.Sprintf("constraints[%d] must not be null", i))
			return
		}
		expressions[i] = expression.ValueString()
	}
	constraints, err := parseConstraints(expressions, "constraints")
	if err != nil {
		resp.Error = terraform.ArgumentError(1, err)
		return
	}
	resp.Error = resp.Result.Set(ctx, matchesAll(constraints, labels))
}

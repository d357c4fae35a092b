package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

type parseLabelConstraintFunction struct{}

func newParseLabelConstraintFunction() function.Function { return parseLabelConstraintFunction{} }

// Metadata implements function.Function.
func (parseLabelConstraintFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "parse_label_constraint"
}

// Definition implements function.Function.
func (parseLabelConstraintFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:             "Parses a label constraint",
		MarkdownDescription: "Parses a label constraint and returns an object with its `key`, `operator` (normalized to `==`, `!=`, `in` or `not in`) and `values`.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "expression", MarkdownDescription: "Label constraint, such as `location not in (DE, SK)`."},
		},
		Return: function.ObjectReturn{AttributeTypes: map[string]attr.Type{
			"key":      types.StringType,
			"operator": types.StringType,
			"values":   types.ListType{ElemType: types.StringType},
		}},
	}
}

// Run implements function.Function.
func (parseLabelConstraintFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var expression string
	resp.Error = req.Arguments.Get(ctx, &expression)
	if resp.Error != nil {
		return
	}
	label, err := constraint.ParseLabel(expression)
	if err != nil {
		resp.Error = terraform.ArgumentError(0, err)
		return
	}
	resp.Error = resp.Result.Set(ctx, struct {
		Key      string   `tfsdk:"key"`
		Operator string   `tfsdk:"operator"`
		Values   []string `tfsdk:"values"`
	}{label.Key(), string(label.Operator()), label.Values()})
}

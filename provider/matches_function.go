package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
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
		MarkdownDescription: "Says whether labels satisfy all of a list of label constraints, as a placement would decide. No constraint: `true`. A label that is absent satisfies none.",
		Parameters: []function.Parameter{
			function.MapParameter{Name: "labels", ElementType: types.StringType, MarkdownDescription: "Labels, as of a cluster."},
			function.ListParameter{Name: "constraints", ElementType: types.StringType, MarkdownDescription: "Label constraints, such as `location is DE`."},
		},
		Return: function.BoolReturn{},
	}
}

// Run implements function.Function.
func (matchesFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var labels map[string]string
	var expressions []string
	resp.Error = req.Arguments.Get(ctx, &labels, &expressions)
	if resp.Error != nil {
		return
	}
	constraints, err := parseConstraints(expressions, "constraints")
	if err != nil {
		resp.Error = function.NewArgumentFuncError(1, sentence(err.Error()))
		return
	}
	resp.Error = resp.Result.Set(ctx, matchesAll(constraints, labels))
}

package provider

import (
	"context"
	"errors"
	"maps"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// Arguments of the preview, exactly one of which is required.
const (
	workloadArgument = "workload"
	policyArgument   = "policy"
)

func newPropagationPreviewDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:       "propagation_preview",
		Subject:    "the preview of the propagation",
		Objects:    map[string]terraform.ObjectRules{workloadArgument: {Kind: api.KindWorkload, Unsettled: distributionUnsettled}, policyArgument: {Kind: api.KindPropagationPolicy, Unsettled: overflowUnsettled}},
		Validators: []datasource.ConfigValidator{datasourcevalidator.ExactlyOneOf(path.MatchRoot(workloadArgument), path.MatchRoot(policyArgument))},
		Description: "Where a workload, or the workloads of a propagation policy, would run, decided by the server during the plan. Give the preview the same attributes as the resource, and pass its `token` to the resource: " +
			"its `clusters`, or `bindings`, are then known in the plan, even if the plan creates the resource, so that `for_each` over them works in a single apply. The apply commits exactly this decision; if the fleet has changed in the meantime, it fails and asks you to plan again. " +
			"A preview only considers clusters, policies and workloads that the server already has, not those that the same apply will create.",
		Arguments: map[string]schema.Attribute{
			workloadArgument: previewArgument("A workload, with the attributes of its `scheduler_workload`.", api.KindWorkload),
			policyArgument:   previewArgument("A policy, with the attributes of its `scheduler_propagation_policy`.", api.KindPropagationPolicy),
		},
		Answer: map[string]schema.Attribute{
			"clusters": schema.MapAttribute{
				MarkdownDescription: "For a workload: replicas by cluster as they would be. Empty for a policy.",
				ElementType:         types.Int64Type,
				Computed:            true,
			},
			"evicting": schema.MapAttribute{
				MarkdownDescription: "For a workload: replicas by cluster that would keep running on clusters that it is leaving. Empty for a policy.",
				ElementType:         types.Int64Type,
				Computed:            true,
			},
			"current": schema.MapAttribute{
				MarkdownDescription: "For a workload: current replicas by cluster.",
				ElementType:         types.Int64Type,
				Computed:            true,
			},
			"policy_name":       schema.StringAttribute{MarkdownDescription: "For a workload: the policy that it would follow, as `namespace/name`, or `name` for a global policy.", Computed: true},
			"observed_affinity": schema.StringAttribute{MarkdownDescription: "For a workload: the affinity group that would be used.", Computed: true},
			"satisfied":         schema.BoolAttribute{MarkdownDescription: "For a workload: whether it would get all its replicas.", Computed: true},
			"summary":           schema.StringAttribute{MarkdownDescription: "One sentence that sums up the decision.", Computed: true},
			"bindings": schema.MapAttribute{
				MarkdownDescription: "For a policy: replicas by cluster for each workload that it would claim, by `namespace/name`. Empty for a workload.",
				ElementType:         types.MapType{ElemType: types.Int64Type},
				Computed:            true,
			},
			"workloads": schema.ListNestedAttribute{
				MarkdownDescription: "For a policy: what happens to every workload that it would claim or has claimed.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: terraform.ComputedAttributes(reflect.TypeFor[api.PreviewedBinding]())},
			},
			"expires_at": schema.StringAttribute{MarkdownDescription: "Until when the server keeps the preview.", Computed: true},
			"token": schema.StringAttribute{
				MarkdownDescription: "Set the resource's `preview_token_wo` to this token: the plan then shows exactly this decision, and the apply commits it or fails. The token differs in every plan.",
				Computed:            true,
			},
		},
		Ask: previewPropagation,
	}
}

// previewArgument returns an argument that is an object of a kind.
func previewArgument(description string, kind api.Kind) schema.Attribute {
	info, _ := api.LookupKind(kind)
	spec := terraform.SpecAttributes(kind)
	maps.Copy(spec, terraform.MetadataAttributes(info.Scope))
	return schema.SingleNestedAttribute{MarkdownDescription: description, Optional: true, Attributes: terraform.DataSourceArguments(spec)}
}

func previewPropagation(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
	under, kind := policyArgument, api.KindPropagationPolicy
	given, ok := arguments[policyArgument].(map[string]any)
	if !ok {
		under, kind = workloadArgument, api.KindWorkload
		given, _ = arguments[workloadArgument].(map[string]any)
		given = maps.Clone(given)
		given["namespace"] = s.NamespacedKey(kind, given).Namespace
	}
	object, err := terraform.Unflatten(kind, given)
	if err != nil {
		return nil, argumentErrors(under, err)
	}
	preview, err := s.Client().Preview(ctx, object)
	if err != nil {
		return nil, argumentErrors(under, err)
	}
	document, err := terraform.JSONDocument(preview)
	if err != nil {
		return nil, err
	}
	document["workloads"] = document["bindings"]
	document["clusters"], document["current"] = replicaDocument(preview.Replicas), replicaDocument(preview.CurrentReplicas)
	document["policy_name"] = document[policyArgument]
	maps.Copy(document, previewedBindings(preview))
	return document, nil
}

// argumentErrors prefixes the fields of an error with the argument.
func argumentErrors(argument string, err error) error {
	var fields api.FieldErrors
	var problem *api.Problem
	switch {
	case errors.As(err, &problem):
		moved := *problem
		moved.Errors = terraform.FieldsUnder(argument, problem.Errors)
		return &moved
	case errors.As(err, &fields):
		return terraform.FieldsUnder(argument, fields)
	}
	return err
}

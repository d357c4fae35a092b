package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newPropagationBindingsDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:    "propagation_bindings",
		Subject: "the bindings of propagation policy",
		Description: "Where the workloads run that a propagation policy has claimed. If the policy is in the same configuration and you need only the replicas, use " +
			"`scheduler_propagation_policy.<name>.bindings` instead.",
		Arguments: map[string]schema.Attribute{
			"name":      schema.StringAttribute{MarkdownDescription: "Name of the policy.", Required: true, Validators: []validator.String{terraform.ObjectName{}}},
			"namespace": schema.StringAttribute{MarkdownDescription: "Namespace of the policy. Omit it if the policy is global.", Optional: true, Validators: []validator.String{terraform.ObjectName{}}},
		},
		Answer: map[string]schema.Attribute{
			"bindings": schema.MapNestedAttribute{
				MarkdownDescription: "The bindings by `namespace/name` of the workload.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"clusters":          schema.MapAttribute{MarkdownDescription: "Replicas by cluster. `0` if the workload is not replicated.", ElementType: types.Int64Type, Computed: true},
					"observed_affinity": schema.StringAttribute{MarkdownDescription: "Affinity group that the clusters were chosen from.", Computed: true},
					"scheduled":         schema.BoolAttribute{MarkdownDescription: "Whether every replica has a cluster.", Computed: true},
					"message":           schema.StringAttribute{MarkdownDescription: "Why the workload has these clusters, or none.", Computed: true},
				}},
			},
		},
		Ask: readBindings,
	}
}

func readBindings(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
	key := api.Key{Kind: api.KindPropagationPolicy, Namespace: terraform.Argument(arguments, "namespace"), Name: terraform.Argument(arguments, "name")}
	object, err := s.Client().Get(ctx, key)
	if err != nil {
		return nil, err
	}
	policy, ok := object.(*api.PropagationPolicy)
	if !ok {
		return nil, fmt.Errorf("%s is a %T", key, object)
	}
	bindings := make(map[string]any, len(policy.Status.Bindings))
	for _, b := range policy.Status.Bindings {
		binding := map[string]any{"clusters": replicasOf(b.Clusters), "scheduled": false}
		if b.ObservedAffinity != "" {
			binding["observed_affinity"] = b.ObservedAffinity
		}
		if c := api.FindCondition(b.Conditions, api.ConditionScheduled); c != nil {
			binding["scheduled"], binding["message"] = c.Status == api.ConditionTrue, c.Message
		}
		bindings[b.Workload] = binding
	}
	return map[string]any{"bindings": bindings}, nil
}

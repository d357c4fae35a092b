package provider

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newWorkloadDataSource() datasource.DataSource {
	arguments := namespacedArguments("workload")
	arguments["explain"] = schema.BoolAttribute{
		MarkdownDescription: "Whether to fill in `explanation`, which has an entry for every cluster of the fleet. Defaults to `false`.",
		Optional:            true,
	}
	asked := terraform.ComputedAttributes(reflect.TypeFor[api.WorkloadSpec]())
	answer := maps.Clone(asked)
	maps.Copy(answer, terraform.ComputedAttributes(reflect.TypeFor[api.WorkloadStatus]()))
	for _, name := range []string{"observed_reschedule_requests", "policy_uid", "policy_generation"} {
		delete(answer, name)
	}
	answer["binding"] = answer["clusters"]
	answer["distribution_spec"] = asked[distribution]
	maps.Copy(answer, map[string]schema.Attribute{
		"labels": schema.MapAttribute{MarkdownDescription: "Labels. Policies select workloads by labels.", ElementType: types.StringType, Computed: true},
		"clusters": schema.MapAttribute{
			MarkdownDescription: "Replicas by cluster. `0` if the workload is not replicated.",
			ElementType:         types.Int64Type,
			Computed:            true,
		},
		"evicting": schema.MapAttribute{
			MarkdownDescription: "Replicas by cluster that are being evicted and still run.",
			ElementType:         types.Int64Type,
			Computed:            true,
		},
		"on_demand": schema.MapAttribute{
			MarkdownDescription: "Replicas for on-demand nodes, by cluster. Empty without a distribution.",
			ElementType:         types.Int64Type,
			Computed:            true,
		},
		"spot": schema.MapAttribute{
			MarkdownDescription: "Replicas for spot nodes, by cluster. Empty without a distribution.",
			ElementType:         types.Int64Type,
			Computed:            true,
		},
		"summary": schema.StringAttribute{MarkdownDescription: "One sentence that explains the binding.", Computed: true},
		"explanation": schema.SingleNestedAttribute{
			MarkdownDescription: "Why the workload runs where it does: its policy, the result for each affinity group, and for every cluster the filter that rejected it or how its replicas were calculated. Null unless `explain` is set.",
			Computed:            true,
			Attributes:          terraform.ComputedAttributes(reflect.TypeFor[api.Explanation]()),
		},
	})
	return &terraform.DataSource{
		Name:    "workload",
		Subject: "workload",
		Description: "Where a workload runs and why: its binding, its policy and affinity group, the clusters that it is being evicted from, how its pods are split between on-demand and spot nodes, and its reported health. If the workload is in the same configuration and you need only the replicas, use " +
			"`scheduler_workload.<name>.clusters` instead, which stays known while you edit the workload.",
		Arguments: arguments,
		Answer:    answer,
		Ask:       readWorkload,
	}
}

func readWorkload(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
	key := s.NamespacedKey(api.KindWorkload, arguments)
	object, err := s.Client().Get(ctx, key)
	if err != nil {
		return nil, err
	}
	workload, ok := object.(*api.Workload)
	if !ok {
		return nil, fmt.Errorf("%s is a %T", key, object)
	}
	explanation, err := s.Client().Explain(ctx, key)
	if err != nil {
		return nil, err
	}
	document, err := terraform.Flatten(workload)
	if err != nil {
		return nil, err
	}
	status, err := terraform.JSONDocument(workload.Status)
	if err != nil {
		return nil, err
	}
	document["distribution_spec"] = document[distribution]
	delete(document, distribution) // the observed split has this name here
	maps.Copy(document, status)
	document["namespace"] = key.Namespace
	document["binding"] = status["clusters"]
	document["clusters"] = replicasOf(workload.Status.Clusters)
	document["evicting"] = replicaDocument(workload.Status.Evicting())
	maps.Copy(document, splitOf(workload))
	document["summary"] = explanation.Summary
	if explain, _ := arguments["explain"].(bool); explain {
		if document["explanation"], err = terraform.JSONDocument(explanation); err != nil {
			return nil, err
		}
	}
	return document, nil
}

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
		MarkdownDescription: "`true`: fill in `explanation`, which has an entry for every cluster of the fleet. Defaults to `false`.",
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
		"labels": schema.MapAttribute{MarkdownDescription: "Labels, by which policies select the workload.", ElementType: types.StringType, Computed: true},
		"clusters": schema.MapAttribute{
			MarkdownDescription: "Replicas by cluster, `0` where the workload is not replicated.",
			ElementType:         types.Int64Type,
			Computed:            true,
		},
		"evicting": schema.MapAttribute{
			MarkdownDescription: "Replicas, by cluster, that keep running on clusters that the workload is leaving.",
			ElementType:         types.Int64Type,
			Computed:            true,
		},
		"on_demand": schema.MapAttribute{
			MarkdownDescription: "Replicas that are to be on on-demand nodes, by cluster; empty without a distribution.",
			ElementType:         types.Int64Type,
			Computed:            true,
		},
		"spot": schema.MapAttribute{
			MarkdownDescription: "Replicas that are to be on spot nodes, by cluster; empty without a distribution.",
			ElementType:         types.Int64Type,
			Computed:            true,
		},
		"summary": schema.StringAttribute{MarkdownDescription: "The sentence that explains the binding.", Computed: true},
		"explanation": schema.SingleNestedAttribute{
			MarkdownDescription: "Why the workload runs where it runs: which policy it follows, what became of each affinity group, and for every cluster what rejected it or how its replicas came about. Null unless `explain` is set.",
			Computed:            true,
			Attributes:          terraform.ComputedAttributes(reflect.TypeFor[api.Explanation]()),
		},
	})
	return &terraform.DataSource{
		Name:    "workload",
		Subject: "workload",
		Description: "Where a workload runs and why: its binding, the policy and the affinity group it follows, the clusters it is leaving, how its pods are split over on-demand and spot nodes, and what was reported about its health. For a workload of the same configuration use " +
			"`scheduler_workload.<name>.clusters` where the replicas are enough: it stays known while the workload is edited.",
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
	delete(document, distribution) // what was observed has the name here
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

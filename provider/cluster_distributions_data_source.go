package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// clusterDistributions are a cluster's split workloads in the form of Terraform attributes.
type clusterDistributions struct {
	Workloads []api.DistributedWorkload `json:"workloads" doc:"The Deployments and StatefulSets that are split, by namespace, kind and name."`
}

func newClusterDistributionsDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:    "cluster_distributions",
		Subject: "the distributions in a cluster",
		Description: "The current state of the Deployments and StatefulSets in a cluster whose pods are split between on-demand and spot nodes: those of a `scheduler_workload` with a `distribution`, and those that request a split by label. " +
			"Requires a connected cluster with `spot` enabled.",
		Arguments: map[string]schema.Attribute{
			"cluster":   schema.StringAttribute{MarkdownDescription: "Name of the cluster.", Required: true, Validators: []validator.String{terraform.ObjectName{}}},
			"namespace": schema.StringAttribute{MarkdownDescription: "Only workloads in this namespace of the cluster. If omitted, workloads in all namespaces.", Optional: true, Validators: []validator.String{terraform.ObjectName{}}},
		},
		Answer: terraform.ComputedAttributes(reflect.TypeFor[clusterDistributions]()),
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			workloads, err := s.Client().ListDistributions(ctx, terraform.Argument(arguments, "cluster"))
			if err != nil {
				return nil, err
			}
			return terraform.JSONDocument(clusterDistributions{inNamespace(workloads, terraform.Argument(arguments, "namespace"))})
		},
	}
}

// inNamespace returns the workloads in a namespace, "" meaning all.
func inNamespace(workloads []api.DistributedWorkload, namespace string) []api.DistributedWorkload {
	selected := make([]api.DistributedWorkload, 0, len(workloads))
	for _, w := range workloads {
		if namespace == "" || w.Namespace == namespace {
			selected = append(selected, w)
		}
	}
	return selected
}

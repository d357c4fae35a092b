package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// clusterDocs says what the API's own documentation leaves to its reader.
var clusterDocs = map[string]string{
	"region":                      "Region the cluster is in.",
	"zones":                       "Availability zones the cluster spans.",
	"openstack.region":            "Region of the cloud.",
	"openstack.availability_zone": "Availability zone of the region.",
	"flavors.name":                "Name of the flavor.",
	"flavors.vcpus":               "Processors of a machine.",
	"flavors.memory":              "Memory of a machine.",
	"metrics.name":                "Name of the metric.",
	"taints.key":                  "Name of the taint.",
	"taints.value":                "Value that tolerations may compare with.",
	"status.taints.key":           "Name of the taint.",
	"status.taints.value":         "Value that tolerations may compare with.",
	"status.taints.effect":        "What it does to placements that do not tolerate it; `taints` of `scheduler_cluster` explains the effects.",
	"status.capacity":             "Total amount by resource, as last reported, or observed in the cluster.",
	"status.allocatable":          "Amount that workloads may use, as last reported, or observed in the cluster.",
	"status.allocated":            "Amount in use, as last reported, or observed in the cluster.",
	"status.nodes.total":          "Nodes of the cluster.",
	"status.metrics":              "The present values of the cluster's metrics.",
	"status.metrics.name":         "Name of the metric.",
	"status.metrics.namespace":    "Namespace of the metric; absent for a global one.",
	"status.metrics.weight":       "Weight of the metric in the cluster's score.",
	"status.metrics.observed_at":  "When the value was observed.",
	"status.last_heartbeat_at":    "When an agent of the cluster last reported.",
	"status.capacity_reported_at": "When `allocated` was last declared or reported.",
}

func newClusterDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:        "cluster",
		Subject:     "cluster",
		Description: "A cluster: what was declared, and in `status` what the server knows of it (state, amounts, the cloud it is on, what was observed in it, what is split over its on-demand and spot nodes, present values of its metrics).",
		Arguments: map[string]schema.Attribute{
			"name": schema.StringAttribute{MarkdownDescription: "Name of the cluster.", Required: true, Validators: []validator.String{terraform.ObjectName{}}},
		},
		Answer: terraform.ObjectAttributes(api.KindCluster, clusterDocs),
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			cluster, err := s.Client().Get(ctx, api.Key{Kind: api.KindCluster, Name: terraform.Argument(arguments, "name")})
			if err != nil {
				return nil, err
			}
			return terraform.ObjectDocument(cluster)
		},
	}
}

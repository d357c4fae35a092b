package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newClusterDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:        "cluster",
		Subject:     "cluster",
		Description: "A cluster: its declared attributes, and in `status` what the server knows about it: state, capacity, chosen cloud, observations, split between on-demand and spot nodes, and current values of its metrics.",
		Arguments: map[string]schema.Attribute{
			"name": schema.StringAttribute{MarkdownDescription: "Name of the cluster.", Required: true, Validators: []validator.String{terraform.ObjectName{}}},
		},
		Answer: terraform.ObjectAttributes(api.KindCluster),
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			cluster, err := s.Client().Get(ctx, api.Key{Kind: api.KindCluster, Name: terraform.Argument(arguments, "name")})
			if err != nil {
				return nil, err
			}
			return terraform.ObjectDocument(cluster)
		},
	}
}

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newCloudDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:    "cloud",
		Subject: "cloud",
		Description: "A cloud: its declared attributes, and in `status` what was collected from it: the availability zones of each region with their capacity, the flavors and the volume types. " +
			"Resources of a zone are `cpu`, `memory`, `storage/<volume type>` and `floating_ips`; storage and floating IPs belong to the whole region and are shown in each of its zones.",
		Arguments: map[string]schema.Attribute{
			"name": schema.StringAttribute{MarkdownDescription: "Name of the cloud.", Required: true, Validators: []validator.String{terraform.ObjectName{}}},
		},
		Answer: terraform.ObjectAttributes(api.KindCloud),
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			cloud, err := s.Client().Get(ctx, api.Key{Kind: api.KindCloud, Name: terraform.Argument(arguments, "name")})
			if err != nil {
				return nil, err
			}
			return terraform.ObjectDocument(cloud)
		},
	}
}

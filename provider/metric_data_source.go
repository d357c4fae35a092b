package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMetricDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:        "metric",
		Subject:     "metric",
		Description: "A metric: its declared attributes, and in `status` its current value, or why it has none.",
		Arguments: map[string]schema.Attribute{
			"name":      schema.StringAttribute{MarkdownDescription: "Name of the metric.", Required: true, Validators: []validator.String{terraform.ObjectName{}}},
			"namespace": schema.StringAttribute{MarkdownDescription: "Namespace of the metric. Omit it if the metric is global.", Optional: true, Validators: []validator.String{terraform.ObjectName{}}},
		},
		Answer: terraform.ObjectAttributes(api.KindMetric),
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			metric, err := s.Client().Get(ctx, api.Key{Kind: api.KindMetric, Namespace: terraform.Argument(arguments, "namespace"), Name: terraform.Argument(arguments, "name")})
			if err != nil {
				return nil, err
			}
			return terraform.ObjectDocument(metric)
		},
	}
}

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func newMetricDataSource() datasource.DataSource {
	return &readDataSource{
		name:        "metric",
		subject:     "metric",
		description: "A metric: what was declared, and in `status` its present value, or why it has none.",
		arguments: map[string]schema.Attribute{
			"name":      schema.StringAttribute{MarkdownDescription: "Name of the metric.", Required: true, Validators: []validator.String{objectName{}}},
			"namespace": schema.StringAttribute{MarkdownDescription: "Namespace of the metric. Without it a global metric.", Optional: true, Validators: []validator.String{objectName{}}},
		},
		answer: objectAttributes(api.KindMetric, map[string]string{
			"metrics_provider": "Where the value is read.",
		}),
		read: func(ctx context.Context, s *session, arguments map[string]any) (map[string]any, error) {
			metric, err := s.client.Get(ctx, api.Key{Kind: api.KindMetric, Namespace: argument(arguments, "namespace"), Name: argument(arguments, "name")})
			if err != nil {
				return nil, err
			}
			return objectDocument(metric)
		},
	}
}

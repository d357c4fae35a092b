package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newServerDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:        "server",
		Subject:     "the server",
		Description: "The scheduling server: its version, clock and store.",
		Answer:      terraform.ComputedAttributes(reflect.TypeFor[api.ServerInfo]()),
		Ask: func(ctx context.Context, s *terraform.Session, _ map[string]any) (map[string]any, error) {
			info, err := s.Client().Server(ctx)
			if err != nil {
				return nil, err
			}
			return terraform.JSONDocument(info)
		},
	}
}

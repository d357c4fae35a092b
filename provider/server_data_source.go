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
		Description: "The scheduling server: its version, its clock and its store.",
		Answer: terraform.ComputedAttributes(reflect.TypeFor[api.ServerInfo](), map[string]string{
			"version":      "Version of the server.",
			"leader":       "This server makes the decisions.",
			"now":          "The server's clock.",
			"store":        "State of the store.",
			"mode":         "`embedded` or `external`.",
			"cluster_id":   "Identifies the store.",
			"revision":     "Grows with every change of the store.",
			"size_bytes":   "Size of the store on disk.",
			"in_use_bytes": "Part of the size that holds data.",
			"quota_bytes":  "Size at which the store takes no more writes.",
		}),
		Ask: func(ctx context.Context, s *terraform.Session, _ map[string]any) (map[string]any, error) {
			info, err := s.Client().Server(ctx)
			if err != nil {
				return nil, err
			}
			return terraform.JSONDocument(info)
		},
	}
}

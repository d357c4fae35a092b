package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func newServerDataSource() datasource.DataSource {
	return &readDataSource{
		name:        "server",
		subject:     "the server",
		description: "The scheduling server: its version, its clock and its store.",
		answer: computedAttributes(reflect.TypeFor[api.ServerInfo](), map[string]string{
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
		read: func(ctx context.Context, s *session, _ map[string]any) (map[string]any, error) {
			info, err := s.client.Server(ctx)
			if err != nil {
				return nil, err
			}
			return jsonDocument(info)
		},
	}
}

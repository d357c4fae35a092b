package httpapi

import (
	"cmp"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

// openAPIConfig returns the frame of the OpenAPI document, and huma's formats. huma's documentation
// pages load scripts from other sites, so they are disabled.
func (s *Server) openAPIConfig() huma.Config {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schemas.RegisterTypeAlias(reflect.TypeFor[api.Secret](), reflect.TypeFor[string]())
	schemas.RegisterTypeAlias(reflect.TypeFor[api.ProblemType](), reflect.TypeFor[problemType]())
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Scheduler", Version: cmp.Or(s.options.Version, "0"),
				Description: "Clusters, metrics, placements, workloads and propagation policies, the resulting decisions, and the reasons for them.",
			},
			Components: &huma.Components{
				Schemas:         schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		Formats:                      map[string]huma.Format{"application/json": operation.JSONFormat, "json": operation.JSONFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}

// problemType is the schema of problem types.
type problemType string

// Schema implements huma.SchemaProvider.
func (problemType) Schema(huma.Registry) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeString, Format: "uri", Description: "Type of the problem, for programs."}
	for _, info := range api.ProblemTypes {
		schema.Enum = append(schema.Enum, string(info.Type))
		schema.Description += "\n- `" + string(info.Type) + "` (" + strconv.Itoa(info.Status) + "): " + info.Doc
	}
	return schema
}

package httpapi

import (
	"cmp"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// openAPIConfig is the frame of the OpenAPI document, and how huma reads and
// writes. The documentation pages of huma load scripts from elsewhere, so they
// are off.
func (s *Server) openAPIConfig() huma.Config {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schemas.RegisterTypeAlias(reflect.TypeFor[api.Secret](), reflect.TypeFor[string]())
	schemas.RegisterTypeAlias(reflect.TypeFor[api.ProblemType](), reflect.TypeFor[problemType]())
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Scheduler", Version: cmp.Or(s.options.Version, "0"),
				Description: "Clusters, metrics, placements, workloads and their propagation policies, the decisions that follow from them, and the reasons.",
			},
			Components: &huma.Components{
				Schemas:         schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		Formats:                      map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}

// problemType is the schema of the types of problem.
type problemType string

// Schema implements huma.SchemaProvider.
func (problemType) Schema(huma.Registry) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeString, Format: "uri", Description: "What went wrong, for programs."}
	for _, info := range api.ProblemTypes {
		schema.Enum = append(schema.Enum, string(info.Type))
		schema.Description += "\n- `" + string(info.Type) + "` (" + strconv.Itoa(info.Status) + "): " + info.Doc
	}
	return schema
}

// operation describes an operation on objects or a collection of a kind.
func (s *Server) operation(info api.KindInfo, method, path, verb, summary string, schema *huma.Schema) huma.Operation {
	op := huma.Operation{
		OperationID: verb + "-" + strings.ReplaceAll(string(info.Kind), "_", "-"),
		Method:      method, Path: path, Summary: summary, Tags: []string{string(info.Kind)},
		Responses: map[string]*huma.Response{},
		Errors:    []int{http.StatusUnprocessableEntity},
	}
	op = accessTo(info, method, verb).declares(op)
	everywhere := !strings.Contains(path, "{namespace}") && !strings.Contains(path, "{cluster}")
	if !everywhere && info.Scope == api.GlobalOrNamespaced {
		op.OperationID += "-in-namespace"
	}
	if everywhere && (info.Scope == api.Namespaced || info.Scope == api.OfCluster) {
		op.OperationID += "-everywhere"
	}
	if schema != nil {
		op.Responses["200"] = jsonResponse("OK", schema)
	}
	for _, parameter := range []string{"cluster", "namespace", "name"} {
		if strings.Contains(path, "{"+parameter+"}") {
			op.Parameters = append(op.Parameters, &huma.Param{
				Name: parameter, In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
				Description: "DNS-1123 label, at most 63 characters.",
			})
		}
	}
	if strings.Contains(path, "{node}") {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: "node", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
			Description: "DNS-1123 subdomain, at most 253 characters.",
		})
	}
	switch {
	case strings.Contains(path, "{name}") && method == http.MethodGet:
		op.Errors = append(op.Errors, http.StatusNotFound)
	case verb == "list":
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusGone)
	case verb == "put":
		op.Errors = append(op.Errors, http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType, http.StatusInsufficientStorage)
	default:
		op.Errors = append(op.Errors, http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusInsufficientStorage)
	}
	return op
}

// accessTo is what an operation on a kind does. What is of a cluster is written by
// those who report for it.
func accessTo(info api.KindInfo, method, verb string) access {
	switch {
	case method == http.MethodGet && info.Scope == api.OfCluster:
		return accessReadReports
	case method == http.MethodGet:
		return accessRead
	case info.Scope == api.OfCluster || strings.HasPrefix(verb, "report"):
		return accessReport
	}
	return accessWrite
}

func jsonResponse(description string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

func listOf(item *huma.Schema) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"items", "resource_version"},
		Properties: map[string]*huma.Schema{
			"items":            {Type: huma.TypeArray, Items: item},
			"continue":         {Type: huma.TypeString, Description: "Token of the next page; absent on the last one."},
			"resource_version": {Type: huma.TypeString, Description: "Store revision that all pages show."},
		},
	}
}

// describeBody documents a body. Registering it would make huma read and check
// the body itself, less strictly and with other messages than api does.
func (s *Server) describeBody(op huma.Operation, schema *huma.Schema, required bool) {
	path := s.api.OpenAPI().Paths[op.Path]
	registered := path.Put
	switch op.Method {
	case http.MethodPost:
		registered = path.Post
	case http.MethodPatch:
		registered = path.Patch
	}
	registered.RequestBody = &huma.RequestBody{
		Required: required, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}},
	}
}

package operation

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// OfKind describes an operation on objects or a collection of a kind.
func (a *API) OfKind(info api.KindInfo, method, path, verb, summary string, schema *huma.Schema) huma.Operation {
	op := huma.Operation{
		OperationID: verb + "-" + strings.ReplaceAll(string(info.Kind), "_", "-"),
		Method:      method, Path: path, Summary: summary, Tags: []string{string(info.Kind)},
		Responses: map[string]*huma.Response{},
		Errors:    []int{http.StatusUnprocessableEntity},
	}
	op = Declare(accessTo(info, method, verb), op)
	everywhere := !strings.Contains(path, "{namespace}") && !strings.Contains(path, "{cluster}")
	if !everywhere && info.Scope == api.GlobalOrNamespaced {
		op.OperationID += "-in-namespace"
	}
	if everywhere && (info.Scope == api.Namespaced || info.Scope == api.OfCluster) {
		op.OperationID += "-everywhere"
	}
	if schema != nil {
		op.Responses["200"] = JSONResponse("OK", schema)
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

// accessTo returns the access of an operation on a kind. Objects that belong to a cluster are
// written by agents.
func accessTo(info api.KindInfo, method, verb string) auth.Access {
	switch {
	case method == http.MethodGet && info.Scope == api.OfCluster:
		return auth.AccessReadReports
	case method == http.MethodGet:
		return auth.AccessRead
	case info.Kind.AccessControl():
		return auth.AccessAdminister
	case info.Scope == api.OfCluster || strings.HasPrefix(verb, "report"):
		return auth.AccessReport
	case method == http.MethodDelete:
		return auth.AccessDelete
	}
	return auth.AccessWrite
}

// JSONResponse describes a response.
func JSONResponse(description string, schema *huma.Schema) *huma.Response {
	return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

// ListOf returns the schema of a list.
func ListOf(item *huma.Schema) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"items", "resource_version"},
		Properties: map[string]*huma.Schema{
			"items":            {Type: huma.TypeArray, Items: item},
			"continue":         {Type: huma.TypeString, Description: "Token of the next page. Absent on the last one."},
			"resource_version": {Type: huma.TypeString, Description: "Store revision that all pages show."},
		},
	}
}

// DescribeBody documents the body of a registered operation.
func (a *API) DescribeBody(op huma.Operation, schema *huma.Schema, required bool) {
	path := a.huma.OpenAPI().Paths[op.Path]
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

// DescribeQuery gives the parameters of a registered GET that have no text of their own those of the
// fields of the same name.
func (a *API) DescribeQuery(op huma.Operation, of reflect.Type) {
	for _, parameter := range a.huma.OpenAPI().Paths[op.Path].Get.Parameters {
		for _, field := range api.Fields(of) {
			if parameter.Description == "" && parameter.Name == field.Name {
				parameter.Description = field.Doc
			}
		}
	}
}

// Schema returns the schema of a type in the OpenAPI document.
func (a *API) Schema(value any) *huma.Schema {
	return a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(value), true, "")
}

package terraform

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// serverFields is how the fields that a server knows differ from those of this provider. Both come
// from the API's types: the server describes its own in its OpenAPI document.
type serverFields struct {
	version string // of the server
	// missing are the fields of each kind that the server does not know: "spec.a.*.b", where "*" is
	// an element of a list or map; "" is the kind itself.
	missing map[api.Kind][]string
	// more are the kinds that have fields which the provider does not know.
	more map[api.Kind]bool
}

// openAPI is the part of an OpenAPI document that has the fields.
type openAPI struct {
	Info struct {
		Version string `json:"version"`
	} `json:"info"`
	Paths map[string]struct {
		Put *struct {
			RequestBody struct {
				Content map[string]struct {
					Schema openAPISchema `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"put"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]openAPISchema `json:"schemas"`
	} `json:"components"`
}

type openAPISchema struct {
	Ref        string                   `json:"$ref"`
	Properties map[string]openAPISchema `json:"properties"`
	Items      *openAPISchema           `json:"items"`
	Additional json.RawMessage          `json:"additionalProperties"` // false, or the schema of the values
}

// compareFields finds out which fields the server knows, unless they are those of this provider. If
// it cannot, the server itself rejects what it does not know.
func (s *Session) compareFields(ctx context.Context, info *api.ServerInfo) {
	if info != nil && info.Fields == api.Fingerprint() {
		s.fields.Store(&serverFields{version: info.Version})
		return
	}
	var document openAPI
	if err := s.client.Call(ctx, http.MethodGet, "/v1/openapi.json", nil, &document); err != nil || len(document.Paths) == 0 {
		s.fields.Store(&serverFields{})
		return
	}
	s.fields.Store(document.compare())
}

// knownFields is the result of the comparison, which is made now if the connection was not checked.
func (s *Session) knownFields(ctx context.Context) *serverFields {
	if s.fields.Load() == nil {
		if info, err := s.client.Connect(ctx); err == nil {
			s.compareFields(ctx, info)
		}
	}
	if fields := s.fields.Load(); fields != nil {
		return fields
	}
	return &serverFields{}
}

// compare compares the fields of the document with those of this provider.
func (o *openAPI) compare() *serverFields {
	result := &serverFields{version: o.Info.Version, missing: map[api.Kind][]string{}, more: map[api.Kind]bool{}}
	for _, info := range api.Kinds {
		schema, ok := o.kind(info)
		if !ok {
			result.missing[info.Kind] = []string{""}
			continue
		}
		result.compareType(info.Kind, o, reflect.TypeOf(info.New().SpecPart()), schema.Properties["spec"], "spec")
	}
	return result
}

// kind returns the schema of what is written of a kind.
func (o *openAPI) kind(info api.KindInfo) (openAPISchema, bool) {
	for path, item := range o.Paths {
		if item.Put != nil && strings.HasSuffix(path, "/"+info.Collection+"/{name}") {
			return o.resolve(item.Put.RequestBody.Content["application/json"].Schema), true
		}
	}
	return openAPISchema{}, false
}

// resolve follows a reference.
func (o *openAPI) resolve(schema openAPISchema) openAPISchema {
	if name, ok := strings.CutPrefix(schema.Ref, "#/components/schemas/"); ok {
		return o.Components.Schemas[name]
	}
	return schema
}

func (f *serverFields) compareType(kind api.Kind, o *openAPI, t reflect.Type, schema openAPISchema, at string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	schema = o.resolve(schema)
	switch t.Kind() {
	case reflect.Slice:
		if schema.Items != nil {
			f.compareType(kind, o, t.Elem(), *schema.Items, at+".*")
		}
	case reflect.Map:
		var values openAPISchema
		if json.Unmarshal(schema.Additional, &values) == nil {
			f.compareType(kind, o, t.Elem(), values, at+".*")
		}
	case reflect.Struct:
		if schema.Properties == nil {
			return // a value, such as a time
		}
		known := 0
		for _, field := range api.Fields(t) {
			property, ok := schema.Properties[field.Name]
			if !ok {
				f.missing[kind] = append(f.missing[kind], at+"."+field.Name)
				continue
			}
			known++
			f.compareType(kind, o, field.Type, property, at+"."+field.Name)
		}
		if known < len(schema.Properties) {
			f.more[kind] = true
		}
	default: // a value
	}
}

// adapt completes the options of a write for a server that knows other fields. An object that is
// created has no fields to keep.
func (f *serverFields) adapt(kind api.Kind, opts *client.PutOptions) {
	opts.LeaveOut = f.missing[kind]
	opts.CarryOver = f.more[kind] && !opts.Create
}

// versions says what to do about something that the server does not know.
func (s *Session) versions(fields *serverFields) string {
	return fmt.Sprintf("the server at %s has version %s and does not know it, while this provider has version %s: upgrade the server", s.client.Endpoints(), cmp.Or(fields.version, "unknown"), s.build)
}

// withVersions adds the versions to an error about a field that the server does not know, where the
// plan could not find it: in what a data source sends.
func (s *Session) withVersions(err error) error {
	problem, ok := errors.AsType[*api.Problem](err)
	fields := s.fields.Load()
	if !ok || fields == nil {
		return err
	}
	for i := range problem.Errors {
		if problem.Errors[i].Message == api.UnknownField {
			problem.Errors[i].Message = s.versions(fields) + ", or remove it"
		}
	}
	return err
}

// planServerFields refuses what the server does not know, with both versions. What the configuration
// leaves out is not sent.
func (r *Resource) planServerFields(config tftypes.Value, diags *diag.Diagnostics) {
	if r.session == nil {
		return
	}
	fields := r.session.fields.Load()
	if fields == nil || len(fields.missing[r.Kind]) == 0 {
		return
	}
	versions := r.session.versions(fields)
	if slices.Contains(fields.missing[r.Kind], "") {
		diags.AddError(fmt.Sprintf("The server does not know %s%s", typePrefix, r.Kind), Sentence(versions)+" Or use a provider of the server's version.")
		return
	}
	document, err := r.read(&configDocument{}, config)
	if err != nil {
		return // reported where the plan is read
	}
	var errs api.FieldErrors
	for _, field := range fields.missing[r.Kind] {
		api.EachPlace(map[string]any{"spec": document}, field, func(in map[string]any, name, at string) {
			if !isEmptyDocument(in[name]) {
				errs.Add(at, "%s", versions+", or remove it")
			}
		})
	}
	for _, field := range errs {
		fieldDiagnostic(diags, "plan a "+string(r.Kind), config.Type(), field)
	}
}

// isEmptyDocument reports whether a value is the same as none.
func isEmptyDocument(in any) bool {
	switch in := in.(type) {
	case nil:
		return true
	case []any:
		return len(in) == 0
	case map[string]any:
		return len(in) == 0
	}
	return false
}

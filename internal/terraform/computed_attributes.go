package terraform

import (
	"cmp"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ComputedAttributes describes a struct of the API as computed attributes: same
// names, and its documentation. What a data source shows is therefore always
// what the API has. docs completes the documentation: an entry for a path
// ("metrics.name") replaces the API's own text, one for a name ("name") fills in
// where the API has none.
func ComputedAttributes(t reflect.Type, docs map[string]string) map[string]schema.Attribute {
	return nestedAttributes(t, "", docs)
}

func nestedAttributes(t reflect.Type, at string, docs map[string]string) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			maps.Copy(attributes, nestedAttributes(field.Type, at, docs))
			continue
		}
		if name == "" || name == "-" || field.Tag.Get("writeOnly") == "true" {
			continue
		}
		path := strings.TrimPrefix(at+"."+name, ".")
		doc := cmp.Or(field.Tag.Get("doc"), docs[name], commonDocs[name])
		if text := docs[path]; text != "" && at != "" {
			doc = text
		}
		attribute := computedAttribute(field.Type, path, doc, docs)
		if nested, ok := attribute.(schema.SingleNestedAttribute); ok && len(nested.Attributes) == 0 {
			continue // all of it is secret
		}
		attributes[name] = attribute
	}
	return attributes
}

func computedAttribute(t reflect.Type, at, doc string, docs map[string]string) schema.Attribute {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema.StringAttribute{MarkdownDescription: doc, Computed: true}
	case t.Kind() == reflect.Struct:
		return schema.SingleNestedAttribute{MarkdownDescription: doc, Computed: true, Attributes: nestedAttributes(t, at, docs)}
	case t.Kind() == reflect.Slice && element(t).Kind() == reflect.Struct:
		return schema.ListNestedAttribute{MarkdownDescription: doc, Computed: true,
			NestedObject: schema.NestedAttributeObject{Attributes: nestedAttributes(element(t), at, docs)}}
	case t.Kind() == reflect.Slice && element(t).Kind() == reflect.Float64:
		return schema.ListAttribute{MarkdownDescription: doc, Computed: true, ElementType: types.Float64Type}
	case t.Kind() == reflect.Slice:
		return schema.ListAttribute{MarkdownDescription: doc, Computed: true, ElementType: types.StringType}
	case t.Kind() == reflect.Map && element(t).Kind() == reflect.Float64:
		return schema.MapAttribute{MarkdownDescription: doc, Computed: true, ElementType: types.Float64Type}
	case t.Kind() == reflect.Map && element(t).Kind() == reflect.Int64:
		return schema.MapAttribute{MarkdownDescription: doc, Computed: true, ElementType: types.Int64Type}
	case t.Kind() == reflect.Map:
		return schema.MapAttribute{MarkdownDescription: doc, Computed: true, ElementType: types.StringType}
	case t.Kind() == reflect.Bool:
		return schema.BoolAttribute{MarkdownDescription: doc, Computed: true}
	case t.Kind() == reflect.Float64:
		return schema.Float64Attribute{MarkdownDescription: doc, Computed: true}
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return schema.Int64Attribute{MarkdownDescription: doc, Computed: true}
	}
	return schema.StringAttribute{MarkdownDescription: doc, Computed: true}
}

func element(t reflect.Type) reflect.Type {
	e := t.Elem()
	for e.Kind() == reflect.Pointer {
		e = e.Elem()
	}
	return e
}

// commonDocs documents what many kinds have.
var commonDocs = map[string]string{
	"conditions":          "Observations by the server.",
	"type":                "What the condition is about.",
	"status":              "`True`, `False` or `Unknown`.",
	"reason":              "One word that says why.",
	"message":             "A sentence that says why.",
	"observed_generation": "Generation that the status answers.",
}

// ObjectAttributes shows an object of a kind in full: what was asked for at the
// top as in the resource, the server's metadata beside it, and the status.
func ObjectAttributes(kind api.Kind, docs map[string]string) map[string]schema.Attribute {
	info, _ := api.LookupKind(kind)
	object := info.New()
	attributes := ComputedAttributes(reflect.TypeFor[api.Metadata](), docs)
	if info.Scope == api.Global {
		delete(attributes, "namespace") // the spec may have one: the owner
	}
	if info.Scope != api.OfCluster {
		delete(attributes, "cluster")
	}
	maps.Copy(attributes, ComputedAttributes(reflect.TypeOf(object.SpecPart()).Elem(), docs))
	attributes["status"] = schema.SingleNestedAttribute{
		MarkdownDescription: "What the server knows about it.",
		Computed:            true,
		Attributes:          nestedAttributes(reflect.TypeOf(object.StatusPart()).Elem(), "status", docs),
	}
	return attributes
}

// ObjectDocument is the document of objectAttributes.
func ObjectDocument(object api.Object) (map[string]any, error) {
	document, err := Flatten(object)
	if err != nil {
		return nil, err
	}
	metadata, err := JSONDocument(object.Meta())
	if err != nil {
		return nil, err
	}
	if object.Meta().Namespace == "" {
		delete(metadata, "namespace")
	}
	maps.Copy(document, metadata)
	status, err := JSONDocument(object.StatusPart())
	if err != nil {
		return nil, err
	}
	document["status"] = status
	return document, nil
}

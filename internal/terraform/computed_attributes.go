package terraform

import (
	"maps"
	"reflect"

	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ComputedAttributes returns an API struct as computed attributes, so that data sources show
// everything the API has, except secrets.
func ComputedAttributes(t reflect.Type) map[string]datasource.Attribute {
	attributes := map[string]datasource.Attribute{}
	fields := api.Fields(t)
	for i := range fields {
		f := &fields[i]
		if f.Secret {
			continue
		}
		attribute := computedAttribute(f)
		if nested, ok := attribute.(datasource.SingleNestedAttribute); ok && len(nested.Attributes) == 0 {
			continue // entirely secret
		}
		attributes[f.Name] = attribute
	}
	return attributes
}

func computedAttribute(f *api.Field) datasource.Attribute {
	description := f.DescribeValue()
	s, inner := shapeOf(f.Type)
	switch s {
	case shapeText, shapeInstant:
		return datasource.StringAttribute{MarkdownDescription: description, Computed: true}
	case shapeBool:
		return datasource.BoolAttribute{MarkdownDescription: description, Computed: true}
	case shapeWhole:
		return datasource.Int64Attribute{MarkdownDescription: description, Computed: true}
	case shapeDecimal:
		return datasource.Float64Attribute{MarkdownDescription: description, Computed: true}
	case shapeObject:
		return datasource.SingleNestedAttribute{MarkdownDescription: description, Computed: true, Attributes: ComputedAttributes(inner)}
	case shapeObjects:
		return datasource.ListNestedAttribute{MarkdownDescription: description, Computed: true,
			NestedObject: datasource.NestedAttributeObject{Attributes: ComputedAttributes(inner)}}
	case shapeList:
		if elements := elementType(inner, types.Int64Type); elements != nil {
			return datasource.ListAttribute{MarkdownDescription: description, Computed: true, ElementType: elements}
		}
	case shapeObjectMap:
		return datasource.MapNestedAttribute{MarkdownDescription: description, Computed: true,
			NestedObject: datasource.NestedAttributeObject{Attributes: ComputedAttributes(inner)}}
	case shapeMap:
		if elements := elementType(inner, types.Int64Type); elements != nil {
			return datasource.MapAttribute{MarkdownDescription: description, Computed: true, ElementType: elements}
		}
	case shapeNone:
	}
	return unsupportedArgument{why: noAttribute(f)}
}

// ObjectAttributes returns the attributes that show an object of a kind completely: the spec at the
// top level as in the resource, next to the metadata and the status.
func ObjectAttributes(kind api.Kind) map[string]datasource.Attribute {
	info, _ := api.LookupKind(kind)
	attributes := ComputedAttributes(reflect.TypeFor[api.Metadata]())
	if info.Scope == api.Global {
		delete(attributes, "namespace") // the spec may have one: the owner
	}
	if info.Scope != api.OfCluster {
		delete(attributes, "cluster")
	}
	maps.Copy(attributes, ComputedAttributes(specOf(kind)))
	attributes["status"] = datasource.SingleNestedAttribute{
		MarkdownDescription: "What the server knows about it.",
		Computed:            true,
		Attributes:          ComputedAttributes(reflect.TypeOf(info.New().StatusPart()).Elem()),
	}
	return attributes
}

// ObjectDocument returns the document for ObjectAttributes.
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

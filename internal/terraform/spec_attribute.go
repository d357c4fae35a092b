package terraform

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// attributeField is a field of a spec, and what its attribute has whatever its shape.
type attributeField struct {
	*api.Field
	traits
	description                  string
	required, optional, computed bool
}

// specAttribute returns the attribute of a resource that holds a field of its spec.
func specAttribute(f *api.Field) schema.Attribute {
	own := attributeField{f, traitsOf(f), f.Describe(), f.Required, !f.Required, f.Default != "" || f.DefaultBy != nil}
	if own.also != "" {
		own.description += " " + own.also
	}
	s, inner := shapeOf(f.Type)
	switch s {
	case shapeText, shapeInstant:
		return own.text(s)
	case shapeBool:
		return own.boolean()
	case shapeWhole:
		return own.whole()
	case shapeDecimal:
		return own.decimal()
	case shapeObject:
		return own.object(inner)
	case shapeObjects:
		return own.objects(inner)
	case shapeList:
		return own.list(inner)
	case shapeMap:
		return own.dictionary(inner)
	case shapeObjectMap, shapeNone: // only statuses have maps of objects
	}
	return unsupported{why: noAttribute(f)}
}

func (f *attributeField) text(s shape) schema.Attribute {
	a := schema.StringAttribute{MarkdownDescription: f.description, Required: f.required, Optional: f.optional, Computed: f.computed, Sensitive: f.Secret, WriteOnly: f.Secret}
	if f.computed || f.notEmpty {
		a.Validators = refusesEmpty
	}
	switch {
	case s == shapeInstant:
		a.PlanModifiers = []planmodifier.String{sameInstant{}}
	case f.DefaultBy != nil:
		a.PlanModifiers = []planmodifier.String{siblingDefault{f.DefaultBy}}
	case f.Default != "":
		a.Default = stringdefault.StaticString(f.Default)
	}
	return a
}

func (f *attributeField) boolean() schema.Attribute {
	a := schema.BoolAttribute{MarkdownDescription: f.description, Required: f.required, Optional: f.optional, Computed: f.computed}
	if f.Default != "" {
		a.Default = booldefault.StaticBool(f.Default == "true")
	}
	return a
}

func (f *attributeField) whole() schema.Attribute {
	a := schema.Int64Attribute{CustomType: WholeNumber{}, MarkdownDescription: f.description, Required: f.required, Optional: f.optional, Computed: f.computed}
	if f.Default != "" {
		a.Default = int64default.StaticInt64(wholeDefault(f.Field))
	}
	if f.notZero || f.Type.Kind() != reflect.Pointer && f.Default != "" && wholeDefault(f.Field) != 0 {
		a.Validators = []validator.Int64{notZero{}}
	}
	return a
}

func (f *attributeField) decimal() schema.Attribute {
	a := schema.Float64Attribute{MarkdownDescription: f.description, Required: f.required, Optional: f.optional, Computed: f.computed}
	if f.Default != "" {
		value, _ := strconv.ParseFloat(f.Default, 64) // every default is parsed by a test of package api
		a.Default = staticDecimal(value)
	}
	return a
}

func (f *attributeField) object(of reflect.Type) schema.Attribute {
	return schema.SingleNestedAttribute{MarkdownDescription: f.description, Required: f.required, Optional: f.optional, Computed: f.computed, Attributes: specAttributes(api.Fields(of))}
}

func (f *attributeField) objects(of reflect.Type) schema.Attribute {
	object := schema.NestedAttributeObject{Attributes: specAttributes(api.Fields(of))}
	if f.set {
		return schema.SetNestedAttribute{MarkdownDescription: f.description, Required: f.required, Optional: f.optional, NestedObject: object}
	}
	return schema.ListNestedAttribute{MarkdownDescription: f.description, Required: f.required, Optional: f.optional, NestedObject: object}
}

func (f *attributeField) list(of reflect.Type) schema.Attribute {
	elements := elementType(of, WholeNumber{})
	switch {
	case elements == nil:
		return unsupported{why: noAttribute(f.Field)}
	case f.set:
		return schema.SetAttribute{MarkdownDescription: f.description, Required: f.required, Optional: f.optional, ElementType: elements}
	}
	a := schema.ListAttribute{MarkdownDescription: f.description, Required: f.required, Optional: f.optional, Computed: f.computed, ElementType: elements}
	if f.Default != "" {
		a.Default = listdefault.StaticValue(listDefault(f.Field))
	}
	return a
}

func (f *attributeField) dictionary(of reflect.Type) schema.Attribute {
	elements := elementType(of, WholeNumber{})
	if elements == nil {
		return unsupported{why: noAttribute(f.Field)}
	}
	return schema.MapAttribute{MarkdownDescription: f.description, Required: f.required, Optional: f.optional, Sensitive: f.Secret, WriteOnly: f.Secret, ElementType: elements}
}

func wholeDefault(f *api.Field) int64 {
	value, _ := strconv.ParseInt(f.Default, 10, 64) // every default is parsed by a test of package api
	return value
}

func listDefault(f *api.Field) types.List {
	var texts []string
	_ = json.Unmarshal([]byte(f.Default), &texts) // every default is parsed by a test of package api
	values := make([]attr.Value, len(texts))
	for i, text := range texts {
		values[i] = types.StringValue(text)
	}
	return types.ListValueMust(types.StringType, values)
}

package terraform

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
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

// The attributes of resources and data sources are derived from the fields of the API: names,
// types, descriptions, defaults, and whether they are required, secret or computed.
// Terraform-specific properties are in ownTraits.

// traits are Terraform-specific properties of an API field.
type traits struct {
	// set says that the order of elements does not matter.
	set bool
	// notEmpty rejects "", which the API treats as absent. Fields with a default reject it anyway.
	notEmpty bool
	// notZero rejects 0, which the API treats as absent.
	notZero bool
	// also is appended to the description of the API.
	also string
}

// ownTraits holds the traits of fields, keyed by the type that declares the field.
var ownTraits = map[string]traits{
	"CloudSpec.namespace":    {notEmpty: true},
	"ClusterSpec.namespace":  {notEmpty: true},
	"ClusterSpec.namespaces": {set: true},
	"ClusterSpec.zones":      {set: true},
	"ClusterSpec.taints": {set: true, also: "The server adds taints of its own (`" + api.TaintUnreachable + "`, `" + api.TaintUnhealthy +
		"`) to clusters that are offline. The data source `scheduler_cluster` shows all taints."},
	"ClusterSpec.spot":                        {also: "See the guide *Spot nodes*."},
	"DistributionSpec.mode":                   {notEmpty: true},
	"DistributionSpec.custom_on_demand":       {notEmpty: true},
	"GroupConstraint.spread_by_label":         {notEmpty: true},
	"GroupConstraint.min_groups":              {notZero: true},
	"HTTPJSONSpec.url":                        {also: "In Terraform, write `$${cluster.name}`: with a single `$`, Terraform evaluates the expression itself."},
	"MetricRef.namespace":                     {notEmpty: true},
	"OpenStackSpec.username":                  {notEmpty: true},
	"OpenStackSpec.user_id":                   {notEmpty: true},
	"OpenStackSpec.project_name":              {notEmpty: true},
	"OpenStackSpec.project_id":                {notEmpty: true},
	"OpenStackSpec.application_credential_id": {notEmpty: true},
	"OpenStackSpec.ca_cert":                   {notEmpty: true},
	"PlacementSpec.decision_strategy":         {also: "The data source `scheduler_placement_decisions` shows the groups."},
	"PlacementSpec.kubernetes_version":        {notEmpty: true},
	"ResourceSelector.namespace":              {notEmpty: true},
	"ResourceSelector.name":                   {notEmpty: true},
	"WeightPreference.dynamic_weight":         {notEmpty: true},
}

func traitsOf(f *api.Field) traits { return ownTraits[f.Of.Name()+"."+f.Name] }

// SpecAttributes returns the attributes of a resource that hold the spec of a kind. If the kind has
// secrets, they include the attributes of every secret.
func SpecAttributes(kind api.Kind) map[string]schema.Attribute {
	fields := api.Fields(specOf(kind))
	attributes := specAttributes(fields)
	for i := range fields {
		// These are planned in planDependentDefaults, because they depend on other attributes of
		// the resource.
		if text, ok := attributes[fields[i].Name].(schema.StringAttribute); ok && fields[i].DefaultBy != nil {
			text.PlanModifiers = nil
			attributes[fields[i].Name] = text
		}
	}
	if hasSecrets(fields) {
		return withSecrets(attributes)
	}
	return attributes
}

func hasSecrets(fields []api.Field) bool {
	return slices.ContainsFunc(fields, func(f api.Field) bool {
		s, inner := shapeOf(f.Type)
		return f.Secret || s == shapeObject && hasSecrets(api.Fields(inner))
	})
}

func specOf(kind api.Kind) reflect.Type {
	info, _ := api.LookupKind(kind)
	return reflect.TypeOf(info.New().SpecPart()).Elem()
}

// dependentDefaults returns the attributes of a kind whose default depends on another field, and
// that field; nil = there are none.
func dependentDefaults(kind api.Kind) (on *api.Field, names []string) {
	fields := api.Fields(specOf(kind))
	for i := range fields {
		if by := fields[i].DefaultBy; by != nil {
			names = append(names, fields[i].Name)
			on = &fields[slices.IndexFunc(fields, func(f api.Field) bool { return f.Name == by.On })]
		}
	}
	return on, names
}

// Arguments returns the fields of an API struct as arguments of a data source. They are not covered
// by the validation of an object, so their enums are checked here.
func Arguments(t reflect.Type) map[string]datasource.Attribute {
	fields := api.Fields(t)
	arguments := DataSourceArguments(specAttributes(fields))
	for i := range fields {
		if text, ok := arguments[fields[i].Name].(datasource.StringAttribute); ok && fields[i].Enum != nil {
			text.Validators = []validator.String{stringvalidator.OneOf(fields[i].Enum...)}
			arguments[fields[i].Name] = text
		}
	}
	return arguments
}

func specAttributes(fields []api.Field) map[string]schema.Attribute {
	attributes := make(map[string]schema.Attribute, len(fields))
	for i := range fields {
		attributes[fields[i].Name] = specAttribute(&fields[i])
	}
	return attributes
}

// shape is the type of an attribute, as far as Terraform distinguishes types.
type shape int

const (
	shapeNone shape = iota // no attribute can hold it
	shapeText
	shapeInstant
	shapeBool
	shapeWhole
	shapeDecimal
	shapeObject
	shapeObjects // a list or a set of objects
	shapeList    // or a set, of scalars
	shapeMap     // of scalars
	shapeObjectMap
)

// shapeOf returns the shape of a field and the type of its contents: the struct of an object, or
// the elements of a list or map.
func shapeOf(t reflect.Type) (shape, reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return shapeInstant, nil
	case t == reflect.TypeFor[api.Secret](), t.Kind() == reflect.String:
		return shapeText, nil
	case t.Kind() == reflect.Bool:
		return shapeBool, nil
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return shapeWhole, nil
	case t.Kind() == reflect.Float64:
		return shapeDecimal, nil
	case t.Kind() == reflect.Struct:
		return shapeObject, t
	case t == reflect.TypeFor[json.RawMessage]():
		return shapeText, nil
	case t.Kind() == reflect.Map && element(t).Kind() == reflect.Struct && element(t) != reflect.TypeFor[api.Secret]():
		return shapeObjectMap, element(t)
	case t.Kind() == reflect.Map:
		return shapeMap, t.Elem()
	case t.Kind() == reflect.Slice && element(t).Kind() == reflect.Struct:
		return shapeObjects, element(t)
	case t.Kind() == reflect.Slice:
		return shapeList, t.Elem()
	}
	return shapeNone, nil
}

// elementType returns the type of the elements of a list or map, or nil. whole and decimal are the
// types to use for numbers.
func elementType(t reflect.Type, whole, decimal attr.Type) attr.Type {
	switch s, _ := shapeOf(t); s { //nolint:exhaustive // there are no lists or maps of other types
	case shapeDecimal:
		return decimal
	case shapeWhole:
		return whole
	case shapeText:
		return types.StringType
	}
	return nil
}

func specAttribute(f *api.Field) schema.Attribute {
	own := traitsOf(f)
	description := f.Describe()
	if own.also != "" {
		description += " " + own.also
	}
	required, optional, computed := f.Required, !f.Required, f.Default != "" || f.DefaultBy != nil
	s, inner := shapeOf(f.Type)
	switch s {
	case shapeText, shapeInstant:
		a := schema.StringAttribute{MarkdownDescription: description, Required: required, Optional: optional, Computed: computed, Sensitive: f.Secret, WriteOnly: f.Secret}
		if computed || own.notEmpty {
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
	case shapeBool:
		a := schema.BoolAttribute{MarkdownDescription: description, Required: required, Optional: optional, Computed: computed}
		if f.Default != "" {
			a.Default = booldefault.StaticBool(f.Default == "true")
		}
		return a
	case shapeWhole:
		a := schema.Int64Attribute{CustomType: WholeNumber{}, MarkdownDescription: description, Required: required, Optional: optional, Computed: computed}
		if f.Default != "" {
			a.Default = int64default.StaticInt64(wholeDefault(f))
		}
		if own.notZero || f.Type.Kind() != reflect.Pointer && f.Default != "" && wholeDefault(f) != 0 {
			a.Validators = []validator.Int64{notZero{}}
		}
		return a
	case shapeDecimal:
		a := schema.Float64Attribute{CustomType: decimalNumber{}, MarkdownDescription: description, Required: required, Optional: optional, Computed: computed}
		if f.Default != "" {
			value, _ := strconv.ParseFloat(f.Default, 64) // every default is parsed by a test of package api
			a.Default = staticDecimal(value)
		}
		return a
	case shapeObject:
		return schema.SingleNestedAttribute{MarkdownDescription: description, Required: required, Optional: optional, Computed: computed, Attributes: specAttributes(api.Fields(inner))}
	case shapeObjects:
		object := schema.NestedAttributeObject{Attributes: specAttributes(api.Fields(inner))}
		if own.set {
			return schema.SetNestedAttribute{MarkdownDescription: description, Required: required, Optional: optional, NestedObject: object}
		}
		return schema.ListNestedAttribute{MarkdownDescription: description, Required: required, Optional: optional, NestedObject: object}
	case shapeList:
		elements := elementType(inner, WholeNumber{}, decimalNumber{})
		switch {
		case elements == nil:
			return unsupported{why: noAttribute(f)}
		case own.set:
			return schema.SetAttribute{MarkdownDescription: description, Required: required, Optional: optional, ElementType: elements}
		}
		a := schema.ListAttribute{MarkdownDescription: description, Required: required, Optional: optional, Computed: computed, ElementType: elements}
		if f.Default != "" {
			a.Default = listdefault.StaticValue(listDefault(f))
		}
		return a
	case shapeMap:
		if elements := elementType(inner, WholeNumber{}, decimalNumber{}); elements != nil {
			return schema.MapAttribute{MarkdownDescription: description, Required: required, Optional: optional, Sensitive: f.Secret, WriteOnly: f.Secret, ElementType: elements}
		}
	case shapeObjectMap, shapeNone: // only statuses have maps of objects
	}
	return unsupported{why: noAttribute(f)}
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
		if elements := elementType(inner, types.Int64Type, types.Float64Type); elements != nil {
			return datasource.ListAttribute{MarkdownDescription: description, Computed: true, ElementType: elements}
		}
	case shapeObjectMap:
		return datasource.MapNestedAttribute{MarkdownDescription: description, Computed: true,
			NestedObject: datasource.NestedAttributeObject{Attributes: ComputedAttributes(inner)}}
	case shapeMap:
		if elements := elementType(inner, types.Int64Type, types.Float64Type); elements != nil {
			return datasource.MapAttribute{MarkdownDescription: description, Computed: true, ElementType: elements}
		}
	case shapeNone:
	}
	return unsupportedArgument{why: noAttribute(f)}
}

func element(t reflect.Type) reflect.Type {
	e := t.Elem()
	for e.Kind() == reflect.Pointer {
		e = e.Elem()
	}
	return e
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

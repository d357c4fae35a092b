package terraform

import (
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
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
	"MoveSelector.namespaces":                 {set: true},
	"MoveWindowSpec.description":              {notEmpty: true},
	"MoveWindowSpec.reasons":                  {set: true},
	"NotificationSpec.events":                 {set: true},
	"NotificationSpec.ca_cert":                {notEmpty: true},
	"NotificationSelector.namespaces":         {set: true},
	"NotificationSelector.kinds":              {set: true},
	"NotificationSelector.names":              {set: true},
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
	"Rollout.label_key":                       {notEmpty: true},
	"WeightPreference.dynamic_weight":         {notEmpty: true},
}

func traitsOf(f *api.Field) traits { return ownTraits[f.Of.Name()+"."+f.Name] }

// SpecAttributes returns the attributes of a resource that hold the spec of a kind. If the kind has
// secrets, they include the attributes of every secret, and SecretsVersion.
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

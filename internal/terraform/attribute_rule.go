package terraform

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// attributeRule describes how the framework validates and plans an attribute. The direct answers
// are based on it.
type attributeRule struct {
	name string
	typ  tftypes.Type
	// required attributes must not be null, readOnly ones must be null, and deprecated ones cause a
	// warning.
	required, readOnly, deprecated bool
	// computed attributes are unknown if not configured, and writeOnly ones are null in every plan.
	computed, writeOnly bool
	// fallback is the default, which replaces null; nil = none.
	fallback *tftypes.Value
	// siblings are the defaults that depend on a sibling attribute.
	siblings []siblingDefault
	// texts and wholes are the validators of strings and integers.
	texts  []validator.String
	wholes []validator.Int64
	// narrow is the framework type if it does not accept all values of the Terraform type;
	// otherwise nil.
	narrow attr.Type
	// nested are the rules of nested attributes: of an object, or of each element of a list or set.
	nested []attributeRule
	nests  nesting
	// planned says that planning does more than copy.
	planned bool
}

// leavesAlone are the plan modifiers that do nothing for a new object, or if plan and state agree
// and nothing is unknown.
var leavesAlone = []reflect.Type{
	reflect.TypeOf(stringplanmodifier.RequiresReplace()),
	reflect.TypeOf(stringplanmodifier.UseStateForUnknown()),
	reflect.TypeFor[sameInstant](),
}

// looksAtValue are the validators that only look at the value, and accept null.
var looksAtValue = []reflect.Type{
	reflect.TypeFor[notEmpty](),
	reflect.TypeFor[notZero](),
	reflect.TypeOf(stringvalidator.OneOf()),
	reflect.TypeOf(timeLimitValidator()),
}

// attributeRules returns the rules of attributes. It fails for an attribute with validators or
// modifiers that only the framework can run.
func attributeRules(ctx context.Context, attributes map[string]schema.Attribute) ([]attributeRule, error) {
	var rules []attributeRule
	for name, attribute := range attributes {
		rule, err := newAttributeRule(ctx, name, attribute)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func newAttributeRule(ctx context.Context, name string, attribute schema.Attribute) (attributeRule, error) {
	t := attribute.GetType()
	rule := attributeRule{
		name: name, typ: t.TerraformType(ctx),
		required: attribute.IsRequired(), readOnly: !attribute.IsRequired() && !attribute.IsOptional(),
		computed: attribute.IsComputed(), writeOnly: attribute.IsWriteOnly(), deprecated: attribute.GetDeprecationMessage() != "",
	}
	value, ok, err := defaultOf(ctx, attribute)
	if err != nil {
		return rule, err
	}
	if ok {
		rule.fallback = &value
	}
	for _, take := range []func(schema.Attribute) error{rule.takeValidators, rule.takeModifiers, checkElements} {
		if err := take(attribute); err != nil {
			return rule, err
		}
	}
	if err := rule.takeNested(ctx, attribute); err != nil {
		return rule, err
	}
	if isNarrow(ctx, t) && (rule.nested == nil || rule.nests == inSet) {
		rule.narrow = t
	}
	below := slices.ContainsFunc(rule.nested, func(r attributeRule) bool { return r.planned })
	rule.planned = below || rule.computed || rule.writeOnly || rule.fallback != nil || rule.siblings != nil || rule.narrow != nil
	return rule, nil
}

// takeValidators takes over the validators that only look at the value.
func (r *attributeRule) takeValidators(attribute schema.Attribute) error {
	switch a := attribute.(type) {
	case schema.StringAttribute:
		r.texts = a.Validators
		return onlyLookAtValue(a.Validators)
	case schema.Int64Attribute:
		r.wholes = a.Validators
		return onlyLookAtValue(a.Validators)
	}
	if has(attribute, "Validators") {
		return errors.New("has validators")
	}
	return nil
}

func onlyLookAtValue[V any](validators []V) error {
	for _, v := range validators {
		if !slices.Contains(looksAtValue, reflect.TypeOf(v)) {
			return fmt.Errorf("has the validator %T", v)
		}
	}
	return nil
}

// takeModifiers takes over sibling defaults, and ignores modifiers that do nothing here.
func (r *attributeRule) takeModifiers(attribute schema.Attribute) error {
	text, ok := attribute.(schema.StringAttribute)
	if !ok && has(attribute, "PlanModifiers") {
		return errors.New("has plan modifiers")
	}
	for _, modifier := range text.PlanModifiers {
		if sibling, ok := modifier.(siblingDefault); ok {
			r.siblings = append(r.siblings, sibling)
		} else if !slices.Contains(leavesAlone, reflect.TypeOf(modifier)) {
			return fmt.Errorf("has the plan modifier %T", modifier)
		}
	}
	return nil
}

// checkElements fails if the elements of a list or set have validators or modifiers of their own.
func checkElements(attribute schema.Attribute) error {
	var element schema.NestedAttributeObject
	switch a := attribute.(type) {
	case schema.ListNestedAttribute:
		element = a.NestedObject
	case schema.SetNestedAttribute:
		element = a.NestedObject
	}
	if has(element, "Validators") || has(element, "PlanModifiers") {
		return errors.New("its elements have validators, or plan modifiers")
	}
	return nil
}

func (r *attributeRule) takeNested(ctx context.Context, attribute schema.Attribute) (err error) {
	var nested map[string]schema.Attribute
	nested, r.nests = inside(attribute)
	if r.nested, err = attributeRules(ctx, nested); err != nil {
		return err
	}
	if r.nests == inSet && slices.ContainsFunc(r.nested, func(r attributeRule) bool { return r.changes() }) {
		return errors.New("elements of a set have defaults, or plan modifiers")
	}
	return nil
}

// changes reports whether planning may change the proposed value.
func (r *attributeRule) changes() bool {
	return r.computed || r.writeOnly || r.fallback != nil || r.siblings != nil ||
		slices.ContainsFunc(r.nested, func(below attributeRule) bool { return below.changes() })
}

// has reports whether a part of a schema has validators or plan modifiers.
func has(part any, field string) bool {
	values := reflect.Indirect(reflect.ValueOf(part)).FieldByName(field)
	return values.IsValid() && values.Len() > 0
}

// isNarrow reports whether a framework type does not accept all values of the Terraform type: not
// every number is an integer, and not every list is a set.
func isNarrow(ctx context.Context, t attr.Type) bool {
	if plain := t.TerraformType(ctx); plain.Is(tftypes.Number) || plain.Is(tftypes.Set{}) {
		return true
	}
	switch t := t.(type) {
	case attr.TypeWithElementType:
		return isNarrow(ctx, t.ElementType())
	case attr.TypeWithAttributeTypes:
		for _, inner := range t.AttributeTypes() {
			if isNarrow(ctx, inner) {
				return true
			}
		}
	}
	return false
}

// takes reports whether a framework type accepts a value.
func takes(ctx context.Context, t attr.Type, v tftypes.Value) bool {
	if v.IsNull() || !v.IsKnown() {
		return true
	}
	value, err := t.ValueFromTerraform(ctx, v)
	if err != nil {
		return false
	}
	switch checked := value.(type) {
	case xattr.ValidateableAttribute:
		var resp xattr.ValidateAttributeResponse
		checked.ValidateAttribute(ctx, xattr.ValidateAttributeRequest{Path: path.Empty()}, &resp)
		return len(resp.Diagnostics) == 0
	default:
		//nolint:staticcheck // the framework's own types have nothing else
		checkedType, ok := t.(xattr.TypeWithValidate)
		return !ok || len(checkedType.Validate(ctx, v, path.Empty())) == 0
	}
}

// valid reports whether the framework would accept a configuration without diagnostics, considering
// each attribute on its own. writeOnly says whether Terraform supports write-only attributes.
func valid(ctx context.Context, rules []attributeRule, config map[string]tftypes.Value, writeOnly bool) bool {
	for i := range rules {
		if !rules[i].valid(ctx, config[rules[i].name], writeOnly) {
			return false
		}
	}
	return true
}

func (r *attributeRule) valid(ctx context.Context, given tftypes.Value, writeOnly bool) bool {
	switch {
	case given.IsNull():
		return !r.required
	case r.readOnly, r.writeOnly && !writeOnly, r.deprecated && given.IsKnown():
		return false
	case !given.IsKnown():
		return true
	}
	if r.narrow != nil && !takes(ctx, r.narrow, given) {
		return false
	}
	for _, v := range r.texts {
		var resp validator.StringResponse
		if v.ValidateString(ctx, validator.StringRequest{ConfigValue: types.StringValue(TextOf(given))}, &resp); len(resp.Diagnostics) > 0 {
			return false
		}
	}
	for _, v := range r.wholes {
		value, err := types.Int64Type.ValueFromTerraform(ctx, given)
		whole, ok := value.(types.Int64)
		if err != nil || !ok {
			return false
		}
		var resp validator.Int64Response
		if v.ValidateInt64(ctx, validator.Int64Request{ConfigValue: whole}, &resp); len(resp.Diagnostics) > 0 {
			return false
		}
	}
	switch {
	case r.nested == nil:
		return true
	case r.nests == inObject:
		return valid(ctx, r.nested, AttributesOf(given), writeOnly)
	}
	for _, element := range ElementsOf(given) {
		// Leave elements that are not fully known to the framework.
		if element.IsNull() || !element.IsKnown() || r.nests == inSet && !element.IsFullyKnown() || !valid(ctx, r.nested, AttributesOf(element), writeOnly) {
			return false
		}
	}
	return true
}

// steady reports whether planning leaves a proposed state that equals the prior one unchanged,
// considering each attribute on its own.
func steady(rules []attributeRule, config, prior map[string]tftypes.Value) bool {
	for i := range rules {
		rule := &rules[i]
		if !rule.planned {
			continue
		}
		given, is := config[rule.name], prior[rule.name]
		switch {
		case rule.writeOnly && !is.IsNull(),
			rule.fallback != nil && given.IsNull() && !same(is, *rule.fallback):
			return false
		}
		for _, sibling := range rule.siblings {
			text, ok := sibling.by.For(TextOf(prior[sibling.by.On]))
			if given.IsNull() && (is.IsNull() == ok || TextOf(is) != text) {
				return false
			}
		}
		if rule.nested == nil || is.IsNull() || rule.nests == inSet {
			continue
		}
		if rule.nests == inObject {
			if !steady(rule.nested, AttributesOf(given), AttributesOf(is)) {
				return false
			}
			continue
		}
		elements := ElementsOf(given)
		for i, element := range ElementsOf(is) {
			var of map[string]tftypes.Value
			if i < len(elements) {
				of = AttributesOf(elements[i])
			}
			if !steady(rule.nested, of, AttributesOf(element)) {
				return false
			}
		}
	}
	return true
}

// create completes the plan of a new object with what each attribute determines on its own:
// defaults, and unknown values for computed attributes. ok is false if only the framework can plan
// it.
func create(ctx context.Context, rules []attributeRule, plan, config map[string]tftypes.Value) (ok bool) {
	for i := range rules {
		rule := &rules[i]
		if !rule.planned {
			continue
		}
		planned, given := plan[rule.name], config[rule.name]
		if rule.narrow != nil && !takes(ctx, rule.narrow, planned) {
			return false
		}
		if planned, ok = rule.createNested(ctx, planned, given); !ok {
			return false
		}
		switch {
		case rule.writeOnly:
			planned = tftypes.NewValue(rule.typ, nil)
		case !given.IsNull():
		case rule.fallback != nil:
			planned = *rule.fallback
		case rule.computed:
			planned = tftypes.NewValue(rule.typ, tftypes.UnknownValue)
		}
		plan[rule.name] = planned
	}
	for i := range rules {
		rule := &rules[i]
		for _, sibling := range rule.siblings {
			if config[rule.name].IsNull() {
				plan[rule.name] = sibling.beside(plan[sibling.by.On])
			}
		}
	}
	return true
}

// createNested is create for nested attributes.
func (r *attributeRule) createNested(ctx context.Context, planned, given tftypes.Value) (value tftypes.Value, ok bool) {
	if r.nested == nil || r.nests == inSet || planned.IsNull() || !planned.IsKnown() {
		return planned, true
	}
	inside := func(planned, given tftypes.Value) (tftypes.Value, bool) {
		plan, config := AttributesOf(planned), AttributesOf(given)
		if plan == nil || config == nil {
			return planned, false
		}
		ok := create(ctx, r.nested, plan, config)
		return tftypes.NewValue(planned.Type(), plan), ok
	}
	if r.nests == inObject {
		return inside(planned, given)
	}
	elements, of := ElementsOf(planned), ElementsOf(given)
	if len(elements) != len(of) {
		return planned, false
	}
	for i := range elements {
		if elements[i], ok = inside(elements[i], of[i]); !ok {
			return planned, false
		}
	}
	return tftypes.NewValue(planned.Type(), elements), true
}

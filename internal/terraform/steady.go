package terraform

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// steadyRule is what must hold of an attribute so that a plan which proposes the
// prior state leaves it as it is. Attributes about which the framework has nothing
// to say have none.
type steadyRule struct {
	name string
	// writeOnly attributes are null in every plan.
	writeOnly bool
	// fallback is the default, which takes the place of null; nil = none.
	fallback *tftypes.Value
	// siblings are the defaults that follow from an attribute beside it.
	siblings []siblingDefault
	// nested are the rules of the attributes inside, of each element of a list.
	nested []steadyRule
	list   bool
}

// leavesAlone are the plan modifiers that do nothing where plan and state agree and
// nothing is unknown.
var leavesAlone = []reflect.Type{
	reflect.TypeOf(stringplanmodifier.RequiresReplace()),
	reflect.TypeOf(stringplanmodifier.UseStateForUnknown()),
	reflect.TypeFor[SameInstant](),
}

// steadyRules are the rules of attributes. The error names one that only the
// framework understands.
func steadyRules(ctx context.Context, attributes map[string]schema.Attribute) ([]steadyRule, error) {
	var rules []steadyRule
	for name, attribute := range attributes {
		rule := steadyRule{name: name, writeOnly: attribute.IsWriteOnly()}
		value, ok, err := defaultOf(ctx, attribute)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if ok {
			rule.fallback = &value
		}
		var inside map[string]schema.Attribute
		switch a := attribute.(type) {
		case schema.StringAttribute:
			for _, modifier := range a.PlanModifiers {
				if sibling, ok := modifier.(siblingDefault); ok {
					rule.siblings = append(rule.siblings, sibling)
				} else if !slices.Contains(leavesAlone, reflect.TypeOf(modifier)) {
					return nil, fmt.Errorf("%s: has the plan modifier %T", name, modifier)
				}
			}
		case schema.SingleNestedAttribute:
			inside = a.Attributes
		case schema.ListNestedAttribute:
			inside, rule.list = a.NestedObject.Attributes, true
		case schema.SetNestedAttribute:
			of, err := steadyRules(ctx, a.NestedObject.Attributes)
			if err != nil {
				return nil, fmt.Errorf("%s.%w", name, err)
			}
			if len(of) > 0 {
				return nil, fmt.Errorf("%s: elements of a set have defaults, or plan modifiers", name)
			}
		}
		if _, isText := attribute.(schema.StringAttribute); !isText && modified(attribute) {
			return nil, fmt.Errorf("%s: has plan modifiers", name)
		}
		if rule.nested, err = steadyRules(ctx, inside); err != nil {
			return nil, fmt.Errorf("%s.%w", name, err)
		}
		if rule.writeOnly || rule.fallback != nil || len(rule.siblings) > 0 || len(rule.nested) > 0 {
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

// modified reports an attribute that has plan modifiers.
func modified(attribute schema.Attribute) bool {
	modifiers := reflect.Indirect(reflect.ValueOf(attribute)).FieldByName("PlanModifiers")
	return modifiers.IsValid() && modifiers.Len() > 0
}

// steady reports that a plan which proposes the prior state leaves it as it is, as
// far as attributes on their own say.
func steady(rules []steadyRule, config, prior map[string]tftypes.Value) bool {
	for i := range rules {
		rule := &rules[i]
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
		if len(rule.nested) == 0 || is.IsNull() {
			continue
		}
		if !rule.list {
			if !steady(rule.nested, AttributesOf(given), AttributesOf(is)) {
				return false
			}
			continue
		}
		elements := elementsOf(given)
		for i, element := range elementsOf(is) {
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

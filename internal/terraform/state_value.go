package terraform

import (
	"context"
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// stateValues is the state of attributes, those of an object of type t, as the server's
// document has them.
// prior is what the state, or the plan, had: where both mean the same, the prior
// spelling stays (an empty list where the server has none, the digits of a
// number, the time zone of a moment), so that the next plan is empty. Attributes
// the API does not know (local) keep their prior value; write-only ones are never
// in state.
func stateValues(ctx context.Context, attributes map[string]schema.Attribute, t tftypes.Type, document map[string]any, prior map[string]tftypes.Value, local map[string]bool) (map[string]tftypes.Value, error) {
	object, ok := t.(tftypes.Object)
	if !ok {
		return nil, fmt.Errorf("%s has no attributes", t)
	}
	values := make(map[string]tftypes.Value, len(attributes))
	for name, attribute := range attributes {
		t := object.AttributeTypes[name]
		before, hasBefore := prior[name]
		if !hasBefore || !before.IsKnown() {
			before = tftypes.NewValue(t, nil)
		}
		if local[name] || isSecretVersion(attributes, name) {
			values[name] = before
			continue
		}
		if stored, ok := storedSecret(attributes, name, document); ok {
			value, err := Value(t, stored)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			values[name] = value
			continue
		}
		value, err := stateValue(ctx, attribute, t, document[name], before)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values[name] = value
	}
	return values, nil
}

func stateValue(ctx context.Context, attribute schema.Attribute, t tftypes.Type, document any, prior tftypes.Value) (tftypes.Value, error) {
	if attribute.IsWriteOnly() {
		return tftypes.NewValue(t, nil), nil
	}
	if document == nil {
		if value, ok, err := defaultOf(ctx, attribute); ok || err != nil {
			return value, err
		}
		if isEmpty(prior) {
			return prior, nil
		}
		return tftypes.NewValue(t, nil), nil
	}
	switch nested, in := inside(attribute); in {
	case inObject:
		return nestedValue(ctx, nested, t, document, prior)
	case inSet:
		return setValue(ctx, nested, t, document, prior)
	case inList:
		list, ok := document.([]any)
		if !ok {
			return tftypes.Value{}, fmt.Errorf("%T is not a list", document)
		}
		before := ElementsOf(prior)
		elements := make([]tftypes.Value, len(list))
		for i, item := range list {
			elementType := elementTypeOf(t)
			element := tftypes.NewValue(elementType, nil)
			if i < len(before) {
				element = before[i]
			}
			value, err := nestedValue(ctx, nested, elementType, item, element)
			if err != nil {
				return tftypes.Value{}, fmt.Errorf("%d: %w", i, err)
			}
			elements[i] = value
		}
		return tftypes.NewValue(t, elements), nil
	case inNothing:
	}
	value, err := Value(t, document)
	if err != nil {
		return value, err
	}
	if isInstant(attribute) && sameMoment(TextOf(value), TextOf(prior)) {
		return prior, nil
	}
	if holdsFloats(attribute.GetType()) {
		return keepSpelling(value, prior), nil
	}
	return value, nil
}

// holdsFloats reports whether a type consists of numbers that the API keeps as float64, or is a
// collection of such. Integers are kept exactly.
func holdsFloats(t attr.Type) bool {
	if collection, ok := t.(attr.TypeWithElementType); ok {
		return holdsFloats(collection.ElementType())
	}
	return t.Equal(types.Float64Type)
}

func nestedValue(ctx context.Context, attributes map[string]schema.Attribute, t tftypes.Type, document any, prior tftypes.Value) (tftypes.Value, error) {
	object, ok := document.(map[string]any)
	if !ok {
		return tftypes.Value{}, fmt.Errorf("%T is not an object", document)
	}
	values, err := stateValues(ctx, attributes, t, object, AttributesOf(prior), nil)
	if err != nil {
		return tftypes.Value{}, err
	}
	return tftypes.NewValue(t, values), nil
}

// setValue returns a set of objects. The order of the document does not matter: each element keeps
// the spelling of an equivalent prior element.
func setValue(ctx context.Context, attributes map[string]schema.Attribute, t tftypes.Type, document any, prior tftypes.Value) (tftypes.Value, error) {
	list, ok := document.([]any)
	if !ok {
		return tftypes.Value{}, fmt.Errorf("%T is not a list", document)
	}
	elementType := elementTypeOf(t)
	before := ElementsOf(prior)
	elements := make([]tftypes.Value, len(list))
	for i, item := range list {
		value, err := nestedValue(ctx, attributes, elementType, item, tftypes.NewValue(elementType, nil))
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%d: %w", i, err)
		}
		for _, old := range before {
			if spelled, err := nestedValue(ctx, attributes, elementType, item, old); err == nil && spelled.Equal(old) {
				value = old
				break
			}
		}
		elements[i] = value
	}
	return tftypes.NewValue(t, elements), nil
}

// isEmpty reports whether a known value is omitted in JSON: an empty collection or string, false,
// 0, or an object with only such values.
func isEmpty(v tftypes.Value) bool {
	if !v.IsKnown() || v.IsNull() {
		return false
	}
	switch {
	case v.Type().Is(tftypes.Object{}):
		for _, attribute := range AttributesOf(v) {
			if !attribute.IsNull() && !isEmpty(attribute) {
				return false
			}
		}
		return true
	case v.Type().Is(tftypes.List{}), v.Type().Is(tftypes.Set{}):
		return len(ElementsOf(v)) == 0
	case v.Type().Is(tftypes.Map{}):
		var elements map[string]tftypes.Value
		return v.As(&elements) == nil && len(elements) == 0
	case v.Type().Is(tftypes.String):
		return TextOf(v) == ""
	case v.Type().Is(tftypes.Bool):
		var yes bool
		return v.As(&yes) == nil && !yes
	case v.Type().Is(tftypes.Number):
		var number big.Float
		return v.As(&number) == nil && number.Sign() == 0
	}
	return false
}

// keepSpelling returns prior if it differs from value only in digits beyond the precision of
// float64.
func keepSpelling(value, prior tftypes.Value) tftypes.Value {
	if !prior.IsKnown() || prior.IsNull() || !value.Type().Equal(prior.Type()) {
		return value
	}
	switch {
	case value.Type().Is(tftypes.Number):
		var a, b big.Float
		if value.As(&a) != nil || prior.As(&b) != nil {
			return value
		}
		x, _ := a.Float64()
		if y, _ := b.Float64(); x == y {
			return prior
		}
	case value.Type().Is(tftypes.List{}):
		before := ElementsOf(prior)
		elements := ElementsOf(value)
		for i := range min(len(elements), len(before)) {
			elements[i] = keepSpelling(elements[i], before[i])
		}
		return tftypes.NewValue(value.Type(), elements)
	case value.Type().Is(tftypes.Map{}):
		var elements, before map[string]tftypes.Value
		if value.As(&elements) != nil || prior.As(&before) != nil {
			return value
		}
		for key, element := range elements {
			if old, ok := before[key]; ok {
				elements[key] = keepSpelling(element, old)
			}
		}
		return tftypes.NewValue(value.Type(), elements)
	}
	return value
}

// settle is the single rule by which a create or update sets the state: known planned values are
// kept as planned, unknown ones come from the server. Read always uses the server's values, so
// differences appear in the next plan and never as "inconsistent result after apply".
func settle(plan, server map[string]tftypes.Value) map[string]tftypes.Value {
	settled := make(map[string]tftypes.Value, len(plan))
	for name, planned := range plan {
		settled[name] = settleValue(planned, server[name])
	}
	return settled
}

func settleValue(planned, server tftypes.Value) tftypes.Value {
	switch {
	case planned.IsFullyKnown():
		return planned
	case planned.IsKnown() && planned.Type().Is(tftypes.Object{}):
		return tftypes.NewValue(planned.Type(), settle(AttributesOf(planned), AttributesOf(server)))
	case planned.IsKnown() && planned.Type().Is(tftypes.List{}):
		elements, stored := ElementsOf(planned), ElementsOf(server)
		if len(elements) != len(stored) {
			return server
		}
		for i := range elements {
			elements[i] = settleValue(elements[i], stored[i])
		}
		return tftypes.NewValue(planned.Type(), elements)
	}
	return server
}

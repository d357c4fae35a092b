package terraform

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The JSON of the API and the Terraform attributes have the same names and structure, so values are
// converted generically. Numbers keep their decimal text: through Go's float64, 0.1 would differ
// from the 0.1 of the configuration.

// numberPrecision is the precision with which Terraform parses numbers.
const numberPrecision = 512

// configDocument converts Terraform values to a JSON document and records what could not be
// converted.
type configDocument struct {
	// Unknown are the values that are known only after apply. In the document they are absent or,
	// in a list, set or map, null.
	Unknown []path.Path
	// Nulls are the null elements of lists, sets and maps, which would be empty in JSON.
	Nulls []path.Path
	// spell renames the fields of errors to the names used in the configuration; nil = they are the
	// same.
	spell func(api.FieldErrors) api.FieldErrors
}

// read returns the JSON of a value: nil, bool, string, json.Number, []any or map[string]any.
func (d *configDocument) read(v tftypes.Value, at path.Path) (any, error) {
	if !v.IsKnown() {
		d.Unknown = append(d.Unknown, at)
		return nil, nil
	}
	if v.IsNull() {
		return nil, nil
	}
	switch {
	case v.Type().Is(tftypes.String):
		var text string
		err := v.As(&text)
		return text, err
	case v.Type().Is(tftypes.Bool):
		var yes bool
		err := v.As(&yes)
		return yes, err
	case v.Type().Is(tftypes.Number):
		var number big.Float
		err := v.As(&number)
		return NumberText(&number), err
	case v.Type().Is(tftypes.Object{}):
		return d.readObject(v, at)
	case v.Type().Is(tftypes.Map{}):
		return d.readMap(v, at)
	case v.Type().Is(tftypes.List{}), v.Type().Is(tftypes.Set{}):
		return d.readList(v, at)
	}
	return nil, fmt.Errorf("%s: values of type %s have no JSON form", at, v.Type())
}

func (d *configDocument) readObject(v tftypes.Value, at path.Path) (any, error) {
	var attributes map[string]tftypes.Value
	if err := v.As(&attributes); err != nil {
		return nil, err
	}
	object := make(map[string]any, len(attributes))
	for name, attribute := range attributes {
		value, err := d.read(attribute, at.AtName(name))
		if err != nil {
			return nil, err
		}
		if value != nil {
			object[name] = value
		}
	}
	return object, nil
}

func (d *configDocument) readMap(v tftypes.Value, at path.Path) (any, error) {
	var elements map[string]tftypes.Value
	if err := v.As(&elements); err != nil {
		return nil, err
	}
	object := make(map[string]any, len(elements))
	for key, element := range elements {
		value, err := d.readElement(element, at.AtMapKey(key))
		if err != nil {
			return nil, err
		}
		object[key] = value
	}
	return object, nil
}

// readList converts a list or a set; the API has lists for both.
func (d *configDocument) readList(v tftypes.Value, at path.Path) (any, error) {
	var elements []tftypes.Value
	if err := v.As(&elements); err != nil {
		return nil, err
	}
	list := make([]any, len(elements))
	for i, element := range elements {
		value, err := d.readElement(element, atElement(v.Type(), at, i))
		if err != nil {
			return nil, err
		}
		if object, ok := value.(map[string]any); ok {
			tellApart(element, object, i)
		}
		list[i] = value
	}
	return list, nil
}

// tellApart replaces the unknown strings of a list element by unique values, so that they do not
// look like duplicates. If validation rejects such a value, its path is among the unknown ones.
func tellApart(element tftypes.Value, object map[string]any, position int) {
	for name, attribute := range AttributesOf(element) {
		if !attribute.IsKnown() && attribute.Type().Is(tftypes.String) {
			object[name] = fmt.Sprintf("(known after apply: %d)", position)
		}
	}
}

func (d *configDocument) readElement(v tftypes.Value, at path.Path) (any, error) {
	if v.IsKnown() && v.IsNull() {
		d.Nulls = append(d.Nulls, at)
	}
	return d.read(v, at)
}

// NumberText formats integers in full, because the API does not accept exponents for integers, and
// other numbers as the shortest float64.
func NumberText(number *big.Float) json.Number {
	if number.IsInt() && number.MantExp(nil) <= 64 {
		return json.Number(number.Text('f', 0))
	}
	f, _ := number.Float64()
	if math.IsInf(f, 0) {
		return json.Number(number.Text('g', 20)) // rejected as too large when it is parsed
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

// Value converts JSON to a value of a type: absent values become null, and fields that the type
// does not have are dropped.
func Value(t tftypes.Type, document any) (tftypes.Value, error) {
	return documentValue(t, document, nullValue)
}

// answerValue is Value for computed values: absent lists and maps become empty, because Terraform
// cannot iterate over null.
func answerValue(t tftypes.Type, document any) (tftypes.Value, error) {
	return documentValue(t, document, emptyValue)
}

func nullValue(t tftypes.Type) tftypes.Value { return tftypes.NewValue(t, nil) }

func emptyValue(t tftypes.Type) tftypes.Value {
	switch {
	case t.Is(tftypes.List{}), t.Is(tftypes.Set{}):
		return tftypes.NewValue(t, []tftypes.Value{})
	case t.Is(tftypes.Map{}):
		return tftypes.NewValue(t, map[string]tftypes.Value{})
	}
	return nullValue(t)
}

func documentValue(t tftypes.Type, document any, absent func(tftypes.Type) tftypes.Value) (tftypes.Value, error) {
	if document == nil {
		return absent(t), nil
	}
	switch {
	case t.Is(tftypes.Object{}):
		object, ok := document.(map[string]any)
		if !ok {
			break
		}
		attributeTypes := t.(tftypes.Object).AttributeTypes //nolint:forcetypeassert // checked by Is
		attributes := make(map[string]tftypes.Value, len(attributeTypes))
		for name, attributeType := range attributeTypes {
			value, err := documentValue(attributeType, object[name], absent)
			if err != nil {
				return value, fmt.Errorf("%s: %w", name, err)
			}
			attributes[name] = value
		}
		return tftypes.NewValue(t, attributes), nil
	case t.Is(tftypes.Map{}):
		object, ok := document.(map[string]any)
		if !ok {
			break
		}
		elements := make(map[string]tftypes.Value, len(object))
		for key, element := range object {
			value, err := documentValue(t.(tftypes.Map).ElementType, element, absent) //nolint:forcetypeassert // checked by Is
			if err != nil {
				return value, fmt.Errorf("%s: %w", key, err)
			}
			elements[key] = value
		}
		return tftypes.NewValue(t, elements), nil
	case t.Is(tftypes.List{}), t.Is(tftypes.Set{}):
		list, ok := document.([]any)
		if !ok {
			break
		}
		elements := make([]tftypes.Value, len(list))
		for i, element := range list {
			value, err := documentValue(elementTypeOf(t), element, absent)
			if err != nil {
				return value, fmt.Errorf("%d: %w", i, err)
			}
			elements[i] = value
		}
		return tftypes.NewValue(t, elements), nil
	case t.Is(tftypes.Number):
		text, ok := document.(json.Number)
		if !ok {
			break
		}
		number, _, err := big.ParseFloat(text.String(), 10, numberPrecision, big.ToNearestEven)
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%q is not a number: %w", text, err)
		}
		if number.IsInf() {
			return tftypes.Value{}, fmt.Errorf("%q is too large a number", text)
		}
		return tftypes.NewValue(t, number), nil
	case t.Is(tftypes.String):
		if text, ok := document.(string); ok {
			return tftypes.NewValue(t, text), nil
		}
	case t.Is(tftypes.Bool):
		if yes, ok := document.(bool); ok {
			return tftypes.NewValue(t, yes), nil
		}
	}
	return tftypes.Value{}, fmt.Errorf("%T does not fit %s", document, t)
}

// elementTypeOf returns the element type of a list or set.
func elementTypeOf(t tftypes.Type) tftypes.Type {
	switch t := t.(type) {
	case tftypes.List:
		return t.ElementType
	case tftypes.Set:
		return t.ElementType
	}
	return tftypes.DynamicPseudoType
}

// AttributesOf returns the attributes of an object; none if it is null or unknown.
func AttributesOf(v tftypes.Value) map[string]tftypes.Value {
	var attributes map[string]tftypes.Value
	if v.IsKnown() && !v.IsNull() && v.Type().Is(tftypes.Object{}) {
		_ = v.As(&attributes) // cannot fail for an object
	}
	return attributes
}

// ElementsOf returns the elements of a list or set; none if it is null or unknown.
func ElementsOf(v tftypes.Value) []tftypes.Value {
	var elements []tftypes.Value
	if v.IsKnown() && !v.IsNull() && (v.Type().Is(tftypes.List{}) || v.Type().Is(tftypes.Set{})) {
		_ = v.As(&elements) // cannot fail for a list or a set
	}
	return elements
}

// TextOf returns the string of an attribute, or "" if it is null or unknown.
func TextOf(v tftypes.Value) string {
	var text string
	if v.IsKnown() && !v.IsNull() && v.Type().Is(tftypes.String) {
		_ = v.As(&text) // cannot fail for a string
	}
	return text
}

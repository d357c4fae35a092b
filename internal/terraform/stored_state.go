package terraform

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// upgrade returns a stored state unchanged, or nil if it does not match the current schema. It is
// returned as JSON: converting it to MessagePack would cost more than everything else in a plan
// without changes, and Terraform accepts both.
func (r *directResource) upgrade(req *tfprotov6.UpgradeResourceStateRequest) *tfprotov6.UpgradeResourceStateResponse {
	if req.RawState == nil || req.Version != r.schema.Version {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(req.RawState.JSON))
	decoder.UseNumber()
	var state map[string]any
	if decoder.Decode(&state) != nil || state == nil || !isObject(state, r.valueType.AttributeTypes) {
		return nil
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &tfprotov6.DynamicValue{JSON: req.RawState.JSON}}
}

// isValue reports whether Terraform decodes a JSON document as a value of a type in the same way as
// the framework.
func isValue(document any, t tftypes.Type) bool {
	if document == nil {
		return !t.Is(tftypes.DynamicPseudoType)
	}
	switch t := t.(type) {
	case tftypes.Object:
		attributes, ok := document.(map[string]any)
		return ok && isObject(attributes, t.AttributeTypes)
	case tftypes.Map:
		elements, ok := document.(map[string]any)
		for _, element := range elements {
			ok = ok && isValue(element, t.ElementType)
		}
		return ok
	case tftypes.List:
		return isCollection(document, t.ElementType)
	case tftypes.Set:
		return isCollection(document, t.ElementType)
	}
	switch document := document.(type) {
	case string:
		return t.Is(tftypes.String)
	case bool:
		return t.Is(tftypes.Bool)
	case json.Number: // Terraform does not write exponents
		return t.Is(tftypes.Number) && !strings.ContainsAny(string(document), "eE")
	}
	return false
}

// isObject is isValue for the attributes of an object.
func isObject(attributes map[string]any, types map[string]tftypes.Type) bool {
	for name, attribute := range attributes {
		if t := types[name]; t == nil || !isValue(attribute, t) {
			return false
		}
	}
	return true
}

// isCollection is isValue for the elements of a list or set.
func isCollection(document any, t tftypes.Type) bool {
	elements, ok := document.([]any)
	for _, element := range elements {
		ok = ok && isValue(element, t)
	}
	return ok
}

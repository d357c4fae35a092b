package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// adapt changes what is sent to a server that knows other fields than this program: those that it
// does not know are left out, and those that only it knows keep their values.
func (c *Client) adapt(ctx context.Context, object api.Object, body []byte, opts PutOptions) ([]byte, error) {
	key := api.KeyOf(object)
	document, err := decodeMap(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	for _, field := range opts.LeaveOut {
		api.EachPlace(document, field, func(in map[string]any, name, _ string) { delete(in, name) })
	}
	if opts.CarryOver {
		present, err := c.answer(ctx, &call{method: http.MethodGet, path: key.URLPath(), repeatable: true})
		if err != nil && !IsNotFound(err) {
			return nil, err
		}
		if err == nil {
			shown, err := decodeMap(present)
			if err == nil {
				err = carryOver(reflect.TypeOf(object.SpecPart()), shown["spec"], document["spec"], "spec")
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return json.Marshal(document)
}

func decodeMap(data []byte) (map[string]any, error) {
	decoded, err := api.DecodeDocument(data)
	if err != nil {
		return nil, err
	}
	document, ok := decoded.(map[string]any)
	if !ok {
		return nil, errors.New("its JSON is not an object")
	}
	return document, nil
}

// carryOver adds the fields that a type does not have from one document to another of this type. An
// element of a list is found again by what the type has of it.
func carryOver(t reflect.Type, from, to any, at string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch from := from.(type) {
	case map[string]any:
		to, ok := to.(map[string]any)
		if !ok {
			return nil // it is removed, or of another type
		}
		for name, value := range from {
			inner, known := member(t, name)
			_, given := to[name]
			switch {
			case given && known:
				if err := carryOver(inner, value, to[name], at+"."+name); err != nil {
					return err
				}
			case !known && value != nil:
				to[name] = value
			}
		}
	case []any:
		elements, _ := to.([]any)
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, element := range from {
			known := onlyKnown(t.Elem(), element)
			if reflect.DeepEqual(known, element) {
				continue
			}
			same := slices.IndexFunc(elements, func(other any) bool { return reflect.DeepEqual(onlyKnown(t.Elem(), other), known) })
			if same < 0 {
				return fmt.Errorf("%s[%d] has fields that this version does not know and would delete: a newer one is needed to change or remove it", at, i)
			}
			if err := carryOver(t.Elem(), element, elements[same], fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// member returns the type of a field of a struct, or of a value of a map. Whatever is in other types
// is known.
func member(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	if t.Kind() != reflect.Struct {
		return t, true
	}
	for _, field := range api.Fields(t) {
		if field.Name == name {
			return field.Type, true
		}
	}
	return nil, false
}

// onlyKnown returns what a type has of a document.
func onlyKnown(t reflect.Type, in any) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch in := in.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range in {
			if inner, known := member(t, name); known {
				out[name] = onlyKnown(inner, value)
			}
		}
		return out
	case []any:
		if t.Kind() != reflect.Slice {
			return in
		}
		out := make([]any, len(in))
		for i, element := range in {
			out[i] = onlyKnown(t.Elem(), element)
		}
		return out
	}
	return in
}

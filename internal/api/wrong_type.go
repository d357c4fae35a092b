package api

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wrongType describes a JSON value of the wrong type: what is expected, and what was given.
func wrongType(err *json.SemanticError) string {
	return fmt.Sprintf("must be %s, not %s", wanted(err.GoType), given(err.JSONKind))
}

const aTime = `a time in quotes, such as "2026-01-31T12:00:00Z"`

// wanted describes the JSON type that a field takes.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[Duration]():
		return `a duration in quotes, such as "60s"`
	case reflect.TypeFor[Quantity]():
		return `a quantity in quotes, such as "4", "1500m" or "64Gi"`
	case reflect.TypeFor[time.Time]():
		return aTime
	case reflect.TypeFor[Secret]():
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "an object"
	}
}

// given describes the type of a JSON value.
func given(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "a list"
	default:
		return "an object"
	}
}

package terraform

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

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

// elementType returns the type of the elements of a list or map, or nil. whole is the type to use
// for integers.
func elementType(t reflect.Type, whole attr.Type) attr.Type {
	switch s, _ := shapeOf(t); s { //nolint:exhaustive // there are no lists or maps of other types
	case shapeDecimal:
		return types.Float64Type
	case shapeWhole:
		return whole
	case shapeText:
		return types.StringType
	}
	return nil
}

func element(t reflect.Type) reflect.Type {
	e := t.Elem()
	for e.Kind() == reflect.Pointer {
		e = e.Elem()
	}
	return e
}

package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Field is a field of a case that records whether it was read. A driver declares its cases as structs of fields, at
// every depth, so that a field that is decoded and then ignored is detected.
type Field[V any] struct{ *cell[V] }

// cell is shared by the copies of a field.
type cell[V any] struct {
	value V
	read  bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Field[V]) UnmarshalJSON(data []byte) error {
	f.cell = &cell[V]{}
	return Decode(data, &f.value)
}

// Get reads the field. It is zero if the case does not have it.
func (f Field[V]) Get() V {
	if f.cell == nil {
		var none V
		return none
	}
	f.read = true
	return f.value
}

// Has returns whether the case has the field. This does not count as reading its value.
func (f Field[V]) Has() bool { return f.cell != nil }

func (f Field[V]) content() (value any, present, read bool) {
	if f.cell == nil {
		return nil, false, false
	}
	return f.value, true, f.read
}

type tracked interface {
	content() (value any, present, read bool)
}

// unread returns the paths of the fields in a decoded input that the case has and the driver did not read. A struct
// with members that are not fields is a mistake in the driver, which could ignore them undetected.
func unread(path string, v reflect.Value) []string {
	if v.IsValid() && v.CanInterface() {
		if field, ok := v.Interface().(tracked); ok {
			value, present, read := field.content()
			switch {
			case !present:
				return nil
			case !read:
				return []string{path + " is not read"}
			}
			return unread(path, reflect.ValueOf(value))
		}
	}
	if v.IsValid() && reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil // it records reads itself
	}
	var out []string
	switch v.Kind() { //nolint:exhaustive // other kinds contain no fields
	case reflect.Pointer, reflect.Interface:
		return unread(path, v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			out = append(out, unread(fmt.Sprintf("%s/%d", path, i), v.Index(i))...)
		}
	case reflect.Map:
		keys := map[string]reflect.Value{}
		for _, key := range v.MapKeys() {
			keys[fmt.Sprint(key)] = v.MapIndex(key)
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			out = append(out, unread(path+"/"+key, keys[key])...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				name = field.Name
			}
			if !field.Type.Implements(reflect.TypeFor[tracked]()) {
				out = append(out, fmt.Sprintf("%s/%s is no Field: nobody knows whether it is read", path, name))
				continue
			}
			out = append(out, unread(path+"/"+name, v.Field(i))...)
		}
	}
	return out
}

// Pair is a list of exactly two elements.
type Pair[V any] [2]V

// UnmarshalJSON implements json.Unmarshaler.
func (p *Pair[V]) UnmarshalJSON(data []byte) error {
	var list []V
	if err := Decode(data, &list); err != nil {
		return err
	}
	if len(list) != len(p) {
		return fmt.Errorf("%s is no pair", data)
	}
	*p = Pair[V](list)
	return nil
}

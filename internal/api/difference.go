package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Difference is a field that differs between two versions of a part of an object.
type Difference struct {
	Field    string // such as "replicas", or "labels.tier"
	Old, New string
}

// FirstDifference returns the first field, in the order of the documentation, in which two structs
// of one type differ. ok is false if they are equal. Secrets are not shown.
func FirstDifference(before, after any) (d Difference, ok bool) {
	return firstDifference("", reflect.Indirect(reflect.ValueOf(before)), reflect.Indirect(reflect.ValueOf(after)))
}

func firstDifference(at string, before, after reflect.Value) (d Difference, ok bool) {
	if before.IsValid() && after.IsValid() && before.Type() == after.Type() {
		if reflect.DeepEqual(before.Interface(), after.Interface()) {
			return Difference{}, false
		}
		switch before.Kind() {
		case reflect.Pointer:
			if !before.IsNil() && !after.IsNil() {
				return firstDifference(at, before.Elem(), after.Elem())
			}
		case reflect.Struct:
			if fields := fieldsWithin(before.Type()); fields != nil {
				return firstFieldDifference(at, fields, before, after)
			}
		case reflect.Map:
			return firstKeyDifference(at, before, after), true
		default:
		}
	}
	d = Difference{at, shownValue(before), shownValue(after)}
	return d, true
}

// fieldsWithin returns the fields of a type by their names in JSON; nil if it has a form of its own.
func fieldsWithin(t reflect.Type) []reflect.StructField {
	if t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	return reflect.VisibleFields(t)
}

func firstFieldDifference(at string, fields []reflect.StructField, before, after reflect.Value) (Difference, bool) {
	for _, field := range fields {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" || len(field.Index) > 1 {
			continue
		}
		if d, ok := firstDifference(joinField(at, name), before.FieldByIndex(field.Index), after.FieldByIndex(field.Index)); ok {
			return d, true
		}
	}
	return Difference{}, false
}

func firstKeyDifference(at string, before, after reflect.Value) Difference {
	keys := map[string]reflect.Value{}
	for _, m := range [...]reflect.Value{before, after} {
		for _, key := range m.MapKeys() {
			keys[fmt.Sprint(key)] = key
		}
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		old, is := before.MapIndex(keys[name]), after.MapIndex(keys[name])
		if old.IsValid() && is.IsValid() && reflect.DeepEqual(old.Interface(), is.Interface()) {
			continue
		}
		return Difference{joinField(at, name), shownValue(old), shownValue(is)}
	}
	return Difference{Field: at}
}

func joinField(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// maxShownValue is the number of bytes of a value that a difference shows.
const maxShownValue = 256

// shownValue returns a value as text: a string as it is, everything else as JSON.
func shownValue(v reflect.Value) string {
	if !v.IsValid() {
		return ""
	}
	v = reflect.Indirect(v)
	if !v.IsValid() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return ""
	}
	if _, secret := v.Interface().(Secret); secret {
		return ""
	}
	if v.Kind() == reflect.String {
		return ShortValue(v.String())
	}
	text, err := json.Marshal(v.Interface()) // a secret within is withheld
	if err != nil {
		return ""
	}
	return ShortValue(string(text))
}

// ShortValue returns a value as far as a cause shows it.
func ShortValue(text string) string {
	if len(text) <= maxShownValue {
		return text
	}
	end := maxShownValue
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

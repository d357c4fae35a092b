package api

import (
	"reflect"
	"strings"
)

// SecretField is a field that holds a secret, or a map of secrets by name.
type SecretField struct {
	Field string // path in the document: spec.bearer_token
	Map   bool
}

// SecretFields lists the secret fields of a kind.
func SecretFields(kind Kind) []SecretField {
	info, ok := LookupKind(kind)
	if !ok {
		return nil
	}
	return secretFields(reflect.TypeOf(info.New().SpecPart()), "spec", nil)
}

// secretFields finds the secrets in a type. Secrets inside lists are not supported, and there are
// none.
func secretFields(t reflect.Type, at string, found []SecretField) []SecretField {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[Secret]():
		return append(found, SecretField{Field: at})
	case t == reflect.TypeFor[map[string]Secret]():
		return append(found, SecretField{Field: at, Map: true})
	case t.Kind() != reflect.Struct:
		return found
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			found = secretFields(field.Type, at, found)
		case field.IsExported() && name != "" && name != "-":
			found = secretFields(field.Type, at+"."+name, found)
		}
	}
	return found
}

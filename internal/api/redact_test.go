package api

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const marker = "s3cr3tmarker"

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		`parse "https://user:pw@host/x": bad`:      `parse "https://…@host/x": bad`,
		`http://a:b@c@host`:                        `http://…@host`,
		`https://host/x?a=1&access_token=abc#f`:    `https://host/x?a=1&access_token=…#f`,
		`https://host/?api_key=abc&x=1`:            `https://host/?api_key=…&x=1`,
		`Authorization: Bearer abc.def-123`:        `Authorization: Bearer …`,
		`basic dXNlcjpwYXNzd29yZA==`:               `basic …`,
		`send Authorization: Bearer <token>`:       `send Authorization: Bearer <token>`,
		`a bearer token is required`:               `a bearer token is required`,
		`write to me@example.com, see http://host`: `write to me@example.com, see http://host`,
		`zone = eu-west`:                           `zone = eu-west`,
	} {
		if got := Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

// texts finds the strings and map keys in a value, with their paths in the document. set replaces
// one of them in place.
func texts(v reflect.Value, at string, found func(at string, set func(text string))) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		texts(v.Elem(), at, found)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Secret]() {
			found(at, func(text string) { v.Set(reflect.ValueOf(NewSecret(text))) })
			return
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.IsExported() && v.Type().PkgPath() == reflect.TypeFor[Cluster]().PkgPath() {
				texts(v.Field(i), at+"."+name, found)
			}
		}
	case reflect.String:
		found(at, v.SetString)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		texts(v.Index(0), at+"[0]", found)
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return
		}
		found(at+".name", func(text string) {
			m := reflect.MakeMap(v.Type())
			m.SetMapIndex(reflect.ValueOf(text).Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
			v.Set(m)
		})
		if elem := v.Type().Elem(); elem.Kind() == reflect.String || elem == reflect.TypeFor[Secret]() {
			found(at+".value", func(text string) {
				m, value := reflect.MakeMap(v.Type()), reflect.New(elem).Elem()
				if elem.Kind() == reflect.String {
					value.SetString(text)
				} else {
					value.Set(reflect.ValueOf(NewSecret(text)))
				}
				m.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), value)
				v.Set(m)
			})
		}
	default: // contains no text
	}
}

// sensitive reports whether the name of a field suggests that it holds a secret, so that its value must not be
// repeated.
func sensitive(at string) bool {
	for _, word := range []string{"url", "token", "kubeconfig", "password", "secret", "cert", "headers.", "headers[", "credential", "insecure"} {
		if strings.Contains(at, word) {
			return true
		}
	}
	return false
}

// A secret in the wrong field, of any kind, is not repeated in errors.
func TestMisplacedSecretsAreNotRepeated(t *testing.T) {
	shapes := []string{
		"https://user:" + marker + "@host/\x7f", "https://user:" + marker + "@host:99999", "https://host/%zz?token=" + marker, "Bearer " + marker + "\n",
	}
	for _, info := range Kinds {
		var fields []string
		texts(reflect.ValueOf(info.New().SpecPart()), "spec", func(at string, _ func(string)) { fields = append(fields, at) })
		for _, field := range fields {
			tried := shapes
			if sensitive(field) {
				tried = append(tried[:len(tried):len(tried)], marker, marker+" \n", "ftp://"+marker, "https://"+marker+":port", marker+":"+marker)
			}
			for _, text := range tried {
				object := info.New()
				object.Meta().Name, object.Meta().Namespace = "x", "y"
				texts(reflect.ValueOf(object.SpecPart()), "spec", func(at string, set func(string)) {
					if at == field {
						set(text)
					}
				})
				if strings.HasPrefix(text, "Bearer") && (strings.Contains(field, "_constraints[") || strings.Contains(field, ".cel[")) {
					continue // errors about expressions quote the word at which parsing stops
				}
				err := object.Validate().Err()
				if err != nil && strings.Contains(err.Error(), marker) {
					t.Errorf("%s: the error about %s contains %q: %s", info.Kind, field, text, around(err.Error()))
				}
				// The same applies if the field has another type.
				document := fmt.Sprintf(`{"kind":%q,"metadata":{"name":"x"},"spec":{"unknown":%q}}`, info.Kind, text)
				if _, err := Decode([]byte(document)); err == nil || strings.Contains(err.Error(), marker) {
					t.Errorf("%s: error about an unknown field: %v", info.Kind, err)
				}
			}
		}
		if len(fields) == 0 && info.Kind != KindClusterSet {
			t.Errorf("%s has no text fields", info.Kind)
		}
	}
	var errs FieldErrors
	errs.Add("x", "%s", errors.New("Bearer "+marker))
	if strings.Contains(errs.Error(), marker) {
		t.Error(errs)
	}
}

// around returns the part of a text around the marker.
func around(text string) string {
	i := strings.Index(text, marker)
	return text[max(i-80, 0):min(i+80, len(text))]
}

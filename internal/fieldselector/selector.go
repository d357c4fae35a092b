// Package fieldselector selects objects by the values of their fields, in the syntax of Kubernetes:
// spec.region=eu,status.state!=Online.
package fieldselector

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// maxTerms limits what is compared for each object.
const maxTerms = 20

// Selector is a list of terms, all of which must hold. Without terms, it selects every object.
type Selector []term

// term compares a field. A field in a list has the values that it has in the elements, and = asks
// whether one of them is the value. What is absent is an empty text, as in Kubernetes.
type term struct {
	path [][]int // the indexes of the fields that lead to it
	// condition is the type of the condition whose status is compared. The path leads to the
	// conditions then. "" = none.
	condition string
	value     string
	differs   bool
}

// Parse reads a selector for the objects of a kind. The fields are those of metadata, spec and status
// that have a text, a number, a time, or true or false. After status.conditions, the type of a
// condition stands for its status: status.conditions.Ready=False.
func Parse(text string, info api.KindInfo) (Selector, error) {
	parsed, err := fields.ParseAndTransformSelector(text, func(field, value string) (string, string, error) {
		if field == "" { // for the parser, that is no term if the value is empty, too
			return "", "", errors.New("the name of the field is missing")
		}
		return field, value, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: write field=value or field!=value, separated by commas", err)
	}
	requirements := parsed.Requirements()
	if len(requirements) > maxTerms {
		return nil, fmt.Errorf("must have at most %d terms, has %d", maxTerms, len(requirements))
	}
	var s Selector
	for _, r := range requirements {
		t := term{value: r.Value, differs: r.Operator == selection.NotEquals}
		if err := t.lead(strings.TrimSpace(r.Field), info); err != nil {
			return nil, err
		}
		s = append(s, t)
	}
	return s, nil
}

var conditionType = reflect.TypeFor[api.Condition]()

// lead finds a field by the names in the JSON of an object.
func (t *term) lead(field string, info api.KindInfo) error {
	at, owner := element(reflect.TypeOf(info.New())), "a "+string(info.Kind)
	names := strings.Split(field, ".")
	for i, name := range names {
		inside := selectable(at)
		next := slices.IndexFunc(inside, func(f api.Field) bool { return f.Name == name })
		switch {
		case next >= 0:
			t.path, at = append(t.path, inside[next].Index), element(inside[next].Type)
		case at == conditionType && name != "" && name[0] >= 'A' && name[0] <= 'Z':
			t.condition, at = name, reflect.TypeFor[api.ConditionStatus]()
		default:
			return unknown(field, owner, at)
		}
		owner = strings.Join(names[:i+1], ".")
	}
	if !scalar(at) {
		return unknown(field, owner, at)
	}
	return nil
}

// unknown says what can be selected in a type where a field is not.
func unknown(field, owner string, in reflect.Type) error {
	var names []string
	for _, f := range selectable(in) {
		names = append(names, f.Name)
	}
	switch {
	case len(names) == 0:
		names = []string{"no fields"}
	case in == conditionType:
		names = append(names, "and types of conditions, such as Ready")
	}
	return fmt.Errorf("%q is not a field to select by: %s has %s", field, owner, strings.Join(names, ", "))
}

// selectable are the fields of a struct that are, or contain, what can be compared. Secrets and what is
// in maps are not.
func selectable(t reflect.Type) []api.Field {
	if t.Kind() != reflect.Struct {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(api.Fields(t)), func(f api.Field) bool {
		inner := element(f.Type)
		return !scalar(inner) && len(selectable(inner)) == 0
	})
}

// element is the type itself, or that of the elements of a list.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

func scalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	default:
		return t == reflect.TypeFor[time.Time]()
	}
}

// Matches reports whether an object is selected. To readers who may not see all of it, it must be given
// as they see it: otherwise they learn from the selection what is left out.
func (s Selector) Matches(object api.Object) bool {
	for i := range s {
		if s[i].is(reflect.ValueOf(object), s[i].path) == s[i].differs {
			return false
		}
	}
	return true
}

// is reports whether a field that a path leads to has the value.
func (t *term) is(v reflect.Value, path [][]int) bool {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return t.value == ""
		}
		return t.is(v.Elem(), path)
	case reflect.Slice:
		if v.Len() == 0 {
			return t.value == ""
		}
		if list, ok := v.Interface().([]api.Condition); ok && t.condition != "" {
			c := api.FindCondition(list, t.condition)
			return c == nil && t.value == "" || c != nil && string(c.Status) == t.value
		}
		for i := range v.Len() {
			if t.is(v.Index(i), path) {
				return true
			}
		}
		return false
	default:
		if len(path) > 0 {
			return t.is(v.FieldByIndex(path[0]), path[1:])
		}
		return text(v) == t.value
	}
}

// text is a value as JSON has it, without quotes.
func text(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	encoded, err := json.Marshal(v.Interface())
	if err != nil {
		return "" // numbers that JSON does not have, in no object
	}
	return strings.Trim(string(encoded), `"`)
}

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rules are the rules given by the tags of a struct. Fields without rules are left out.
type rules []rule

// rule is the rule of one field. It is computed once per type, because objects are read, written
// and stored by the thousand.
type rule struct {
	*Field
	// value is the default, copied into each object. It is invalid if there is none, or if it
	// equals the zero value.
	value reflect.Value
	// on is the index of the field that the default depends on; cases are the defaults of
	// DefaultBy.
	on    []int
	cases []reflect.Value
	// wrong describes why a value is invalid, or returns "". It is nil if every value is valid. For
	// a map, it applies to the values.
	wrong func(v reflect.Value) string
	below rules // of the structs in the field
}

// quantities is the type of maps whose keys are resource names.
var quantities = reflect.TypeFor[Quantities]()

// rulesOf returns the rules of the fields of a struct, and an error for invalid tags.
func rulesOf(fields []Field) (rules, error) {
	var out rules
	var mistakes error
	for i := range fields {
		f := &fields[i]
		r := rule{Field: f, wrong: f.check()}
		parse := func(text string) reflect.Value {
			value, err := parseDefault(f.Type, text)
			if err != nil {
				mistakes = errors.Join(mistakes, fmt.Errorf("the default of %s.%s: %w", f.Of, f.Name, err))
			}
			return value
		}
		if f.Default != "" {
			r.value = parse(f.Default)
		}
		if by := f.DefaultBy; by != nil {
			beside := slices.IndexFunc(fields, func(other Field) bool { return other.Name == by.On && other.Type.Kind() == reflect.String })
			if beside < 0 {
				mistakes = errors.Join(mistakes, fmt.Errorf("the default of %s.%s: %s is not a text field next to it", f.Of, f.Name, by.On))
			} else {
				r.on = fields[beside].Index
				for _, c := range by.Cases {
					r.cases = append(r.cases, parse(c.Value))
				}
			}
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			below := structureOf(inner)
			r.below, mistakes = below.rules, errors.Join(mistakes, below.mistakes)
		}
		if r.value.IsValid() || r.cases != nil || r.wrong != nil || r.below != nil {
			out = append(out, r)
		}
	}
	return out, mistakes
}

// parseDefault parses the default in a tag. The result is invalid if it equals the zero value.
func parseDefault(t reflect.Type, text string) (reflect.Value, error) {
	value := reflect.New(t)
	data := []byte(text)
	if scalarKind(t) == reflect.String {
		data, _ = json.Marshal(text) // cannot fail for a string
	}
	if err := json.Unmarshal(data, value.Interface()); err != nil {
		return reflect.Value{}, fmt.Errorf("%q is not a valid %s: %w", text, t, err)
	}
	if value.Elem().IsZero() {
		return reflect.Value{}, nil
	}
	return value.Elem(), nil
}

// setDefaults sets absent fields of the struct at part to their defaults. Data that the struct
// shares with a copy is copied first.
func setDefaults(part any) {
	v := reflect.ValueOf(part).Elem()
	structureOf(v.Type()).rules.fill(v)
}

// fill sets the defaults of the structs in a field, which must not be shared.
func (rs rules) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			rs.fill(v.Elem())
		}
		return
	case reflect.Slice:
		for i := range v.Len() {
			rs.fill(v.Index(i))
		}
		return
	default: // a struct
	}
	for i := range rs {
		r := &rs[i]
		field := v.FieldByIndex(r.Index)
		missing := r.missing(field, v)
		if missing.IsValid() {
			field.Set(ownCopy(missing))
		}
		if r.below != nil && r.below.lacking(field) {
			if !missing.IsValid() {
				field.Set(ownCopy(field))
			}
			r.below.fill(field)
		}
	}
}

// ownCopy copies a value as far as objects would share it.
func ownCopy(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(v.Elem())
		return own
	case reflect.Slice:
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		return own
	default: // nothing else is shared
		return v
	}
}

// lacking reports whether a struct in a field lacks a value that has a default.
func (rs rules) lacking(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && rs.lacking(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if rs.lacking(v.Index(i)) {
				return true
			}
		}
		return false
	default: // a struct
	}
	for i := range rs {
		r := &rs[i]
		field := v.FieldByIndex(r.Index)
		if r.missing(field, v).IsValid() || r.below != nil && r.below.lacking(field) {
			return true
		}
	}
	return false
}

// missing returns the default of a struct field. It is invalid if the field has a value or no
// default.
func (r *rule) missing(field, structure reflect.Value) reflect.Value {
	switch {
	case r.cases != nil && field.IsZero():
		if i := r.DefaultBy.caseOf(structure.FieldByIndex(r.on).String()); i >= 0 {
			return r.cases[i]
		}
	case r.value.IsValid() && field.IsZero():
		return r.value
	}
	return reflect.Value{}
}

// checkObject checks the rules that apply to all kinds: those of the metadata, and the tags of the
// spec.
func (e *FieldErrors) checkObject(o Object, scope Scope) {
	o.Meta().validate(scope, e)
	e.checkFields("spec", o.SpecPart())
}

// checkFields checks the fields of the struct at part against the values and bounds in their tags.
// Errors for map entries are unordered.
func (e *FieldErrors) checkFields(at string, part any) {
	v := reflect.ValueOf(part).Elem()
	before := len(*e)
	structureOf(v.Type()).rules.check(e, v)
	e.within(before, at)
}

// check checks the structs in a field. Paths in errors are relative to the field; the caller
// prefixes them, so that paths are built only if there are errors.
func (rs rules) check(errs *FieldErrors, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			rs.check(errs, v.Elem())
		}
		return
	case reflect.Slice:
		for i := range v.Len() {
			before := len(*errs)
			if rs.check(errs, v.Index(i)); len(*errs) > before {
				errs.within(before, index("", i))
			}
		}
		return
	default: // a struct
	}
	for i := range rs {
		r := &rs[i]
		if r.wrong == nil && r.below == nil {
			continue
		}
		field, before := v.FieldByIndex(r.Index), len(*errs)
		if r.wrong != nil {
			r.checkValue(errs, field)
		}
		if r.below != nil {
			r.below.check(errs, field)
		}
		errs.within(before, r.Name)
	}
}

// within prefixes the paths of the errors after the first before ones.
func (e FieldErrors) within(before int, at string) {
	for i := before; i < len(e); i++ {
		if strings.HasPrefix(e[i].Field, "[") {
			e[i].Field = at + e[i].Field
		} else {
			e[i].Field = under(at, e[i].Field)
		}
	}
}

func (r *rule) checkValue(errs *FieldErrors, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			r.checkValue(errs, v.Elem())
		}
	case reflect.Map:
		if v.Len() == 0 {
			return
		}
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		for entries := v.MapRange(); entries.Next(); {
			key.SetIterKey(entries)
			value.SetIterValue(entries)
			if message := r.wrong(value); message != "" {
				errs.Add("["+quote(key.String())+"]", "%s", message)
			}
			if r.Type != quantities {
				continue
			}
			if message := checkLabelKey(key.String()); message != "" {
				errs.Add("["+quote(key.String())+"]", "%s", message)
			}
		}
	default:
		errs.check("", r.wrong(v))
	}
}

// check returns a function that describes why a value of the field is invalid, or nil if every
// value is valid.
func (f *Field) check() func(v reflect.Value) string {
	switch {
	case f.Enum != nil:
		required := f.Required || f.Default != ""
		return func(v reflect.Value) string {
			if text := v.String(); text != "" || required {
				return oneOf(text, f.Enum...)
			}
			return ""
		}
	case f.Type == reflect.TypeFor[Duration]():
		return func(v reflect.Value) string { return Duration(v.String()).check(f.Shortest) }
	case f.Type == quantities:
		return func(v reflect.Value) string { return Quantity(v.String()).check() }
	case f.Type == quantities.Elem():
		return func(v reflect.Value) string {
			if v.String() == "" {
				return ""
			}
			return Quantity(v.String()).check()
		}
	case f.Absent != "":
		return func(v reflect.Value) string {
			if !v.IsNil() && v.Len() == 0 {
				return "must not be empty: omit it for " + f.Absent
			}
			return ""
		}
	case f.Minimum != nil || f.Maximum != nil:
		return f.checkBounds
	case f.MaxLength > 0:
		return func(v reflect.Value) string {
			if n := utf8.RuneCountInString(v.String()); n > f.MaxLength {
				return fmt.Sprintf("must have at most %d characters, has %d", f.MaxLength, n)
			}
			return ""
		}
	}
	return nil
}

// checkBounds describes why a number is out of bounds, or returns "".
func (f *Field) checkBounds(v reflect.Value) string {
	least, most := math.Inf(-1), math.Inf(1)
	if f.Minimum != nil {
		least = *f.Minimum
	}
	if f.Maximum != nil {
		most = *f.Maximum
	}
	n := 0.0
	if v.CanInt() {
		n = float64(v.Int())
	} else {
		n = v.Float()
	}
	switch {
	case n >= least && n <= most && !math.IsInf(n, 0):
		return ""
	case f.Maximum != nil && f.Minimum != nil:
		return fmt.Sprintf("%v must be from %s to %s", v, plain(least), plain(most))
	case f.Maximum != nil:
		return fmt.Sprintf("%v must be at most %s", v, plain(most))
	case v.CanFloat():
		return fmt.Sprintf("%v must be a finite number of at least %s", v, plain(least))
	}
	return fmt.Sprintf("%v must be at least %s", v, plain(least))
}

// plain formats a bound without an exponent.
func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

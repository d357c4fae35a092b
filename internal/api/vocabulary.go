package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// What a field means, which value it has by default, and which values it takes, is
// said once: at the field, with the tags doc, default, defaultBy, enum, minimum and
// maximum. Defaults and validation, the OpenAPI document, the schemas of the Terraform
// provider and the pages of its reference all follow from them.
//
//	doc:"One or 'two'."             a description; 'x' is code
//	default:"10s"                   the value where there is none
//	defaultBy:"mode fast=1s *=10s"  the same, by the value of the field beside it:
//	                                * is any other value, =1s holds without one, and
//	                                else=1s in all other cases
//	enum:"a,b"                      the values
//	minimum:"1" maximum:"10"        the bounds of a number, or of the numbers in a map
//	required:"true"                 of a pointer that must not be absent
//	rule:"own"                      Validate words the error of this field itself
//
// Huma reads doc, default, enum, minimum, maximum, required, writeOnly and nullable by
// itself.

// Field is a field of a type of the API.
type Field struct {
	// Name is that in JSON.
	Name string
	// Index is the position of the field, for reflection.
	Index []int
	// Of is the structure that declares the field; Type is what it holds.
	Of, Type reflect.Type
	// Doc is the description, in Markdown. It mentions neither default nor bounds.
	Doc string
	// Required says that the field must not be absent.
	Required bool
	// Secret says that the field is never returned.
	Secret bool
	// Default is the value, as text, where there is none; "" = there is no default.
	Default string
	// DefaultBy is a default that follows from the field beside it; nil = there is none.
	DefaultBy *DefaultBy
	// Enum are the values that the field takes; none = all.
	Enum []string
	// Minimum and Maximum are the bounds of a number; nil = there is none.
	Minimum, Maximum *float64
	// Ref is the kind of the objects that the field names, "" = it names none.
	Ref Kind

	ownRule bool
}

// DefaultBy is a default that follows from the value of the field beside it.
type DefaultBy struct {
	// On is the name of that field.
	On    string
	Cases []DefaultCase
}

// DefaultCase is the default for one value of the field beside.
type DefaultCase struct {
	// When is the value: "" = absent, "*" = any other, "else" = any other or absent.
	When  string
	Value string
}

// For is the default where the field beside has a value, "" = absent. ok is false
// where there is none.
func (d *DefaultBy) For(value string) (text string, ok bool) {
	for _, c := range d.Cases {
		if c.When == value || c.When == "*" && value != "" || c.When == "else" {
			return c.Value, true
		}
	}
	return "", false
}

// Sentence describes the default in Markdown; "" for a block that is merely there or
// not.
func (d *DefaultBy) Sentence() string {
	parts := make([]string, 0, len(d.Cases))
	for _, c := range d.Cases {
		value := "`" + c.Value + "`"
		switch {
		case c.Value == "{}":
			return ""
		case c.When == "":
			parts = append(parts, value+" if `"+d.On+"` is omitted")
		case c.When == "*":
			parts = append(parts, value+" if `"+d.On+"` is set")
		case c.When == "else":
			parts = append(parts, "otherwise to "+value)
		default:
			parts = append(parts, value+" if `"+d.On+"` is `"+c.When+"`")
		}
	}
	return "Defaults to " + strings.Join(parts, ", ") + "."
}

// Describe is the description of the field together with what it takes and what it is
// by default.
func (f *Field) Describe() string {
	parts := []string{f.DescribeValue()}
	minimum, maximum := f.Minimum, f.Maximum
	if maximum != nil && *maximum >= math.MaxInt32 {
		maximum = nil // what a number of Kubernetes holds, and nobody asks for
	}
	switch {
	case minimum != nil && maximum != nil:
		parts = append(parts, "From "+plain(*minimum)+" to "+plain(*maximum)+".")
	case minimum != nil && (*minimum > 0 || scalarKind(f.Type) == reflect.Float64):
		parts = append(parts, "At least "+plain(*minimum)+".")
	}
	switch {
	case f.DefaultBy != nil:
		parts = append(parts, f.DefaultBy.Sentence())
	case f.Default != "":
		parts = append(parts, "Defaults to `"+f.Default+"`.")
	}
	return join(parts)
}

// DescribeValue is the description of the field together with the values that it can
// have, as far as the description does not name all of them.
func (f *Field) DescribeValue() string {
	parts := []string{f.Doc}
	if slices.ContainsFunc(f.Enum, func(value string) bool { return !strings.Contains(f.Doc, "`"+value+"`") }) {
		values := make([]string, len(f.Enum))
		for i, value := range f.Enum {
			values[i] = "`" + value + "`"
		}
		last := len(values) - 1
		parts = append(parts, "One of "+strings.Join(values[:last], ", ")+" or "+values[last]+".")
	}
	return join(parts)
}

func join(sentences []string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), " ")
}

// quoted is code in a description: the text between two single quotes, of which the
// first is no apostrophe.
var quoted = regexp.MustCompile(`(^|[^\pL\pN])'([^']+)'`)

// Markdown is a text of the tag doc, which cannot have backquotes.
func Markdown(doc string) string { return quoted.ReplaceAllString(doc, "$1`$2`") }

var fieldsOf sync.Map // reflect.Type → []Field

// Fields are the fields of a structure of the API, in their order. Those of an
// embedded structure are among them.
func Fields(t reflect.Type) []Field {
	if known, ok := fieldsOf.Load(t); ok {
		return known.([]Field) //nolint:forcetypeassert // nothing else is stored
	}
	var fields []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for _, inner := range Fields(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				fields = append(fields, inner)
			}
			continue
		case name == "" || name == "-":
			continue
		}
		to, _, _ := strings.Cut(f.Tag.Get("ref"), ",")
		field := Field{
			Name: name, Index: []int{i}, Of: t, Type: f.Type, Doc: Markdown(f.Tag.Get("doc")),
			Required:  f.Tag.Get("required") == "true" || !strings.Contains(options, "omit"),
			Secret:    f.Tag.Get("writeOnly") == "true",
			Default:   f.Tag.Get("default"),
			DefaultBy: parseDefaultBy(f.Tag.Get("defaultBy")),
			Minimum:   bound(f.Tag.Get("minimum")), Maximum: bound(f.Tag.Get("maximum")),
			Ref:     Kind(to),
			ownRule: f.Tag.Get("rule") == "own",
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			field.Enum = strings.Split(enum, ",")
		}
		fields = append(fields, field)
	}
	fieldsOf.Store(t, fields)
	return fields
}

func parseDefaultBy(tag string) *DefaultBy {
	on, cases, ok := strings.Cut(tag, " ")
	if !ok {
		return nil
	}
	d := &DefaultBy{On: on}
	for text := range strings.FieldsSeq(cases) {
		when, value, _ := strings.Cut(text, "=")
		d.Cases = append(d.Cases, DefaultCase{When: when, Value: value})
	}
	return d
}

func bound(tag string) *float64 {
	if f, err := strconv.ParseFloat(tag, 64); err == nil {
		return &f
	}
	return nil
}

// scalarKind is the kind of value behind pointers, and in maps.
func scalarKind(t reflect.Type) reflect.Kind {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.Kind()
}

// rules are what the tags of a structure ask for. Fields without any have none, so that
// nothing else is looked at.
type rules []rule

// rule is that of one field.
type rule struct {
	*Field
	// value is the default, of which every object gets a copy; invalid where there is
	// none, or it is what an absent field has anyway.
	value reflect.Value
	// on is the position of the field that the default follows from.
	on    []int
	below rules // of the structures in the field
}

var rulesOf sync.Map // reflect.Type → rules

func rulesFor(t reflect.Type) rules {
	if known, ok := rulesOf.Load(t); ok {
		return known.(rules) //nolint:forcetypeassert // nothing else is stored
	}
	var out rules
	fields := Fields(t)
	for i := range fields {
		f := &fields[i]
		r := rule{Field: f}
		if f.Default != "" {
			if value := defaultValue(f.Type, f.Default); !value.IsZero() {
				r.value = value
			}
		}
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			r.below = rulesFor(inner)
		}
		if f.DefaultBy != nil {
			beside := slices.IndexFunc(fields, func(other Field) bool { return other.Name == f.DefaultBy.On })
			r.on = fields[beside].Index
		}
		if r.value.IsValid() || f.DefaultBy != nil || f.Enum != nil || f.Minimum != nil || f.Maximum != nil || r.below != nil {
			out = append(out, r)
		}
	}
	rulesOf.Store(t, out)
	return out
}

// defaultValue is the value of a field that a tag writes as text.
func defaultValue(t reflect.Type, text string) reflect.Value {
	value := reflect.New(t)
	data := []byte(text)
	if scalarKind(t) == reflect.String {
		data, _ = json.Marshal(text) // cannot fail for a text
	}
	if err := json.Unmarshal(data, value.Interface()); err != nil {
		panic(fmt.Sprintf("the default %q of a %s: %s", text, t, err)) //nolint:forbidigo // a mistake in a tag, which the tests meet
	}
	return value.Elem()
}

// setDefaults fills in, in the structure that part points at, what is absent and has a
// default. What the structure shares with a copy of it is copied first.
func setDefaults(part any) {
	v := reflect.ValueOf(part).Elem()
	rulesFor(v.Type()).fill(v)
}

func (rs rules) fill(v reflect.Value) {
	for i := range rs {
		r := &rs[i]
		field := v.FieldByIndex(r.Index)
		if value, ok := r.absent(field, v); ok {
			field.Set(value)
		}
		if r.below == nil || !r.below.lacking(field) {
			continue
		}
		switch field.Kind() {
		case reflect.Pointer:
			own := reflect.New(field.Type().Elem())
			own.Elem().Set(field.Elem())
			field.Set(own)
		case reflect.Slice:
			own := reflect.MakeSlice(field.Type(), field.Len(), field.Len())
			reflect.Copy(own, field)
			field.Set(own)
		default: // a structure is the object's own
		}
		eachStructure(field, "", func(inner reflect.Value, _ string) { r.below.fill(inner) })
	}
}

// lacking reports that a structure in a field lacks something that has a default.
func (rs rules) lacking(field reflect.Value) bool {
	lacks := false
	eachStructure(field, "", func(v reflect.Value, _ string) {
		for i := range rs {
			inner := v.FieldByIndex(rs[i].Index)
			if _, absent := rs[i].absent(inner, v); absent || rs[i].below != nil && rs[i].below.lacking(inner) {
				lacks = true
			}
		}
	})
	return lacks
}

// absent is the default of a field of a structure; ok is false where the field has a
// value, or no default.
func (r *rule) absent(field, structure reflect.Value) (value reflect.Value, ok bool) {
	if !field.IsZero() {
		return value, false
	}
	switch {
	case r.DefaultBy != nil:
		text, ok := r.DefaultBy.For(structure.FieldByIndex(r.on).String())
		if !ok {
			return value, false
		}
		return defaultValue(r.Type, text), true
	case !r.value.IsValid():
		return value, false
	case field.Kind() == reflect.Pointer || field.Kind() == reflect.Slice:
		return defaultValue(r.Type, r.Default), true // shared by no two objects
	}
	return r.value, true
}

// eachStructure calls f with every structure in a field, and its path.
func eachStructure(v reflect.Value, at string, f func(v reflect.Value, at string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachStructure(v.Elem(), at, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachStructure(v.Index(i), index(at, i), f)
		}
	case reflect.Struct:
		f(v, at)
	default: // nothing else holds structures
	}
}

// checkObject adds an error for every broken rule that objects of all kinds have: those
// of the metadata, and those of the tags of the spec.
func (e *FieldErrors) checkObject(o Object, scope Scope) {
	o.Meta().validate(scope, e)
	e.checkFields("spec", o.SpecPart())
}

// checkFields adds an error for every value, in the structure that part points at, that
// is not one of the field's or is out of its bounds.
func (e *FieldErrors) checkFields(at string, part any) {
	v := reflect.ValueOf(part).Elem()
	rulesFor(v.Type()).check(e, v, at)
}

func (rs rules) check(errs *FieldErrors, v reflect.Value, at string) {
	for i := range rs {
		r := &rs[i]
		field, under := v.FieldByIndex(r.Index), under(at, r.Name)
		if !r.ownRule {
			r.checkValue(errs, field, under)
		}
		if r.below != nil {
			eachStructure(field, under, func(inner reflect.Value, at string) { r.below.check(errs, inner, at) })
		}
	}
}

func (r *rule) checkValue(errs *FieldErrors, v reflect.Value, at string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			r.checkValue(errs, v.Elem(), at)
		}
	case reflect.String:
		if text := v.String(); r.Enum != nil && (text != "" || r.Required || r.Default != "") {
			errs.check(at, oneOf(text, r.Enum...))
		}
	case reflect.Int64:
		errs.check(at, r.checkBounds(strconv.FormatInt(v.Int(), 10), float64(v.Int())))
	case reflect.Float64:
		errs.check(at, r.checkBounds(fmt.Sprint(v.Float()), v.Float()))
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			r.checkValue(errs, v.MapIndex(key), at+"["+quote(key.String())+"]")
		}
	default: // nothing else has bounds
	}
}

// inOrder sorts errors by where their fields stand in the document of an object.
func (e FieldErrors) inOrder(object any) FieldErrors {
	t := reflect.TypeOf(object).Elem()
	slices.SortStableFunc(e, func(a, b FieldError) int {
		return comparePaths(t, SplitField(a.Field), SplitField(b.Field))
	})
	return e
}

// comparePaths compares paths that start in a type: fields by their position, elements
// by their number or key.
func comparePaths(t reflect.Type, a, b []any) int {
	for i := range min(len(a), len(b)) {
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		var next reflect.Type
		order := 0
		if t != nil && t.Kind() == reflect.Struct {
			fields := Fields(t)
			at := func(step any) int { return slices.IndexFunc(fields, func(f Field) bool { return f.Name == step }) }
			x := at(a[i])
			if order = x - at(b[i]); x >= 0 {
				next = fields[x].Type
			}
		} else {
			if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
				next = t.Elem()
			}
			x, isNumber := a[i].(int)
			y, alsoNumber := b[i].(int)
			if order = strings.Compare(fmt.Sprint(a[i]), fmt.Sprint(b[i])); isNumber && alsoNumber {
				order = x - y
			}
		}
		if order != 0 {
			return order
		}
		t = next
	}
	return len(a) - len(b)
}

// checkBounds says what is wrong with a number, "" = nothing.
func (r *rule) checkBounds(text string, n float64) string {
	least, most := math.Inf(-1), math.Inf(1)
	if r.Minimum != nil {
		least = *r.Minimum
	}
	if r.Maximum != nil {
		most = *r.Maximum
	}
	switch {
	case r.Minimum == nil && r.Maximum == nil:
	case n >= least && n <= most && !math.IsInf(n, 0):
	case r.Maximum != nil && r.Minimum != nil:
		return fmt.Sprintf("%s must be from %s to %s", text, plain(least), plain(most))
	case r.Maximum != nil:
		return fmt.Sprintf("%s must be at most %s", text, plain(most))
	case scalarKind(r.Type) == reflect.Float64:
		return fmt.Sprintf("%s must be a finite number of at least %s", text, plain(least))
	default:
		return fmt.Sprintf("%s must be at least %s", text, plain(least))
	}
	return ""
}

// plain writes a bound without an exponent.
func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

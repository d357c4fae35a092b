package api

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What a field means, which value it has by default, and which values it takes, is
// said once: at the field, with tags. Defaults and validation, the OpenAPI document, the schemas of the Terraform
// provider and the pages of its reference all follow from them.
//
//	doc:"One or 'two'."             a description; 'x' is code
//	default:"10s"                   the value where there is none
//	defaultBy:"mode fast=1s *=10s"  the same, by the value of the field beside it:
//	                                * is any other value, =1s holds without one, and
//	                                else=1s in all other cases
//	enum:"a,b"                      the values
//	minimum:"1" maximum:"10"        the bounds of a number, or of the numbers in a map
//	shortest:"100ms"                the shortest duration; none is negative
//	maxLength:"1024"                the largest number of characters of a text
//	required:"true"                 of a pointer that must not be absent
//
// That durations and quantities can be read, and are not negative, follows from their
// types.
//
// Huma reads doc, default, enum, minimum, maximum, maxLength, required, writeOnly and
// nullable by itself.

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
	// Shortest is the shortest duration.
	Shortest time.Duration
	// MaxLength is the largest number of characters of a text; 0 = any.
	MaxLength int
	// Ref is the kind of the objects that the field names, "" = it names none.
	Ref Kind
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
	if i := d.caseOf(value); i >= 0 {
		return d.Cases[i].Value, true
	}
	return "", false
}

// caseOf is the position of the case that a value of the field beside is, -1 where it
// is none.
func (d *DefaultBy) caseOf(value string) int {
	for i := range d.Cases {
		if when := d.Cases[i].When; when == value || when == "*" && value != "" || when == "else" {
			return i
		}
	}
	return -1
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
	parts := []string{f.DescribeValue(), f.bounds(), f.Limits()}
	switch {
	case f.DefaultBy != nil:
		parts = append(parts, f.DefaultBy.Sentence())
	case f.Default != "":
		parts = append(parts, "Defaults to `"+f.Default+"`.")
	}
	return join(parts)
}

// bounds describes the bounds of a number, as far as anybody asks for them.
func (f *Field) bounds() string {
	minimum, maximum := f.Minimum, f.Maximum
	if maximum != nil && *maximum >= math.MaxInt32 {
		maximum = nil // what a number of Kubernetes holds
	}
	switch {
	case minimum != nil && maximum != nil:
		return "From " + plain(*minimum) + " to " + plain(*maximum) + "."
	case minimum != nil && (*minimum > 0 || scalarKind(f.Type) == reflect.Float64):
		return "At least " + plain(*minimum) + "."
	}
	return ""
}

// Limits describes how short a duration and how long a text may be.
func (f *Field) Limits() string {
	switch {
	case f.Shortest > 0:
		return "At least `" + f.Shortest.String() + "`."
	case f.MaxLength > 0:
		if f.Type.Kind() == reflect.Map {
			return "Each value has at most " + strconv.Itoa(f.MaxLength) + " characters."
		}
		return "At most " + strconv.Itoa(f.MaxLength) + " characters."
	}
	return ""
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

// Fields are the fields of a structure of the API, in their order. Those of an
// embedded structure are among them.
func Fields(t reflect.Type) []Field { return structureOf(t).fields }

// structure is what the tags of a type say.
type structure struct {
	fields []Field
	rules  rules
	// mistakes are those in the tags. A tag with a mistake says nothing, and a test
	// over all types finds it.
	mistakes error
}

var structures sync.Map // reflect.Type → *structure

func structureOf(t reflect.Type) *structure {
	if known, ok := structures.Load(t); ok {
		return known.(*structure) //nolint:forcetypeassert // nothing else is stored
	}
	s := &structure{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			embedded := structureOf(f.Type)
			s.mistakes = errors.Join(s.mistakes, embedded.mistakes)
			for _, inner := range embedded.fields {
				inner.Index = append([]int{i}, inner.Index...)
				s.fields = append(s.fields, inner)
			}
		case name != "" && name != "-":
			field, err := parseField(t, f, name, options)
			s.mistakes = errors.Join(s.mistakes, err)
			s.fields = append(s.fields, field)
		}
	}
	var err error
	s.rules, err = rulesOf(s.fields)
	s.mistakes = errors.Join(s.mistakes, err)
	known, _ := structures.LoadOrStore(t, s)
	return known.(*structure) //nolint:forcetypeassert // as above
}

func parseField(of reflect.Type, f reflect.StructField, name, options string) (Field, error) {
	to, _, _ := strings.Cut(f.Tag.Get("ref"), ",")
	field := Field{
		Name: name, Index: f.Index, Of: of, Type: f.Type, Doc: Markdown(f.Tag.Get("doc")),
		Required: f.Tag.Get("required") == "true" || !strings.Contains(options, "omit"),
		Secret:   f.Tag.Get("writeOnly") == "true",
		Default:  f.Tag.Get("default"),
		Ref:      Kind(to),
	}
	var mistakes error
	wrong := func(tag string, why any) {
		mistakes = errors.Join(mistakes, fmt.Errorf("the tag %s of %s.%s: %v", tag, of, name, why))
	}
	read := func(tag string, fits bool, parse func(text string) error) {
		text, ok := f.Tag.Lookup(tag)
		switch {
		case !ok:
		case !fits:
			wrong(tag, "says nothing about a "+f.Type.String())
		default:
			if err := parse(text); err != nil {
				wrong(tag, err)
			}
		}
	}
	kind := scalarKind(f.Type)
	number, text := kind == reflect.Int64 || kind == reflect.Float64, kind == reflect.String
	read("minimum", number, func(text string) (err error) { field.Minimum, err = parseBound(text); return err })
	read("maximum", number, func(text string) (err error) { field.Maximum, err = parseBound(text); return err })
	read("maxLength", text, func(text string) (err error) { field.MaxLength, err = strconv.Atoi(text); return err })
	read("shortest", f.Type == reflect.TypeFor[Duration](), func(text string) (err error) { field.Shortest, err = time.ParseDuration(text); return err })
	read("enum", text, func(text string) error { field.Enum = strings.Split(text, ","); return nil })
	read("defaultBy", true, func(text string) (err error) { field.DefaultBy, err = parseDefaultBy(text); return err })
	return field, mistakes
}

func parseDefaultBy(tag string) (*DefaultBy, error) {
	on, cases, _ := strings.Cut(tag, " ")
	d := &DefaultBy{On: on}
	for text := range strings.FieldsSeq(cases) {
		when, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("%q is no case: write value=default", text)
		}
		d.Cases = append(d.Cases, DefaultCase{When: when, Value: value})
	}
	if d.Cases == nil {
		return nil, errors.New("there is no case: write the name of a field, and value=default for its values")
	}
	return d, nil
}

func parseBound(text string) (*float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, err
	}
	return &f, nil
}

// scalarKind is the kind of value behind pointers, and in maps.
func scalarKind(t reflect.Type) reflect.Kind {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.Kind()
}

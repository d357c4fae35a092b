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

// The tags of a field define its description, default and allowed values. Defaults, validation, the
// OpenAPI document, the Terraform schemas and the reference pages are all derived from them.
//
//	doc:"One or 'two'."             a description; 'x' is code
//	default:"10s"                   the value if the field is absent
//	defaultBy:"mode fast=1s *=10s"  the same, depending on the value of the field next to it:
//	                                * is any other value, =1s applies if that field is absent,
//	                                and else=1s in all other cases
//	enum:"a,b"                      the allowed values
//	minimum:"1" maximum:"10"        the bounds of a number, or of the numbers in a map
//	shortest:"100ms"                the minimum of a duration; none may be negative
//	maxLength:"1024"                the maximum number of characters
//	required:"true"                 for a pointer that must not be absent
//
// The types of durations and quantities imply that they can be parsed and are not negative.
//
// Huma itself reads doc, default, enum, minimum, maximum, maxLength, required, writeOnly and
// nullable.

// Field is a field of an API type.
type Field struct {
	// Name is the JSON name.
	Name string
	// Index is the index of the field, for reflection.
	Index []int
	// Of is the struct that declares the field; Type is the type of the field.
	Of, Type reflect.Type
	// Doc is the description, in Markdown. It does not mention the default or bounds.
	Doc string
	// Required says that the field must not be absent.
	Required bool
	// Secret says that the field is never returned.
	Secret bool
	// Default is the default as text, or "" if there is none.
	Default string
	// DefaultBy is a default that depends on the field next to it, or nil.
	DefaultBy *DefaultBy
	// Enum are the allowed values. If empty, all values are allowed.
	Enum []string
	// Minimum and Maximum are the bounds of a number, or nil.
	Minimum, Maximum *float64
	// Shortest is the minimum of a duration.
	Shortest time.Duration
	// MaxLength is the maximum number of characters, or 0 if unlimited.
	MaxLength int
	// Absent is what a list stands for if it is absent. It must then not be empty: an expression that
	// becomes empty must not stand for everything. "" = absent and empty are the same.
	Absent string
	// Ref is the kind of the objects that the field refers to, or "".
	Ref Kind
}

// DefaultBy is a default that depends on the value of the field next to it.
type DefaultBy struct {
	// On is the name of that field.
	On    string
	Cases []DefaultCase
}

// DefaultCase is the default for one value of the other field.
type DefaultCase struct {
	// When is the value: "" means absent, "*" any other value, "else" any other value or absent.
	When  string
	Value string
}

// For returns the default if the other field has the given value, "" meaning absent. ok is false if
// there is none.
func (d *DefaultBy) For(value string) (text string, ok bool) {
	if i := d.caseOf(value); i >= 0 {
		return d.Cases[i].Value, true
	}
	return "", false
}

// caseOf returns the index of the case for a value of the other field, or -1.
func (d *DefaultBy) caseOf(value string) int {
	for i := range d.Cases {
		if when := d.Cases[i].When; when == value || when == "*" && value != "" || when == "else" {
			return i
		}
	}
	return -1
}

// Sentence describes the default in Markdown. It returns "" for a block that is merely present or
// absent.
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

// Describe returns the description of the field with its allowed values and its default.
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

// bounds describes the bounds of a number, if they matter to users.
func (f *Field) bounds() string {
	minimum, maximum := f.Minimum, f.Maximum
	if maximum != nil && *maximum >= math.MaxInt32 {
		maximum = nil // the limit of Kubernetes for numbers
	}
	switch {
	case minimum != nil && maximum != nil:
		return "From " + plain(*minimum) + " to " + plain(*maximum) + "."
	case minimum != nil && (*minimum > 0 || scalarKind(f.Type) == reflect.Float64):
		return "At least " + plain(*minimum) + "."
	}
	return ""
}

// Limits describes the minimum of a duration, the maximum length of text, and a list that must not
// be empty.
func (f *Field) Limits() string {
	switch {
	case f.Absent != "":
		return "Omit it for " + f.Absent + "; it must not be empty."
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

// DescribeValue returns the description of the field with its allowed values, unless the
// description already names all of them.
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

// quoted matches code in a description: text between single quotes, the first of which is not an
// apostrophe.
var quoted = regexp.MustCompile(`(^|[^\pL\pN])'([^']+)'`)

// markdown converts the text of a doc tag, which cannot contain backquotes, to Markdown.
func markdown(doc string) string { return quoted.ReplaceAllString(doc, "$1`$2`") }

// Fields returns the fields of an API struct in order, including those of embedded structs.
func Fields(t reflect.Type) []Field { return structureOf(t).fields }

// structure holds what the tags of a type define.
type structure struct {
	fields []Field
	rules  rules
	// mistakes are the errors in the tags. An invalid tag is ignored; a test over all types finds
	// it.
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
		Name: name, Index: f.Index, Of: of, Type: f.Type, Doc: markdown(f.Tag.Get("doc")),
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
			wrong(tag, "does not apply to a "+f.Type.String())
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
	read("absent", f.Type.Kind() == reflect.Slice, func(text string) error { field.Absent = text; return nil })
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
			return nil, fmt.Errorf("%q is not of the form value=default", text)
		}
		d.Cases = append(d.Cases, DefaultCase{When: when, Value: value})
	}
	if d.Cases == nil {
		return nil, errors.New("no cases: write the name of a field, then value=default for each of its values")
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

// scalarKind returns the kind of the value behind pointers and in maps.
func scalarKind(t reflect.Type) reflect.Kind {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.Kind()
}

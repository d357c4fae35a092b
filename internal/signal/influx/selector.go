package influx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// selector is the parsed name of a metric: a measurement, and optionally one of its fields and
// required values of tags.
//
//	heat_demand
//	heat_demand.value
//	heat_demand{zone="a"}
//	heat_demand.value{zone="a", building="7"}
//	"heat.demand"."the value"
//
// A name that contains one of . { } " \ must be in double quotes, as tag values always are; in
// quotes \" is a quote and \\ a backslash.
type selector struct {
	measurement string
	field       string // empty = any
	tags        []tag  // by name, without duplicates
	dotted      bool   // the field was split off at an unquoted dot
}

type tag struct{ name, value string }

// reserved are the columns that a result has besides tags. A tag with such a name cannot be
// distinguished from them.
var reserved = []string{"result", "table", "_start", "_stop", "_time", "_value", "_field", "_measurement", "time"}

// parse reads a selector.
func parse(text string) (selector, error) {
	if !utf8.ValidString(text) {
		return selector{}, errors.New("it is not valid UTF-8")
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return selector{}, errors.New("it contains control characters")
	}
	s := scanner{rest: text}
	var out selector
	var err error
	if out.measurement, _, err = s.name("measurement", `.{}"\`); err != nil {
		return selector{}, err
	}
	if s.take(".") {
		var quoted bool
		if out.field, quoted, err = s.name("field", `.{}"\`); err != nil {
			return selector{}, err
		}
		out.dotted = !quoted
	}
	if s.take("{") {
		if out.tags, err = s.tags(); err != nil {
			return selector{}, err
		}
	}
	if s.rest != "" {
		return selector{}, fmt.Errorf("%q is unexpected: a name is measurement.field{tag=%q}, with names that have one of . { } \" \\ in them in double quotes", s.rest, "value")
	}
	return out, nil
}

// scanner consumes text from the front.
type scanner struct{ rest string }

// take consumes a token, and the space before it.
func (s *scanner) take(token string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(s.rest, " "), token)
	if ok {
		s.rest = rest
	}
	return ok
}

// name scans a name, quoted or up to one of the characters in stop.
func (s *scanner) name(what, stop string) (name string, quoted bool, err error) {
	if s.take(`"`) {
		name, err = s.quoted(what)
		return name, true, err
	}
	end := strings.IndexAny(s.rest, stop)
	if end < 0 {
		end = len(s.rest)
	}
	name = strings.Trim(s.rest[:end], " ")
	s.rest = s.rest[end:]
	if name == "" {
		return "", false, fmt.Errorf("a %s is missing before %q", what, s.rest)
	}
	return name, false, nil
}

// quoted scans up to the closing quote.
func (s *scanner) quoted(what string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; c {
		case '"':
			s.rest = strings.TrimLeft(s.rest[i+1:], " ")
			if b.Len() == 0 {
				return "", fmt.Errorf("the %s is empty", what)
			}
			return b.String(), nil
		case '\\':
			i++
			if i == len(s.rest) || s.rest[i] != '"' && s.rest[i] != '\\' {
				return "", fmt.Errorf("a backslash in the %s must be followed by another or by a quote", what)
			}
			b.WriteByte(s.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("the quote around the %s is not closed", what)
}

// tags scans tag selections up to the closing brace.
func (s *scanner) tags() ([]tag, error) {
	var tags []tag
	for {
		name, _, err := s.name("tag", `={}",\`)
		if err != nil {
			return nil, err
		}
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("%q cannot be selected as a tag: InfluxDB uses that name itself", name)
		}
		if !s.take("=") || !s.take(`"`) {
			return nil, fmt.Errorf("the tag %q must be followed by its value, as in %s=%q", name, name, "value")
		}
		value, err := s.quoted("value of tag " + name)
		if err != nil {
			return nil, err
		}
		tags = append(tags, tag{name, value})
		if s.take("}") {
			s.rest = strings.TrimLeft(s.rest, " ")
			break
		}
		if !s.take(",") {
			return nil, fmt.Errorf("the value of tag %q must be followed by a comma or the closing brace", name)
		}
	}
	slices.SortFunc(tags, func(a, b tag) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(tags); i++ {
		if tags[i].name == tags[i-1].name {
			return nil, fmt.Errorf("the tag %q is selected twice", tags[i].name)
		}
	}
	return tags, nil
}

// String returns the selector in a form that parse accepts.
func (s selector) String() string {
	var b strings.Builder
	b.WriteString(quoteName(s.measurement))
	if s.field != "" {
		b.WriteString("." + quoteName(s.field))
	}
	for i, t := range s.tags {
		b.WriteString([]string{"{", ", "}[min(i, 1)])
		b.WriteString(quoteName(t.name) + "=" + quoteText(t.value))
	}
	if len(s.tags) > 0 {
		b.WriteByte('}')
	}
	return b.String()
}

// quoteName quotes a name if necessary.
func quoteName(name string) string {
	if strings.ContainsAny(name, `.{}"\,=`) || strings.Trim(name, " ") != name {
		return quoteText(name)
	}
	return name
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quoteText(text string) string { return `"` + quoter.Replace(text) + `"` }

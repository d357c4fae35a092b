package api

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FieldError is a validation error of one field. Field is the path in the JSON document:
// `spec.metrics[0].weight`, `metadata.labels["team/name"]`.
type FieldError struct {
	Field   string `json:"field" doc:"Path of the field in the document: 'spec.metrics[0].weight'."`
	Message string `json:"message" doc:"What is wrong, and what would be right."`
	// more is set in the last element of a list that is too long: the number of errors left out.
	more int
}

// Error joins the field and the message.
func (e FieldError) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// Limits on what is told of the errors of one document, so that the answer is not larger than the
// document.
const (
	maxFieldErrors = 100
	maxErrorText   = 1000 // bytes of a field or a message
)

// FieldErrors are the validation errors of an object: at most maxFieldErrors, and then one element
// that says how many more there are. A nil value means that the object is valid.
type FieldErrors []FieldError //nolint:recvcheck // Add and check append in place; as an error it is a value

// Error lists every field error, one after the other.
func (e FieldErrors) Error() string {
	lines := make([]string, len(e))
	for i, fe := range e {
		lines[i] = fe.Error()
	}
	return strings.Join(lines, "; ")
}

// Add appends an error; the arguments are those of fmt.Sprintf. Text that looks like a misplaced
// secret is redacted, and long text is cut.
func (e *FieldErrors) Add(field, format string, args ...any) {
	if len(*e) >= maxFieldErrors {
		e.leaveOut(1)
		return
	}
	*e = append(*e, FieldError{Field: Shorten(Redact(field), maxErrorText), Message: Shorten(Redact(fmt.Sprintf(format, args...)), maxErrorText)})
}

// Join appends the errors of another list.
func (e *FieldErrors) Join(others FieldErrors) {
	for _, other := range others {
		if left := max(other.more, 1); other.more > 0 || len(*e) >= maxFieldErrors {
			e.leaveOut(left)
			continue
		}
		*e = append(*e, other)
	}
}

// leaveOut counts errors that the list does not contain.
func (e *FieldErrors) leaveOut(n int) {
	if last := len(*e) - 1; last >= 0 && (*e)[last].more > 0 {
		n += (*e)[last].more
		*e = (*e)[:last]
	}
	*e = append(*e, FieldError{Message: fmt.Sprintf("… and %d more", n), more: n})
}

// Count returns the number of errors, including those that the list only counts.
func (e FieldErrors) Count() int {
	n := len(e)
	if n > 0 && e[n-1].more > 0 {
		n += e[n-1].more - 1
	}
	return n
}

// And returns the list followed by the errors of more that concern other fields. A field that could
// not be decoded must not be reported as missing as well.
func (e FieldErrors) And(more FieldErrors) FieldErrors {
	out := e[:len(e):len(e)]
	for _, m := range more {
		said := false
		for _, have := range e {
			steps, above := SplitField(m.Field), SplitField(have.Field)
			said = said || m.more == 0 && have.more == 0 && len(above) <= len(steps) && slices.Equal(steps[:len(above)], above)
		}
		if !said {
			out.Join(FieldErrors{m})
		}
	}
	return out
}

// Err returns the list as an error, or nil if it is empty.
func (e FieldErrors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// check adds message unless it is empty.
func (e *FieldErrors) check(field, message string) {
	if message != "" {
		e.Add(field, "%s", message)
	}
}

// SplitField splits a field path: names and map keys become strings, list indexes become ints.
// Example: `spec.metrics[0].weight` becomes ["spec", "metrics", 0, "weight"] and
// `metadata.labels["a.b"]` becomes ["metadata", "labels", "a.b"].
func SplitField(field string) []any {
	var steps []any
	for field != "" {
		switch field[0] {
		case '.':
			field = field[1:]
		case '[':
			rest := field[1:]
			if strings.HasPrefix(rest, `"`) {
				quoted, err := strconv.QuotedPrefix(rest)
				if err != nil {
					return append(steps, field)
				}
				key, err := strconv.Unquote(quoted)
				if err != nil {
					return append(steps, field)
				}
				steps = append(steps, key)
				field = strings.TrimPrefix(rest[len(quoted):], "]")
				continue
			}
			text, after, _ := strings.Cut(rest, "]")
			if n, err := strconv.Atoi(text); err == nil {
				steps = append(steps, n)
			} else {
				steps = append(steps, text)
			}
			field = after
		default:
			end := strings.IndexAny(field, ".[")
			if end < 0 {
				end = len(field)
			}
			steps = append(steps, field[:end])
			field = field[end:]
		}
	}
	return steps
}

func quote(s string) string { return strconv.Quote(s) }

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

var (
	nameShape  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	labelShape = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?$`)
)

// checkName checks that a name is a DNS-1123 label.
func checkName(name string) string {
	switch {
	case name == "":
		return "is required"
	case len(name) > 63:
		return fmt.Sprintf("must have at most 63 characters, has %d", len(name))
	case !nameShape.MatchString(name):
		return fmt.Sprintf("%q must consist of lowercase letters, digits and \"-\", and start and end with a letter or digit", name)
	}
	return ""
}

// checkLabelKey checks a label key: an optional prefix of at most 253 characters and "/", then a
// name of at most 63.
func checkLabelKey(key string) string {
	name := key
	if prefix, rest, ok := strings.Cut(key, "/"); ok {
		if len(prefix) > 253 || !labelShape.MatchString(prefix) {
			return fmt.Sprintf("the prefix %q of the key must have 1 to 253 letters, digits, \"-\", \"_\" or \".\", and start and end with a letter, digit or \"_\"", prefix)
		}
		name = rest
	}
	if len(name) > 63 || !labelShape.MatchString(name) {
		return fmt.Sprintf("the key %q must have 1 to 63 letters, digits, \"-\", \"_\" or \".\", and start and end with a letter, digit or \"_\"", name)
	}
	return ""
}

// checkLabelValue checks a label value, which may be empty.
func checkLabelValue(value string) string {
	if value != "" && (len(value) > 63 || !labelShape.MatchString(value)) {
		return fmt.Sprintf("the value %q must have at most 63 letters, digits, \"-\", \"_\" or \".\", and start and end with a letter, digit or \"_\"", value)
	}
	return ""
}

// maxText limits the length of names that come from other systems.
const maxText = 255

// checkText accepts text of 1 to maxText characters without control characters.
func checkText(text string) string {
	switch {
	case text == "":
		return "is required"
	case utf8.RuneCountInString(text) > maxText:
		return fmt.Sprintf("must have at most %d characters, has %d", maxText, utf8.RuneCountInString(text))
	case strings.ContainsFunc(text, unicode.IsControl):
		return "must not contain control characters"
	}
	return ""
}

// checkFreeText accepts text of several lines.
func checkFreeText(text string) string {
	if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return fmt.Sprintf("must not contain control characters other than tabs and line breaks: it has %U", r)
	}
	return ""
}

// oneOf checks that a value is one of the allowed ones.
func oneOf[T ~string](value T, allowed ...T) string {
	if slices.Contains(allowed, value) {
		return ""
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = quote(string(a))
	}
	if value == "" {
		return "is required: one of " + strings.Join(words, ", ")
	}
	return fmt.Sprintf("%q is not one of %s", string(value), strings.Join(words, ", "))
}

// checkNames adds an error for every invalid name in a list.
func checkNames(errs *FieldErrors, field string, names []string) {
	for i, name := range names {
		errs.check(index(field, i), checkName(name))
	}
}

// checkUnique adds an error for every repeated element of a list.
func checkUnique[T ~string](errs *FieldErrors, field string, values []T) {
	seen := make(map[T]int, len(values))
	for i, v := range values {
		if first, ok := seen[v]; ok {
			errs.Add(index(field, i), "%q is already listed at position %d", string(v), first)
			continue
		}
		seen[v] = i
	}
}

// inOrder sorts errors by the position of their fields in the object's document.
func (e FieldErrors) inOrder(object any) FieldErrors {
	t := reflect.TypeOf(object).Elem()
	slices.SortStableFunc(e, func(a, b FieldError) int {
		if a.more > 0 || b.more > 0 {
			return cmp.Compare(a.more, b.more)
		}
		return comparePaths(t, SplitField(a.Field), SplitField(b.Field))
	})
	return e
}

// comparePaths compares field paths that start in a type: fields by position, elements by index or
// key.
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

package constraint

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrorKind says which part of a constraint is at fault.
type ErrorKind string

// The kinds of errors. A text with several faults reports the first of them in
// this order.
const (
	// Grammar: the text does not have the form of a constraint.
	Grammar ErrorKind = "grammar"
	// Key: the form is right, but the label key or metric name is not valid.
	Key ErrorKind = "key"
	// Value: form and key are right, but a label value or the number is not.
	Value ErrorKind = "value"
)

// SyntaxError says where and why a text is not a constraint.
type SyntaxError struct {
	// Text is what the user wrote.
	Text string
	// Column is the place of the fault, in characters, counted from 1. One past
	// the last character means that something is missing at the end.
	Column int
	// Message says what is wrong there.
	Message string
	// Expected are the operators or tokens that would fit there; empty where a
	// key or value breaks the rules for its characters.
	Expected []string
	// Kind says which part of the constraint is at fault.
	Kind ErrorKind
}

func newSyntaxError(text string, at int, kind ErrorKind, message string, expected []string) *SyntaxError {
	return &SyntaxError{
		Text:     text,
		Column:   utf8.RuneCountInString(text[:at]) + 1,
		Message:  message,
		Expected: expected,
		Kind:     kind,
	}
}

// Error names the text, the column, the fault and what would fit.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	b.WriteString("constraint ")
	b.WriteString(strconv.Quote(excerpt(e.Text, e.Column)))
	b.WriteString(", column ")
	b.WriteString(strconv.Itoa(e.Column))
	b.WriteString(": ")
	b.WriteString(e.Message)
	// Where one thing is missing, the message has named it already.
	if fits := alternatives(e.Expected); !strings.Contains(e.Message, fits) {
		b.WriteString("; expected ")
		b.WriteString(fits)
	}
	return b.String()
}

// alternatives joins what would fit into "x, y or z". What the user would type
// is quoted, a description ("a value", "the end") is not.
func alternatives(expected []string) string {
	var b strings.Builder
	for i, e := range expected {
		switch {
		case i == 0:
		case i == len(expected)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		if strings.HasPrefix(e, "a ") || strings.HasPrefix(e, "the ") {
			b.WriteString(e)
		} else {
			b.WriteString(strconv.Quote(e))
		}
	}
	return b.String()
}

// excerptRadius is how many characters around the fault an error shows, so that
// a text of any length makes a readable error.
const excerptRadius = 60

// excerpt returns the part of text around a column.
func excerpt(text string, column int) string {
	if len(text) <= 2*excerptRadius {
		return text
	}
	runes := []rune(text)
	from := max(0, min(column-1, len(runes))-excerptRadius)
	to := min(len(runes), from+2*excerptRadius)
	shown := string(runes[from:to])
	if from > 0 {
		shown = "…" + shown
	}
	if to < len(runes) {
		shown += "…"
	}
	return shown
}

// quote puts a piece of the user's text into a message.
func quote(s string) string {
	const limit = 40
	if utf8.RuneCountInString(s) > limit {
		s = string([]rune(s)[:limit]) + "…"
	}
	return strconv.Quote(s)
}

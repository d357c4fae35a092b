package constraint

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrorKind is which part of a constraint is wrong.
type ErrorKind string

// Kinds of errors. If a text has several faults, the first in this order is reported.
const (
	// Grammar: the text is not a constraint.
	Grammar ErrorKind = "grammar"
	// Key: the syntax is right, but the label key or metric name is invalid.
	Key ErrorKind = "key"
	// Value: syntax and key are right, but a label value or the number is invalid.
	Value ErrorKind = "value"
)

// SyntaxError says where and why a text is not a constraint.
type SyntaxError struct {
	// Text is the original text.
	Text string
	// Column is the position of the fault in characters, starting at 1. One past the last character
	// means that something is missing at the end.
	Column int
	// Message describes the fault.
	Message string
	// Expected lists the operators or tokens that are valid there; empty if a key or value contains
	// invalid characters.
	Expected []string
	// Kind says which part of the constraint is wrong.
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

// Error returns the text, the column, the fault and what was expected.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	b.WriteString("constraint ")
	b.WriteString(strconv.Quote(excerpt(e.Text, e.Column)))
	b.WriteString(", column ")
	b.WriteString(strconv.Itoa(e.Column))
	b.WriteString(": ")
	b.WriteString(e.Message)
	// If a single thing is missing, the message already names it.
	if fits := alternatives(e.Expected); !strings.Contains(e.Message, fits) {
		b.WriteString("; expected ")
		b.WriteString(fits)
	}
	return b.String()
}

// alternatives joins the expected tokens as "x, y or z". Literal text is quoted, descriptions ("a
// value", "the end") are not.
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

// excerptRadius is how many characters around the fault an error shows, so that errors about long
// texts are readable.
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

// quote quotes a part of the user's text for a message.
func quote(s string) string {
	const limit = 40
	if utf8.RuneCountInString(s) > limit {
		s = string([]rune(s)[:limit]) + "…"
	}
	return strconv.Quote(s)
}

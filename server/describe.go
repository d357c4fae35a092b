package main

import (
	"errors"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// describe formats an error for a terminal: each field error and each joined error has its own
// line. Text from others, such as the responding server, is escaped.
func describe(err error) string {
	fields, ok := errors.AsType[api.FieldErrors](err)
	if !ok {
		if problem, isProblem := errors.AsType[*api.Problem](err); isProblem {
			fields = problem.Errors
		}
	}
	if len(fields) < 2 {
		return strings.Join(linesOf(err), "\n  ")
	}
	var b strings.Builder
	b.WriteString(shown(strings.TrimSuffix(strings.Replace(err.Error(), fields.Error(), "", 1), ": ")))
	if b.Len() == 0 {
		b.WriteString("several fields are invalid")
	}
	for _, field := range fields {
		b.WriteString("\n  " + shown(field.Error()))
	}
	return b.String()
}

// linesOf returns an error as one line for each error joined in it.
func linesOf(err error) []string {
	var joined interface {
		error
		Unwrap() []error
	}
	text := err.Error()
	if !errors.As(err, &joined) || !strings.Contains(joined.Error(), "\n") || !strings.Contains(text, joined.Error()) {
		return []string{shown(text)}
	}
	before, after, _ := strings.Cut(text, joined.Error())
	var lines []string
	for _, one := range joined.Unwrap() {
		lines = append(lines, linesOf(one)...)
	}
	lines[0] = shown(before) + lines[0]
	lines[len(lines)-1] += shown(after)
	return lines
}

// shown returns text from others in one line, with misplaced secrets redacted.
func shown(text string) string { return termtext.Text(api.Redact(text)) }

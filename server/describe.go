package main

import (
	"errors"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/printable"
)

// describe words an error for a terminal: where several fields are wrong, or several
// errors are joined, each has its own line. What others have put into it, such as the
// server that answered, is escaped.
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

// linesOf is an error with a line for each of those that are joined in it.
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

// shown is a text of others on one line, without what looks like a secret in a wrong
// place.
func shown(text string) string { return printable.Text(api.Redact(text)) }

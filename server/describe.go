package main

import (
	"errors"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// describe words an error for a terminal: where several fields are wrong, each
// has its own line.
func describe(err error) string {
	fields, ok := errors.AsType[api.FieldErrors](err)
	if !ok {
		if problem, isProblem := errors.AsType[*api.Problem](err); isProblem {
			fields = problem.Errors
		}
	}
	if len(fields) < 2 {
		return strings.ReplaceAll(err.Error(), "\n", "\n  ") // joined errors have a line each
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(strings.Replace(err.Error(), fields.Error(), "", 1), ": "))
	if b.Len() == 0 {
		b.WriteString("several fields are invalid")
	}
	for _, field := range fields {
		b.WriteString("\n  " + field.Error())
	}
	return b.String()
}

package api

import (
	"slices"
	"strings"
	"time"
)

// Succeed returns the amounts after a complete report. A resource that was known before and is
// missing in the report becomes 0, whereas a resource that was never reported is unknown.
func (q Quantities) Succeed(report Quantities) Quantities {
	var gone Quantities
	for name := range q {
		if _, ok := report[name]; !ok {
			if gone == nil {
				gone = Quantities{}
			}
			gone[name] = "0"
		}
	}
	return Overlay(report, gone)
}

// Missing returns the sorted names of the resources that are gone after complete reports: those
// that were gone or known before and are not reported. known and reported are ordered; the last
// report takes precedence.
func Missing(gone []string, known, reported []Quantities) []string {
	out := slices.Clone(gone)
	for i, report := range reported {
		out = slices.DeleteFunc(out, func(name string) bool { _, ok := report[name]; return ok })
		for name := range known[i] {
			if _, ok := report[name]; !ok && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	slices.Sort(out)
	return out
}

// GoneMessage returns the message of ResourcesGone if single resources are missing.
func GoneMessage(gone []string) string {
	return "is no longer reported, so the amount is 0: " + strings.Join(gone, ", ")
}

// WithResourcesGone returns the conditions with ResourcesGone set, or without it if reason is
// empty. at is when the loss was first seen.
func WithResourcesGone(conditions []Condition, reason, message string, at *time.Time) []Condition {
	old := FindCondition(conditions, ConditionResourcesGone)
	if reason == "" {
		RemoveCondition(&conditions, ConditionResourcesGone)
		return conditions
	}
	gone := Condition{Type: ConditionResourcesGone, Status: ConditionTrue, Reason: reason, Message: message, LastTransitionAt: at}
	if old == nil {
		return append(slices.Clip(conditions), gone)
	}
	gone.LastTransitionAt = old.LastTransitionAt
	if *old == gone {
		return conditions
	}
	out := slices.Clone(conditions)
	for i := range out {
		if out[i].Type == ConditionResourcesGone {
			out[i] = gone
		}
	}
	return out
}

package api

import (
	"slices"
	"strings"
	"time"
)

// Succeed is the amounts after a report that has all there is: of what was known
// before and is not in it there is 0 from now on. It is not unknown, as what was
// never reported is.
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

// Missing are the names of the resources that are gone after reports that have all
// there is, in order: those of gone before, and what was known before, without what
// was reported. The last report counts most.
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

// GoneMessage is that of ResourcesGone where single resources are missing.
func GoneMessage(gone []string) string {
	return "was reported before and no longer is, so that there is 0 of it: " + strings.Join(gone, ", ")
}

// WithResourcesGone is a list of conditions with ResourcesGone, or without it where
// there is no reason for it. at is when that was seen first.
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

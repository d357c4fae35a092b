// Package status contains what the signal packages share for writing statuses.
package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Write is a write of the status of an object, on the condition that the user-written part still
// has the revision that was observed.
type Write struct {
	Object       api.Object
	SpecRevision int64
}

// StaleError lists the objects whose user-written part was changed or deleted in the meantime; the
// others of the call are written.
type StaleError struct{ Keys []api.Key }

// FailedError lists the objects whose status could not be written, with reasons; the others of the
// call are written.
type FailedError struct{ Failed map[api.Key]error }

// Error implements error.
func (e *FailedError) Error() string {
	lines := make([]string, 0, len(e.Failed))
	for key, err := range e.Failed {
		lines = append(lines, key.String()+": "+err.Error())
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// Unwrap returns the reasons.
func (e *FailedError) Unwrap() []error { return slices.Collect(maps.Values(e.Failed)) }

// Error implements error.
func (e *StaleError) Error() string {
	names := make([]string, len(e.Keys))
	for i, key := range e.Keys {
		names[i] = key.String()
	}
	return fmt.Sprintf("changed in the meantime: %s", strings.Join(names, ", "))
}

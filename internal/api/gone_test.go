package api

import (
	"maps"
	"slices"
	"testing"
)

// TestSucceed checks that a resource missing in a report is 0 if it was known before, and is listed
// as gone until it is reported again. A resource that was never reported stays unknown.
func TestSucceed(t *testing.T) {
	capacity, allocatable, gone := Quantities(nil), Quantities(nil), []string(nil)
	for _, step := range []struct {
		capacity, allocatable Quantities // nil = not reported
		want                  Quantities // allocatable
		gone                  []string
	}{
		{allocatable: Quantities{}, want: Quantities{}},
		{allocatable: Quantities{"cpu": "8", "gpu": "2"}, want: Quantities{"cpu": "8", "gpu": "2"}},
		{allocatable: Quantities{"cpu": "8"}, want: Quantities{"cpu": "8", "gpu": "0"}, gone: []string{"gpu"}},
		{allocatable: Quantities{"cpu": "4"}, want: Quantities{"cpu": "4", "gpu": "0"}, gone: []string{"gpu"}},
		{capacity: Quantities{"cpu": "4"}, want: Quantities{"cpu": "4", "gpu": "0"}, gone: []string{"gpu"}},
		{allocatable: Quantities{}, want: Quantities{"cpu": "0", "gpu": "0"}, gone: []string{"cpu", "gpu"}},
		{allocatable: Quantities{"cpu": "4", "gpu": "1"}, want: Quantities{"cpu": "4", "gpu": "1"}},
		// All nodes that have it are cordoned.
		{capacity: Quantities{"cpu": "4", "gpu": "1"}, allocatable: Quantities{"cpu": "4"}, want: Quantities{"cpu": "4", "gpu": "0"}, gone: []string{"gpu"}},
	} {
		var known, reported []Quantities
		if step.capacity != nil {
			known, reported = append(known, capacity), append(reported, step.capacity)
			capacity = capacity.Succeed(step.capacity)
		}
		if step.allocatable != nil {
			known, reported = append(known, allocatable), append(reported, step.allocatable)
			allocatable = allocatable.Succeed(step.allocatable)
		}
		if gone = Missing(gone, known, reported); !maps.Equal(allocatable, step.want) || !slices.Equal(gone, step.gone) {
			t.Errorf("after %v and %v: %v without %v, want %v without %v", step.capacity, step.allocatable, allocatable, gone, step.want, step.gone)
		}
	}
}

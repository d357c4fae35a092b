package columns

import "time"

// TimeOf returns the time, or the zero time for nil.
func TimeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// SameTime reports whether two times are the same instant, or both absent.
func SameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

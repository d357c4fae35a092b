package movement

import "time"

// Budget is what is left of a limit on moves.
type Budget struct {
	// Name says which budget it is, for messages.
	Name string
	// Left is how many more moves are possible now.
	Left int64
	// NextAt is when more become possible once none is left; zero if never.
	NextAt time.Time
}

// NewBudget returns what is left of a limit at a time. used are the moves of the last time, oldest
// first.
func NewBudget(name string, limit int64, per time.Duration, used []Use, now time.Time) Budget {
	b := Budget{Name: name, Left: limit}
	for _, u := range used {
		if !u.Over(per, now) {
			b.Left -= u.Moves
		}
	}
	if limit <= 0 {
		return b // never
	}
	room := min(b.Left, 0)
	for _, u := range used {
		if u.Over(per, now) {
			continue
		}
		if room += u.Moves; room > 0 {
			b.NextAt = u.At.Add(per)
			return b
		}
	}
	b.NextAt = now.Add(per) // after what this decision uses
	return b
}

// Use is what was used of a budget at one time.
type Use struct {
	At    time.Time
	Moves int64
}

// Over reports whether it no longer counts in a budget with the given time.
func (u Use) Over(per time.Duration, now time.Time) bool { return !now.Before(u.At.Add(per)) }

package ledger

// Len returns the number of holds.
func (r *Reservations) Len() int { return r.holds.Len() }

// Counts returns how many counts a load keeps apart, which is what a copy of it takes.
func (l *Load) Counts() int { return len(l.tally) }

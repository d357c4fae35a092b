package ledger

// Len returns the number of holds.
func (r *Reservations) Len() int { return r.holds.Len() }

package ledger

// Len is how many holds there are.
func (r *Reservations) Len() int { return r.holds.Len() }

package division

// refill lets replicas in overflow tiers give way to room in the tiers before them:
// as many as are wanted are kept, or are given away anew, from the first tier on. What
// a tier loses it loses as it would lose a surplus.
func (d *Divider) refill(r *Request) {
	for i := range d.places {
		d.places[i].seats = d.places[i].kept
	}
	left := r.Replicas
	for tier := range d.tiers {
		var room, kept int64
		for i := range d.places {
			if p := &d.places[i]; p.tier == tier {
				room += p.most
				kept += p.kept
			}
		}
		wanted := min(room, left)
		left -= wanted
		if kept > wanted {
			d.yield(r, tier, wanted)
		}
	}
	d.kept, d.holders = 0, 0
	for i := range d.places {
		p := &d.places[i]
		p.votes += p.kept - p.seats
		p.kept, p.seats = p.seats, 0
		d.kept += p.kept
		if p.holds = p.kept > 0; p.holds {
			d.holders++
		}
	}
}

// yield leaves a tier so many replicas.
func (d *Divider) yield(r *Request, tier int32, replicas int64) {
	for i := range d.places {
		if p := &d.places[i]; p.tier == tier {
			replicas -= p.reserve()
		}
	}
	d.contractTier(r, tier, max(replicas, 0))
}

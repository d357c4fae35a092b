package division

// gather makes places of the candidates that can be used, and of their overflow tiers
// what is to be filled again.
func (as *assignment) gather(r *Request, candidates []Candidate) {
	as.pool.gather(r, candidates)
	if r.Refill && r.divided() && !r.anew() && as.tiers > 1 {
		as.refill(r)
	}
}

// refill lets replicas in overflow tiers give way to room in the tiers before them:
// as many as are wanted are kept, or are given away anew, from the first tier on. What
// a tier loses it loses as it would lose a surplus.
func (as *assignment) refill(r *Request) {
	for i := range as.places {
		as.places[i].replicas = as.places[i].kept
	}
	left := r.Replicas
	for tier := range as.tiers {
		var room, kept int64
		for i := range as.places {
			if p := &as.places[i]; p.tier == tier {
				room += p.most
				kept += p.kept
			}
		}
		wanted := min(room, left)
		left -= wanted
		if kept > wanted {
			as.yield(r, tier, wanted)
		}
	}
	as.kept, as.holders = 0, 0
	for i := range as.places {
		p := &as.places[i]
		p.votes += p.kept - p.replicas
		p.kept, p.replicas = p.replicas, 0
		as.kept += p.kept
		if p.holds = p.kept > 0; p.holds {
			as.holders++
		}
	}
}

// yield leaves a tier so many replicas.
func (as *assignment) yield(r *Request, tier int32, replicas int64) {
	for i := range as.places {
		if p := &as.places[i]; p.tier == tier {
			replicas -= p.reserve()
		}
	}
	as.contractTier(r, tier, max(replicas, 0))
}

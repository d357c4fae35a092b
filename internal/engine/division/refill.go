package division

// gather creates places from the usable candidates, and records what can be moved back from
// overflow tiers.
func (as *assignment) gather(r *Request, candidates []Candidate) {
	as.pool.gather(r, candidates)
	if r.Refill && r.divided() && !r.anew() && as.tiers > 1 {
		as.refill(r)
	}
}

// refill moves replicas from overflow tiers to room in earlier tiers: as many as requested are kept
// or divided anew, starting with the first tier. What a tier loses is removed in the same way as a
// surplus.
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

// yield reduces a tier to the given number of replicas.
func (as *assignment) yield(r *Request, tier int32, replicas int64) {
	for i := range as.places {
		if p := &as.places[i]; p.tier == tier {
			replicas -= p.reserve()
		}
	}
	as.contractTier(r, tier, max(replicas, 0))
}

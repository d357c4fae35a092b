package division

import "slices"

// Aggregate uses as few clusters as can hold the replicas under the constraints. Running replicas
// stay, so no cluster that holds replicas is left out unless there is a surplus.

// chooseFewest reduces a choice that meets the constraints to the minimum: it repeats the search
// with ever smaller limits on the number of clusters.
func (sel *choice) chooseFewest(r *Request, tier int32) {
	if r.Mode != Aggregate || !r.divided() {
		return
	}
	most := sel.limits.most
	defer func() { sel.limits.most = most }()
	least, found := sel.leastPlaces(r, tier), int64(len(sel.chosen))
	last, bound := most, most // the last limit tried, and the smallest that works
	for step := int64(1); least < found; {
		// Usually the lower bound or slightly more is enough.
		k := min(least+step-1, (least+found)/2)
		sel.limits.most, last = k, k
		sel.roomiest, sel.ceilingRoom = 0, 0
		if sel.chooseOnce(r, tier) != nil {
			least, step = k+1, 2*step
			continue
		}
		found, step, bound = int64(len(sel.chosen)), 1, k
	}
	if last != bound { // the last limit tried was too small
		sel.limits.most = bound
		_ = sel.chooseOnce(r, tier) // succeeds, as it did before
	}
}

// leastPlaces returns a lower bound on the places that a choice needs: those that are always used,
// and the roomiest of the others.
func (sel *selection) leastPlaces(r *Request, tier int32) int64 {
	var places, room int64
	var others []int64
	for i := range sel.places {
		p := &sel.places[i]
		switch {
		case p.stays, p.tier < tier:
			places++
			room += p.most
		case p.tier == tier:
			others = append(others, p.most)
		}
	}
	slices.Sort(others)
	for i := len(others) - 1; i >= 0 && room < r.Replicas; i-- {
		places++
		room += others[i]
	}
	return max(places, sel.limits.least, 1)
}

// surplus reports whether replicas must be removed and the constraints affect which ones.
func (pl *pool) surplus(r *Request) bool {
	return r.Mode == Aggregate && r.divided() && !r.Fresh && pl.kept > r.Replicas && len(r.Constraints) > 0
}

// onlyHolders keeps only the places that hold replicas, without room for more: the surplus is
// removed from places that are not chosen, starting with the last tier.
func (pl *pool) onlyHolders(r *Request) {
	last, left := int32(0), r.Replicas // the tier in which the surplus begins
	for ; last < pl.tiers; last++ {
		for i := range pl.places {
			if p := &pl.places[i]; p.tier == last {
				left -= p.kept
			}
		}
		if left <= 0 {
			break
		}
	}
	pl.holders, pl.room, pl.kept, pl.tiers = 0, 0, 0, last+1
	for i := range pl.places {
		p := &pl.places[i]
		p.state = out
		if p.kept == 0 || p.kept < p.least || p.tier > last {
			continue
		}
		p.state, p.most = chosen, min(p.kept, p.most)
		if p.holds = p.tier < last; p.holds {
			pl.holders++
		}
		pl.room += p.most
		pl.kept += p.kept
	}
	pl.keepChosen()
}

// preferPresent replaces parties that are no more needed than the last one by places that held
// replicas, if a new division then needs no more clusters: what can stay stays. room is the room of
// all parties, n what they must hold.
func (as *assignment) preferPresent(r *Request, tier int32, room, n int64) {
	if !r.Fresh || as.minima() {
		return
	}
	in := make(map[int32]bool, len(as.parties))
	for i := range as.parties {
		in[as.parties[i].place] = true
	}
	var present []int32
	for i := range as.places {
		if p := &as.places[i]; p.tier == tier && p.state != out && p.held > 0 && !in[int32(i)] {
			present = append(present, int32(i))
		}
	}
	slices.SortFunc(present, func(i, j int32) int {
		return compareEntries(as.entry(byPreference, int(i)), as.entry(byPreference, int(j)))
	})
	k := len(as.parties) - 1
	for _, i := range present {
		for k >= 0 && (as.places[as.parties[k].place].held > 0 || as.places[as.parties[k].place].must) {
			k--
		}
		if k < 0 {
			return
		}
		mine, theirs := as.places[i].party(r, i), as.parties[k]
		if with := room - (theirs.upper - theirs.replicas) + (mine.upper - mine.replicas); with >= n {
			room = with
			as.parties[k] = mine
		}
	}
}

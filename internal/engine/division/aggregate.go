package division

import "slices"

// This file holds what is particular to Aggregate: as few clusters as can hold the
// replicas under the constraints. What runs stays, so of clusters that hold replicas
// none is left out unless there is a surplus.

// chooseFewest makes a choice that holds the constraints as small as it can be: the
// same search once more, with a smaller and smaller bound on clusters.
func (d *Divider) chooseFewest(r *Request, keep bool, tier int32) {
	if r.Mode != Aggregate || !r.divided() {
		return
	}
	most := d.limits.most
	defer func() { d.limits.most = most }()
	least, found := d.leastPlaces(r, keep, tier), int64(len(d.chosen))
	last, bound := most, most // the last one tried, and the smallest that will do
	for step := int64(1); least < found; {
		// Mostly the lower bound is enough, or little more.
		k := min(least+step-1, (least+found)/2)
		d.limits.most, last = k, k
		d.roomiest, d.ceilingRoom = 0, 0
		if d.chooseOnce(r, keep, tier) != nil {
			least, step = k+1, 2*step
			continue
		}
		found, step, bound = int64(len(d.chosen)), 1, k
	}
	if last != bound { // the last one tried was too small
		d.limits.most = bound
		_ = d.chooseOnce(r, keep, tier) // succeeds, as it did before
	}
}

// leastPlaces is at most as many places as a choice needs: those that it has in any
// case, and the roomiest of the others.
func (d *Divider) leastPlaces(r *Request, keep bool, tier int32) int64 {
	var places, room int64
	var others []int64
	for i := range d.places {
		p := &d.places[i]
		switch {
		case keep && p.holds, p.tier < tier:
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
	return max(places, d.limits.least, 1)
}

// surplus reports whether replicas that are held are to go, and the constraints say
// something about which.
func (d *Divider) surplus(r *Request) bool {
	return r.Mode == Aggregate && r.divided() && !r.Fresh && d.kept > r.Replicas && len(r.Constraints) > 0
}

// onlyHolders leaves the places that hold replicas, none with room for more: the
// surplus goes from those that are not chosen, from the last tier on.
func (d *Divider) onlyHolders(r *Request) {
	last, left := int32(0), r.Replicas // the tier that the surplus begins in
	for ; last < d.tiers; last++ {
		for i := range d.places {
			if p := &d.places[i]; p.tier == last {
				left -= p.kept
			}
		}
		if left <= 0 {
			break
		}
	}
	d.holders, d.room, d.kept, d.tiers = 0, 0, 0, last+1
	for i := range d.places {
		p := &d.places[i]
		p.state = out
		if p.kept == 0 || p.kept < p.least || p.tier > last {
			continue
		}
		p.state, p.most = chosen, min(p.kept, p.most)
		if p.holds = p.tier < last; p.holds {
			d.holders++
		}
		d.room += p.most
		d.kept += p.kept
	}
	d.keepChosen()
}

// preferPresent exchanges claims, of which none is needed less than the last, for
// those of places that held replicas, where a new division needs no more clusters with
// them: what can stay stays. room is that of all claims, n what they have to hold.
func (d *Divider) preferPresent(r *Request, tier int32, room, n int64) {
	if !r.Fresh || d.minima() {
		return
	}
	in := make(map[int32]bool, len(d.claims))
	for i := range d.claims {
		in[d.claims[i].place] = true
	}
	var present []int32
	for i := range d.places {
		if p := &d.places[i]; p.tier == tier && p.state != out && p.held > 0 && !in[int32(i)] {
			present = append(present, int32(i))
		}
	}
	slices.SortFunc(present, func(i, j int32) int {
		return compareEntries(d.entry(byPreference, int(i)), d.entry(byPreference, int(j)))
	})
	k := len(d.claims) - 1
	for _, i := range present {
		for k >= 0 && (d.places[d.claims[k].place].held > 0 || d.places[d.claims[k].place].must) {
			k--
		}
		if k < 0 {
			return
		}
		mine, theirs := d.places[i].claim(r, i), d.claims[k]
		if with := room - (theirs.upper - theirs.seats) + (mine.upper - mine.seats); with >= n {
			room = with
			d.claims[k] = mine
		}
	}
}

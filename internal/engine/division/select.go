package division

import "slices"

// limits are the constraints on the choice that can make a difference.
type limits struct {
	least, most     int64   // number of clusters
	tallies         []tally // by group constraint
	limited         bool    // some constraint limits the choice of groups
	leastBy, mostBy string  // groupings of the constraints on the number of clusters
}

// clear resets the counts.
func (l *limits) clear() {
	for i := range l.tallies {
		t := &l.tallies[i]
		t.reset(t.constraint)
	}
}

// count counts a place for the group constraints.
func (l *limits) count(p *place) {
	for i := range l.tallies {
		l.tallies[i].add(p.row)
	}
}

// selection holds which places of the pool are chosen, and the limits.
type selection struct {
	pool

	limits     limits
	few        bool // no more places are chosen than there are replicas
	chosen     []int32
	chosenRoom int64
	roomiest   int64 // the most room of any choice so far
	// Upper bound on the room of any choice; 0 = unknown.
	ceilingRoom int64
}

// limit reads the constraints. It fails if there are too few groups.
func (sel *selection) limit(r *Request) error {
	l := &sel.limits
	l.least, l.most, l.leastBy, l.mostBy = 1, int64(len(sel.places)), "", ""
	l.limited = false
	unused := l.tallies[:cap(l.tallies)]
	l.tallies = unused[:0]
	for i := range r.Constraints {
		c := &r.Constraints[i]
		if c.Groups == nil {
			if c.Min > int64(len(sel.places)) {
				return &tooFewGroupsError{by: c.By, found: int64(len(sel.places)), min: c.Min}
			}
			if c.Min > l.least {
				l.least, l.leastBy = c.Min, c.By
			}
			if c.Max < l.most {
				l.most, l.mostBy = c.Max, c.By
			}
			continue
		}
		if c.Min <= 1 && c.Max == Unlimited {
			continue // requires nothing
		}
		n := len(l.tallies)
		if n < len(unused) {
			l.tallies = unused[:n+1]
		} else {
			l.tallies = append(l.tallies, tally{})
		}
		t := &l.tallies[n]
		t.reset(c)
		for j := range sel.places {
			t.add(sel.places[j].row)
			if t.groups >= c.Min && t.groups > c.Max {
				break
			}
		}
		if t.groups < c.Min {
			return &tooFewGroupsError{by: c.By, found: t.groups, min: c.Min}
		}
		// As Karmada does, copies go to no more groups than the minima ask for, if there is a maximum.
		t.limits = t.groups > c.Max || r.Mode == Aggregate || r.Mode == Duplicate && c.Max != Unlimited
		l.limited = l.limited || t.limits
	}
	if sel.few {
		l.most = min(l.most, r.Replicas)
	}
	return nil
}

// narrowest names a constraint that prevents clusters from being used together.
func (l *limits) narrowest() string {
	by, most := l.mostBy, l.most
	for i := range l.tallies {
		if c := l.tallies[i].constraint; by == "" || c.Max <= most {
			by, most = c.By, c.Max
		}
	}
	return by
}

// choice is the selection under all constraints together.
type choice struct {
	groupSelection

	searchSteps int // taken by all searches
}

// choose keeps only places that the spread constraints allow to be used together.
func (sel *choice) choose(r *Request) error {
	if err := sel.limit(r); err != nil {
		return err
	}
	n := int64(len(sel.places))
	if r.divided() {
		if sel.room < r.Replicas {
			return &NoRoomError{Room: sel.room, Wanted: r.Replicas}
		}
		if l := &sel.limits; l.least > r.Replicas {
			return &tooFewReplicasError{replicas: r.Replicas, needed: l.least, by: l.leastBy}
		}
	}
	if !sel.limits.limited && sel.limits.most >= n {
		return nil
	}
	// First try to keep all places that hold replicas, then as much as can stay. Use a tier only if
	// the earlier ones are not enough.
	sel.roomiest, sel.ceilingRoom = 0, 0
	if sel.holders == 0 {
		return sel.chooseTier(r)
	}
	sel.keep(func(p *place) bool { return p.holds })
	err := sel.chooseTier(r)
	if err != nil {
		sel.keepMost(r)
		err = sel.chooseTier(r)
	}
	return err
}

// chooseTier chooses from as few tiers as possible, in addition to the places that stay.
func (sel *choice) chooseTier(r *Request) error {
	var err error
	for tier := range sel.tiers {
		if err = sel.chooseOnce(r, tier); err == nil {
			sel.chooseFewest(r, tier)
			sel.keepChosen()
			return nil
		}
	}
	return err
}

// chooseOnce chooses up to a tier.
func (sel *choice) chooseOnce(r *Request, tier int32) error {
	if len(sel.limits.tallies) == 0 {
		return sel.chooseClusters(r, tier)
	}
	return sel.chooseGroups(r, tier)
}

// chooseClusters chooses as many clusters as are allowed.
func (sel *choice) chooseClusters(r *Request, tier int32) error {
	sel.restart(tier)
	for _, e := range sel.first(sel.limits.most-int64(len(sel.chosen)), byPreference, everywhere) {
		sel.pick(e.place)
	}
	if sel.lacksRoom(r) && !sel.replace(r) || int64(len(sel.chosen)) < sel.limits.least || int64(len(sel.chosen)) > sel.limits.most {
		return &NoRoomError{Room: sel.roomiest, Wanted: r.Replicas, by: sel.limits.mostBy}
	}
	return nil
}

// pick chooses a place.
func (sel *selection) pick(i int32) {
	p := &sel.places[i]
	p.state = chosen
	sel.chosen = append(sel.chosen, i)
	sel.chosenRoom += p.most
	sel.limits.count(p)
}

// lacksRoom reports whether the chosen places have too little room.
func (sel *selection) lacksRoom(r *Request) bool {
	return r.divided() && sel.chosenRoom < r.Replicas
}

// forget resets the selection and leaves out the tiers after the given one.
func (sel *selection) forget(tier int32) {
	if sel.marked || sel.tiers > 1 {
		for i := range sel.places {
			p := &sel.places[i]
			p.state = undecided
			if p.tier > tier && !p.holds {
				p.state = out
			}
		}
	}
	sel.marked = true
	sel.chosen, sel.chosenRoom = sel.chosen[:0], 0
	sel.limits.clear()
}

// replace replaces chosen places, starting with the last, by the roomiest ones that have more room,
// until there is enough. Required groups stay covered. A replacement may make another one possible,
// so this repeats until nothing changes.
func (sel *selection) replace(r *Request) bool {
	for before := int64(-1); sel.chosenRoom < r.Replicas && sel.chosenRoom != before; {
		before = sel.chosenRoom
		sel.replaceOnce(r)
	}
	sel.roomiest = max(sel.roomiest, sel.chosenRoom)
	return sel.chosenRoom >= r.Replicas
}

func (sel *selection) replaceOnce(r *Request) {
	rest := slices.Clone(sel.first(int64(len(sel.places)), byPreference, everywhere))
	roomier := func(a, b entry) int {
		return int(min(1, max(-1, sel.places[b.place].most-sel.places[a.place].most)))
	}
	slices.SortStableFunc(rest, roomier)
	mine := make([]entry, 0, len(sel.chosen))
	for i := range sel.places {
		if sel.places[i].state == chosen {
			mine = append(mine, sel.entry(byPreference, i))
		}
	}
	slices.SortFunc(mine, compareEntries)
	for k := len(mine) - 1; k >= 0 && sel.chosenRoom < r.Replicas; k-- {
		old := &sel.places[mine[k].place]
		if old.stays {
			continue
		}
		for j := range rest {
			e := rest[j]
			p := &sel.places[e.place]
			if p.most <= old.most {
				break
			}
			if !sel.exchange(old, p) {
				continue
			}
			old.state, p.state = undecided, chosen
			sel.chosenRoom += p.most - old.most
			rest = slices.Delete(rest, j, j+1)
			at, _ := slices.BinarySearchFunc(rest, mine[k], roomier)
			rest = slices.Insert(rest, at, mine[k])
			break
		}
	}
}

// exchange counts one place instead of another if the constraints still hold.
func (sel *selection) exchange(old, p *place) bool {
	hold := true
	for i := range sel.limits.tallies {
		t := &sel.limits.tallies[i]
		t.remove(old.row)
		t.add(p.row)
		hold = hold && t.holds()
	}
	if hold {
		return true
	}
	for i := range sel.limits.tallies {
		t := &sel.limits.tallies[i]
		t.remove(p.row)
		t.add(old.row)
	}
	return false
}

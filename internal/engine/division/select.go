package division

import "slices"

// limits are the constraints on what is chosen, as far as they can make a
// difference.
type limits struct {
	least, most     int64   // clusters
	tallies         []tally // by constraint on groups
	leastBy, mostBy string  // constraints on clusters
}

// limit reads the constraints. It returns an error if there are too few groups.
func (d *Divider) limit(r *Request) error {
	l := &d.limits
	l.least, l.most, l.leastBy, l.mostBy = 1, int64(len(d.places)), "", ""
	unused := l.tallies[:cap(l.tallies)]
	l.tallies = unused[:0]
	for i := range r.Constraints {
		c := &r.Constraints[i]
		if c.Groups == nil {
			if c.Min > int64(len(d.places)) {
				return &tooFewGroupsError{by: c.By, found: int64(len(d.places)), min: c.Min}
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
			continue // asks for nothing
		}
		n := len(l.tallies)
		if n < len(unused) {
			l.tallies = unused[:n+1]
		} else {
			l.tallies = append(l.tallies, tally{})
		}
		t := &l.tallies[n]
		t.reset(c)
		for j := range d.places {
			t.add(d.places[j].row)
			if t.groups >= c.Min {
				break
			}
		}
		if t.groups < c.Min {
			return &tooFewGroupsError{by: c.By, found: t.groups, min: c.Min}
		}
	}
	if d.few {
		l.most = min(l.most, r.Replicas)
	}
	return nil
}

// narrowest names a constraint that keeps clusters from being used together.
func (l *limits) narrowest() string {
	by, most := l.mostBy, l.most
	for i := range l.tallies {
		if c := l.tallies[i].constraint; by == "" || c.Max <= most {
			by, most = c.By, c.Max
		}
	}
	return by
}

// choose leaves only those places that the spread constraints allow to be used
// together.
func (d *Divider) choose(r *Request) error {
	if err := d.limit(r); err != nil {
		return err
	}
	n := int64(len(d.places))
	if r.divided() {
		if d.room < r.Replicas {
			return &NoRoomError{Room: d.room, Wanted: r.Replicas}
		}
		if l := &d.limits; l.least > r.Replicas {
			return &tooFewReplicasError{replicas: r.Replicas, needed: l.least, by: l.leastBy}
		}
	}
	if len(d.limits.tallies) == 0 && d.limits.most >= n {
		return nil
	}
	// First so that all stay that hold replicas, then freely; and a tier is used
	// only where those before it are not enough.
	var err error
	d.roomiest, d.ceilingRoom = 0, 0
	for _, keep := range []bool{true, false} {
		if keep && d.holders == 0 {
			continue
		}
		for tier := range d.tiers {
			if err = d.chooseOnce(r, keep, tier); err == nil {
				d.chooseFewest(r, keep, tier)
				d.keepChosen()
				return nil
			}
		}
	}
	return err
}

// chooseOnce chooses with or without all that holds replicas, up to a tier.
func (d *Divider) chooseOnce(r *Request, keep bool, tier int32) error {
	if len(d.limits.tallies) == 0 {
		return d.chooseClusters(r, keep, tier)
	}
	return d.chooseGroups(r, keep, tier)
}

// chooseClusters chooses as many clusters as are allowed.
func (d *Divider) chooseClusters(r *Request, keep bool, tier int32) error {
	d.forget(tier)
	for _, e := range d.first(d.limits.most, byPreference, everywhere) {
		d.pick(e.place)
	}
	if d.lacksRoom(r) && !d.replace(r, keep) || int64(len(d.chosen)) < d.limits.least {
		return &NoRoomError{Room: d.roomiest, Wanted: r.Replicas, by: d.limits.mostBy}
	}
	return nil
}

// pick chooses a place.
func (d *Divider) pick(i int32) {
	p := &d.places[i]
	p.state = chosen
	d.chosen = append(d.chosen, i)
	d.chosenRoom += p.most
	d.tally(p)
}

// lacksRoom reports whether the chosen places have too little room.
func (d *Divider) lacksRoom(r *Request) bool {
	return r.divided() && d.chosenRoom < r.Replicas
}

// keepChosen drops the places that are not chosen.
func (d *Divider) keepChosen() {
	n := 0
	for i := range d.places {
		if d.places[i].state == chosen {
			d.places[n] = d.places[i]
			d.places[n].state = undecided
			n++
		}
	}
	d.places = d.places[:n]
}

// forget takes all choices back. Further tiers than the given one are left out.
func (d *Divider) forget(tier int32) {
	if d.marked || d.tiers > 1 {
		for i := range d.places {
			p := &d.places[i]
			p.state = undecided
			if p.tier > tier && !p.holds {
				p.state = out
			}
		}
	}
	d.marked = true
	d.chosen, d.chosenRoom = d.chosen[:0], 0
	d.clearTallies()
}

// replace exchanges chosen places, from the last on, each for the roomiest that is
// roomier, until there is enough room. Groups that are needed stay covered; what
// covers one may give way when another does, so it goes round until nothing
// changes. With keep those that hold replicas stay.
func (d *Divider) replace(r *Request, keep bool) bool {
	for before := int64(-1); d.chosenRoom < r.Replicas && d.chosenRoom != before; {
		before = d.chosenRoom
		d.replaceOnce(r, keep)
	}
	d.roomiest = max(d.roomiest, d.chosenRoom)
	return d.chosenRoom >= r.Replicas
}

func (d *Divider) replaceOnce(r *Request, keep bool) {
	rest := slices.Clone(d.first(int64(len(d.places)), byPreference, everywhere))
	roomier := func(a, b entry) int {
		return int(min(1, max(-1, d.places[b.place].most-d.places[a.place].most)))
	}
	slices.SortStableFunc(rest, roomier)
	mine := make([]entry, 0, len(d.chosen))
	for i := range d.places {
		if d.places[i].state == chosen {
			mine = append(mine, d.entry(byPreference, i))
		}
	}
	slices.SortFunc(mine, compareEntries)
	for k := len(mine) - 1; k >= 0 && d.chosenRoom < r.Replicas; k-- {
		old := &d.places[mine[k].place]
		if keep && old.holds {
			continue
		}
		for j := range rest {
			e := rest[j]
			p := &d.places[e.place]
			if p.most <= old.most {
				break
			}
			if !d.exchange(old, p) {
				continue
			}
			old.state, p.state = undecided, chosen
			d.chosenRoom += p.most - old.most
			rest = slices.Delete(rest, j, j+1)
			at, _ := slices.BinarySearchFunc(rest, mine[k], roomier)
			rest = slices.Insert(rest, at, mine[k])
			break
		}
	}
}

// exchange counts one place instead of another, if the constraints still hold.
func (d *Divider) exchange(old, p *place) bool {
	hold := true
	for i := range d.limits.tallies {
		t := &d.limits.tallies[i]
		t.remove(old.row)
		t.add(p.row)
		hold = hold && t.holds()
	}
	if hold {
		return true
	}
	for i := range d.limits.tallies {
		t := &d.limits.tallies[i]
		t.remove(p.row)
		t.add(old.row)
	}
	return false
}

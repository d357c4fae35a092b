package division

import (
	"slices"
)

// limits are the constraints on what is chosen, as far as they can make a
// difference.
type limits struct {
	least, most int64   // clusters
	tallies     []tally // by constraint on groups
	leastOf     *Constraint
}

// limit reads the constraints. It returns an error if there are too few groups.
func (d *Divider) limit(r *Request) error {
	l := &d.limits
	l.least, l.most, l.leastOf = 1, int64(len(d.places)), nil
	unused := l.tallies[:cap(l.tallies)]
	l.tallies = unused[:0]
	for i := range r.Constraints {
		c := &r.Constraints[i]
		if c.Groups == nil {
			if c.Min > int64(len(d.places)) {
				return &TooFewGroupsError{By: c.By, Found: int64(len(d.places)), Min: c.Min}
			}
			if c.Min > l.least {
				l.least, l.leastOf = c.Min, c
			}
			l.most = min(l.most, c.Max)
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
			return &TooFewGroupsError{By: c.By, Found: t.groups, Min: c.Min}
		}
	}
	return nil
}

// choose leaves only those places that the spread constraints allow to be used
// together.
func (d *Divider) choose(r *Request) error {
	if err := d.limit(r); err != nil {
		return err
	}
	n := int64(len(d.places))
	if r.divided() {
		if room := d.total(); room < r.Replicas {
			return &NoRoomError{Room: room, Wanted: r.Replicas}
		}
		if l := &d.limits; l.least > r.Replicas {
			return &TooFewReplicasError{Replicas: r.Replicas, Needed: l.least, By: l.leastOf.By}
		}
	}
	if len(d.limits.tallies) == 0 {
		if d.limits.most >= n {
			return nil
		}
		for _, e := range d.first(d.limits.most, byPreference, everywhere) {
			d.pick(e.place)
		}
		if d.lacksRoom(r) && !d.replace(r, false) {
			return d.noRoom(r)
		}
		d.keepChosen()
		return nil
	}
	return d.chooseGroups(r)
}

// total is the room of all places.
func (d *Divider) total() int64 {
	var total int64
	for i := range d.places {
		total += d.places[i].most
	}
	return total
}

func (d *Divider) noRoom(r *Request) error {
	return &NoRoomError{Room: d.roomiest, Wanted: r.Replicas, Limited: true}
}

// pick chooses a place.
func (d *Divider) pick(i int32) {
	p := &d.places[i]
	p.chosen = true
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
		if d.places[i].chosen {
			d.places[n] = d.places[i]
			d.places[n].chosen = false
			n++
		}
	}
	d.places = d.places[:n]
}

// forget takes all choices back.
func (d *Divider) forget() {
	for i := range d.places {
		d.places[i].chosen, d.places[i].out = false, false
	}
	d.chosen, d.chosenRoom = d.chosen[:0], 0
	d.clearTallies()
}

// replace exchanges chosen places, from the last on, each for the roomiest that is
// roomier, until there is enough room. Groups that are needed stay covered. With
// keep those that hold replicas stay.
func (d *Divider) replace(r *Request, keep bool) bool {
	rest := slices.Clone(d.first(int64(len(d.places)), byPreference, everywhere))
	roomier := func(a, b entry) int {
		return int(min(1, max(-1, d.places[b.place].most-d.places[a.place].most)))
	}
	slices.SortStableFunc(rest, roomier)
	mine := make([]entry, 0, len(d.chosen))
	for _, i := range d.chosen {
		mine = append(mine, d.entry(byPreference, int(i)))
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
			old.chosen, p.chosen = false, true
			d.chosenRoom += p.most - old.most
			rest = slices.Delete(rest, j, j+1)
			at, _ := slices.BinarySearchFunc(rest, mine[k], roomier)
			rest = slices.Insert(rest, at, mine[k])
			break
		}
	}
	d.roomiest = max(d.roomiest, d.chosenRoom)
	return d.chosenRoom >= r.Replicas
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

package division

import (
	"cmp"
	"slices"
)

// maxSearchSteps bounds the work of all searches for one division. A step looks at
// one class of places, so that a division takes about as long whatever the number
// of clusters is; it is a count and no time, so that the result is always the same.
const maxSearchSteps = 1 << 17

// search looks for places that hold several constraints at once, by trying all that
// differ. It is for what the attempts, which choose for one constraint after the
// other, have missed.
//
// Places in just the same groups are a class, and it is enough to try the roomiest
// place of each. A class that opens a group is either used or not: where a
// constraint lacks groups, for the constraint that the fewest classes help; after
// that, where room or clusters are missing, for any. Classes that open no group
// fill up what is left at the leaves, from the roomiest place on.
//
// Within its steps a search finds a choice with room enough if there is any, and
// without it knows that there is none. When the steps run out it gives up, and the
// division fails although another choice may hold. Half of the steps that are left
// are for one search, so that further ones have some, too.
type search struct {
	d       *Divider
	classes []class
	roomy   []entry // all places, from the roomiest on
	of      []int32 // class by place
	taken   []int32 // classes
	alive   []int32 // classes that may be taken, node by node
	helps   []int   // classes that help a constraint which lacks groups
	steps   int
	slots   int64 // places that may be taken still
	fill    int64 // places that may be taken or filled up with still
	need    int64 // replicas that there must be room for
	room    int64 // replicas that there is room for on what is taken and kept
	divided bool
}

// class are the places in the same groups.
type class struct {
	row       int32 // of any of its places
	preferred entry
	roomiest  entry
	room      int64 // of all its places that are not chosen in any case
	places    int64
	taken     bool // its roomiest place is
	banned    bool // is not used in this branch
	open      bool // opens no further group, at this leaf
}

// option is a class that could be taken.
type option struct {
	class int32
	gain  int64 // groups it opens that are missing; then the room it has
}

// search chooses places if it finds any that hold all constraints.
func (d *Divider) search(r *Request, keep bool, tier int32) bool {
	hard := func(t tally) bool { return len(d.limits.tallies) > 1 || t.constraint.Groups.Several != nil }
	if !slices.ContainsFunc(d.limits.tallies, hard) || d.hopeless(r) {
		return false
	}
	d.restart(keep, tier)
	s := d.newSearch(r)
	given := s.steps
	found := s.fill >= 0 && s.start()
	d.searchSteps += given - max(s.steps, 0)
	return found && (d.take(r, s, keep, tier, byPreference) || d.take(r, s, keep, tier, byRoom))
}

// restart takes all choices back, but for the places that hold replicas if they are
// to be kept.
func (d *Divider) restart(keep bool, tier int32) {
	d.forget(tier)
	if !keep {
		return
	}
	for i := range d.places {
		if d.places[i].holds {
			d.pick(int32(i))
		}
	}
}

// newSearch sorts the undecided places into classes, from the preferred on.
func (d *Divider) newSearch(r *Request) *search {
	s := &search{
		d:       d,
		of:      make([]int32, len(d.places)),
		steps:   (maxSearchSteps - d.searchSteps) / 2,
		fill:    d.limits.most - int64(len(d.chosen)),
		room:    d.chosenRoom,
		divided: r.divided(),
	}
	s.slots = s.fill
	if s.divided {
		s.need = r.Replicas
		// Each place that is needed for a group must get a replica.
		s.slots = min(s.slots, r.Replicas)
	}
	// Classes are refined group by group.
	type part struct{ of, constraint, group int32 }
	parts := map[part]int32{}
	index := map[int32]int32{}
	var one [1]int32
	for i := range d.places {
		p := &d.places[i]
		s.of[i] = -1
		if p.state != undecided {
			continue
		}
		at := int32(-1)
		for c := range d.limits.tallies {
			for _, g := range d.limits.tallies[c].constraint.Groups.of(p.row, &one) {
				next, ok := parts[part{at, int32(c), g}]
				if !ok {
					next = int32(len(parts))
					parts[part{at, int32(c), g}] = next
				}
				at = next
			}
		}
		k, ok := index[at]
		if !ok {
			k = int32(len(s.classes))
			index[at] = k
			s.classes = append(s.classes, class{row: p.row, preferred: d.entry(byPreference, i), roomiest: d.entry(byRoom, i)})
		}
		s.of[i] = k
		c := &s.classes[k]
		c.room += p.most
		c.places++
		if e := d.entry(byPreference, i); e.before(&c.preferred) {
			c.preferred = e
		}
		e := d.entry(byRoom, i)
		if e.before(&c.roomiest) {
			c.roomiest = e
		}
		s.roomy = append(s.roomy, e)
	}
	slices.SortFunc(s.roomy, compareEntries)
	return s
}

// start begins with all classes, from the preferred on.
func (s *search) start() bool {
	for i := range s.d.limits.tallies {
		if t := &s.d.limits.tallies[i]; t.groups > t.constraint.Max {
			return false
		}
	}
	s.helps = make([]int, len(s.d.limits.tallies))
	all := make([]int32, len(s.classes))
	for k := range all {
		all[k] = int32(k)
	}
	slices.SortFunc(all, func(k, l int32) int { return compareEntries(s.classes[k].preferred, s.classes[l].preferred) })
	return s.descend(all)
}

// descend tries the classes that may be taken in addition.
func (s *search) descend(from []int32) bool {
	options, from, done := s.look(from)
	if done || len(options) == 0 {
		return done
	}
	slices.SortStableFunc(options, func(a, b option) int { return cmp.Compare(b.gain, a.gain) })
	found := false
	for _, o := range options {
		c := &s.classes[o.class]
		s.add(o.class)
		if found = s.descend(from); found || s.steps < 0 {
			break
		}
		s.remove(o.class)
		c.banned = true
	}
	for _, o := range options {
		s.classes[o.class].banned = false
	}
	return found
}

// look says which classes to try next, and which of them may be tried later. It
// reports whether the search is done.
func (s *search) look(from []int32) (options []option, alive []int32, done bool) {
	tallies := s.d.limits.tallies
	var missing int64
	for i := range tallies {
		missing += max(tallies[i].constraint.Min-tallies[i].groups, 0)
		s.helps[i] = 0
	}
	if missing == 0 && s.leaf() {
		return nil, nil, true
	}
	if s.steps -= len(from); s.steps < 0 || s.slots <= 0 || s.fill <= 0 {
		return nil, nil, false
	}
	best := int64(0)
	for _, k := range from {
		c := &s.classes[k]
		opens, gain := s.opens(c)
		if c.banned || opens <= 0 {
			continue
		}
		alive = append(alive, k)
		if missing == 0 {
			options = append(options, option{class: k, gain: c.room})
		} else if gain > 0 {
			best = max(best, gain)
			options = append(options, option{class: k, gain: gain})
			for i := range tallies {
				if t := &tallies[i]; t.groups < t.constraint.Min && t.opens(c.row) > 0 {
					s.helps[i]++
				}
			}
		}
	}
	if missing == 0 {
		return options, alive, false
	}
	if missing > best*min(s.slots, s.fill) {
		return nil, nil, false
	}
	fewest := -1
	for i := range tallies {
		if t := &tallies[i]; t.groups < t.constraint.Min && (fewest < 0 || s.helps[i] < s.helps[fewest]) {
			fewest = i
		}
	}
	options = slices.DeleteFunc(options, func(o option) bool { return tallies[fewest].opens(s.classes[o.class].row) == 0 })
	return options, alive, false
}

// opens is how many groups a class opens, and how many of these are missing. It is
// negative if they are too many for a constraint.
func (s *search) opens(c *class) (opens, gain int64) {
	for i := range s.d.limits.tallies {
		t := &s.d.limits.tallies[i]
		n := t.opens(c.row)
		if n > 0 && t.groups+n > t.constraint.Max {
			return -1, 0
		}
		opens += n
		gain += min(n, max(t.constraint.Min-t.groups, 0))
	}
	return opens, gain
}

func (s *search) add(k int32) {
	c := &s.classes[k]
	for i := range s.d.limits.tallies {
		s.d.limits.tallies[i].add(c.row)
	}
	c.taken = true
	s.taken = append(s.taken, k)
	s.slots--
	s.fill--
	s.room += s.d.places[c.roomiest.place].most
}

func (s *search) remove(k int32) {
	c := &s.classes[k]
	for i := range s.d.limits.tallies {
		s.d.limits.tallies[i].remove(c.row)
	}
	c.taken = false
	s.taken = s.taken[:len(s.taken)-1]
	s.slots++
	s.fill++
	s.room -= s.d.places[c.roomiest.place].most
}

// leaf reports whether there are clusters and room enough in the groups that are
// open.
func (s *search) leaf() bool {
	s.steps -= len(s.classes)
	places, room := -int64(len(s.taken)), s.room
	for k := range s.classes {
		c := &s.classes[k]
		opens, _ := s.opens(c)
		if c.open = opens == 0; c.open {
			places += c.places
			room += c.room
		}
		if c.taken {
			room -= s.d.places[c.roomiest.place].most
		}
	}
	if s.d.limits.most-s.fill+min(s.fill, places) < s.d.limits.least {
		return false
	}
	if !s.divided {
		return true
	}
	if places > s.fill && (room >= s.need || s.d.roomiest == 0) {
		room = s.fillUp()
	}
	s.d.roomiest = max(s.d.roomiest, min(room, s.need))
	return room >= s.need
}

// fillUp is the room with the roomiest places of the classes that are open.
func (s *search) fillUp() int64 {
	room, left := s.room, s.fill
	for _, e := range s.roomy {
		if left == 0 || room >= s.need {
			break
		}
		s.steps--
		if c := &s.classes[s.of[e.place]]; c.open && !(c.taken && c.roomiest.place == e.place) {
			room += s.d.places[e.place].most
			left--
		}
	}
	return room
}

// take chooses the places that a search has found, and fills up in an order.
func (d *Divider) take(r *Request, s *search, keep bool, tier int32, o order) bool {
	d.restart(keep, tier)
	for _, k := range s.taken {
		e := s.classes[k].preferred
		if o == byRoom {
			e = s.classes[k].roomiest
		}
		d.pick(e.place)
	}
	for i := range d.places {
		p := &d.places[i]
		for c := range d.limits.tallies {
			if p.state == undecided && d.limits.tallies[c].opens(p.row) > 0 {
				p.state = out
			}
		}
	}
	for _, e := range d.first(d.limits.most-int64(len(d.chosen)), o, everywhere) {
		d.pick(e.place)
	}
	return !d.lacksRoom(r) || d.replace(r, keep)
}

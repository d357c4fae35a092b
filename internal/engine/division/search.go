package division

import "slices"

// maxSearchSteps limits the work of all searches for one division: about 2 ms. A step examines one
// class of places, so that the limit does not depend on their number. It is a count rather than a
// time, so that the result is deterministic.
const maxSearchSteps = 1 << 16

// search finds places that meet several constraints at once by backtracking. It is used if the
// attempts, which choose for one constraint after another, have failed.
//
// Places in the same groups form a class, and only the roomiest place of each needs to be tried. A
// class that opens a group is either used or not. If a constraint lacks groups, the search branches
// on the constraint that the fewest classes help; after that, if room or clusters are missing, on
// any class. At the leaves, classes that open no group fill up what is left, roomiest places first.
//
// A search that completes has found a choice with enough room or proved that there is none; minima
// of clusters are not considered. If the steps run out, it gives up, and the division may fail
// although some choice would work. Each search gets half of the remaining steps, so that further
// ones have some too.
type search struct {
	sel     *selection
	classes []class
	roomy   []entry // all places, by descending room once they are sorted
	sorted  bool
	of      []int32 // class by place
	taken   []int32 // classes
	alive   []int32 // classes that may be taken, by search node
	options []option
	helps   []int // classes that help a constraint that lacks groups
	steps   int
	slots   int64 // places that may still be taken
	fill    int64 // places that may still be taken or filled up
	need    int64 // replicas that need room
	room    int64 // room of what is taken and kept
	divided bool
}

// class is the set of places in the same groups.
type class struct {
	row       int32 // of any of its places
	preferred entry
	roomiest  entry
	room      int64 // of all its places that are not chosen already
	places    int64
	taken     bool // its roomiest place is taken
	banned    bool // not used in this branch
	open      bool // opens no further group at this leaf
}

// option is a class that could be taken.
type option struct {
	class int32
	at    int32 // position in the order of preference
	gain  int64 // missing groups that it opens; then its room
}

func (o *option) before(p *option) bool { return o.gain > p.gain || o.gain == p.gain && o.at < p.at }

// search chooses places that meet all constraints, if it finds any.
func (sel *choice) search(r *Request, tier int32) bool {
	hard := func(t tally) bool { return len(sel.limits.tallies) > 1 || t.constraint.Groups.Several != nil }
	if !slices.ContainsFunc(sel.limits.tallies, hard) || sel.hopeless(r) {
		return false
	}
	sel.restart(tier)
	s := sel.newSearch(r)
	given := s.steps
	found := s.fill >= 0 && s.start()
	sel.searchSteps += given - max(s.steps, 0)
	return found && (sel.take(r, s, tier, byPreference) || sel.take(r, s, tier, byRoom))
}

// restart resets the selection to the places that stay.
func (sel *selection) restart(tier int32) {
	sel.forget(tier)
	for i := range sel.places {
		if sel.places[i].stays {
			sel.pick(int32(i))
		}
	}
}

// newSearch starts a search with the undecided places grouped into classes.
func (sel *choice) newSearch(r *Request) *search {
	s := &search{
		sel:     &sel.selection,
		of:      make([]int32, len(sel.places)),
		steps:   (maxSearchSteps - sel.searchSteps) / 2,
		fill:    sel.limits.most - int64(len(sel.chosen)),
		room:    sel.chosenRoom,
		divided: r.divided(),
	}
	s.slots = s.fill
	if s.divided {
		s.need = r.Replicas
		// Each place that is needed for a group must get a replica.
		s.slots = min(s.slots, r.Replicas)
	}
	s.roomy = make([]entry, 0, len(sel.places))
	// Classes are refined group by group. Groups are numbered consecutively.
	parts := make(map[uint64]int32, 2*len(s.of)) // by refined part and group
	var classes []int32                          // by part
	var one [1]int32
	for i := range sel.places {
		p := &sel.places[i]
		s.of[i] = -1
		if p.state != undecided {
			continue
		}
		part, first := uint64(0), uint64(0)
		for t := range sel.limits.tallies {
			groups := sel.limits.tallies[t].constraint.Groups
			for _, g := range groups.of(p.row, &one) {
				refined := part<<32 | (first + uint64(g))
				next, ok := parts[refined]
				if !ok {
					classes = append(classes, -1)
					next = int32(len(classes))
					parts[refined] = next
				}
				part = uint64(next)
			}
			first += uint64(len(groups.Names))
		}
		k := classes[part-1]
		if k < 0 {
			k = int32(len(s.classes))
			classes[part-1] = k
			s.classes = append(s.classes, class{row: p.row, preferred: sel.entry(byPreference, i), roomiest: sel.entry(byRoom, i)})
		}
		s.of[i] = k
		c := &s.classes[k]
		c.room += p.most
		c.places++
		if e := sel.entry(byPreference, i); e.before(&c.preferred) {
			c.preferred = e
		}
		e := sel.entry(byRoom, i)
		if e.before(&c.roomiest) {
			c.roomiest = e
		}
		s.roomy = append(s.roomy, e)
	}
	return s
}

// start begins with all classes, in order of preference.
func (s *search) start() bool {
	for i := range s.sel.limits.tallies {
		if t := &s.sel.limits.tallies[i]; t.groups > t.constraint.Max {
			return false
		}
	}
	s.helps = make([]int, len(s.sel.limits.tallies))
	all := make([]int32, len(s.classes))
	for k := range all {
		all[k] = int32(k)
	}
	slices.SortFunc(all, func(k, l int32) int { return compareEntries(s.classes[k].preferred, s.classes[l].preferred) })
	s.alive = make([]int32, 0, 4*len(all))
	s.options = make([]option, 0, 4*len(all))
	return s.descend(all)
}

// descend tries the classes that may be added.
func (s *search) descend(from []int32) bool {
	alive, options := len(s.alive), len(s.options)
	found := s.look(from)
	from, next := s.alive[alive:], s.options[options:]
	for i := range next {
		// Usually the first few are enough, so they are not sorted.
		for j := i + 1; j < len(next); j++ {
			if next[j].before(&next[i]) {
				next[i], next[j] = next[j], next[i]
			}
		}
		s.steps -= len(next) >> 3
		k := next[i].class
		s.add(k)
		if found = s.descend(from); found || s.steps < 0 {
			break
		}
		s.remove(k)
		s.classes[k].banned = true
	}
	for _, o := range next {
		s.classes[o.class].banned = false
	}
	s.alive, s.options = s.alive[:alive], s.options[:options]
	return found
}

// look finds the classes to try next, and all that may be taken later. It reports whether none are
// required.
func (s *search) look(from []int32) bool {
	tallies := s.sel.limits.tallies
	var missing int64
	for i := range tallies {
		missing += max(tallies[i].constraint.Min-tallies[i].groups, 0)
		s.helps[i] = 0
	}
	if missing == 0 && s.leaf() {
		return true
	}
	if s.steps -= len(from); s.steps < 0 || s.slots <= 0 || s.fill <= 0 {
		return false
	}
	begin, best := len(s.options), int64(0)
	for _, k := range from {
		c := &s.classes[k]
		opens, gain := s.opens(c)
		if c.banned || opens <= 0 {
			continue
		}
		s.alive = append(s.alive, k)
		o := option{class: k, at: int32(len(s.alive)), gain: gain}
		if missing == 0 {
			o.gain = c.room
		} else if gain == 0 {
			continue
		}
		s.options = append(s.options, o)
		best = max(best, gain)
		for i := range tallies {
			if t := &tallies[i]; t.groups < t.constraint.Min && t.opens(c.row) > 0 {
				s.helps[i]++
			}
		}
	}
	switch {
	case missing == 0:
		return false
	case missing > best*min(s.slots, s.fill):
		s.options = s.options[:begin]
		return false
	}
	fewest := -1
	for i := range tallies {
		if t := &tallies[i]; t.groups < t.constraint.Min && (fewest < 0 || s.helps[i] < s.helps[fewest]) {
			fewest = i
		}
	}
	kept := slices.DeleteFunc(s.options[begin:], func(o option) bool { return tallies[fewest].opens(s.classes[o.class].row) == 0 })
	s.options = s.options[:begin+len(kept)]
	return false
}

// opens returns how many groups a class opens, and how many of these are missing. opens is negative
// if they are too many for a constraint.
func (s *search) opens(c *class) (opens, gain int64) {
	for i := range s.sel.limits.tallies {
		t := &s.sel.limits.tallies[i]
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
	for i := range s.sel.limits.tallies {
		s.sel.limits.tallies[i].add(c.row)
	}
	c.taken = true
	s.taken = append(s.taken, k)
	s.slots--
	s.fill--
	s.room += s.sel.places[c.roomiest.place].most
}

func (s *search) remove(k int32) {
	c := &s.classes[k]
	for i := range s.sel.limits.tallies {
		s.sel.limits.tallies[i].remove(c.row)
	}
	c.taken = false
	s.taken = s.taken[:len(s.taken)-1]
	s.slots++
	s.fill++
	s.room -= s.sel.places[c.roomiest.place].most
}

// leaf reports whether the open groups have enough clusters and room.
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
			room -= s.sel.places[c.roomiest.place].most
		}
	}
	if s.sel.limits.most-s.fill+min(s.fill, places) < s.sel.limits.least {
		return false
	}
	if !s.divided {
		return true
	}
	if places > s.fill {
		if room < s.need && s.sel.roomiest > 0 {
			return false // even if all of them were chosen
		}
		room = s.fillUp()
	}
	s.sel.roomiest = max(s.sel.roomiest, min(room, s.need))
	return room >= s.need
}

// fillUp returns the room with the roomiest places of the open classes added.
func (s *search) fillUp() int64 {
	if !s.sorted {
		slices.SortFunc(s.roomy, compareEntries)
		s.sorted = true
	}
	room, left := s.room, s.fill
	for _, e := range s.roomy {
		if left == 0 || room >= s.need {
			break
		}
		s.steps--
		if c := &s.classes[s.of[e.place]]; c.open && (!c.taken || c.roomiest.place != e.place) {
			room += s.sel.places[e.place].most
			left--
		}
	}
	return room
}

// take chooses the places that a search has found, and fills up in the given order.
func (sel *choice) take(r *Request, s *search, tier int32, o order) bool {
	sel.restart(tier)
	for _, k := range s.taken {
		e := s.classes[k].preferred
		if o == byRoom {
			e = s.classes[k].roomiest
		}
		sel.pick(e.place)
	}
	for i := range sel.places {
		p := &sel.places[i]
		for c := range sel.limits.tallies {
			if p.state == undecided && sel.limits.tallies[c].opens(p.row) > 0 {
				p.state = out
			}
		}
	}
	for _, e := range sel.first(sel.limits.most-int64(len(sel.chosen)), o, everywhere) {
		sel.pick(e.place)
	}
	return !sel.lacksRoom(r) || sel.replace(r)
}

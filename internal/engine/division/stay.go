package division

import (
	"cmp"
	"slices"
)

// The search for what can stay is limited by its steps and by the complete sets that are tried: at
// most maxStayChoices, and fewer if that would be more than maxStayPlaces places. These are counts, so
// that the result is deterministic.
const (
	maxStaySteps   = 1 << 16
	maxStayChoices = 64
	maxStayPlaces  = 1 << 13
)

// staySearch finds the places with the most replicas that can all stay, if not all can. It branches
// on one holder after the other, and leaves a branch when the limits on clusters and groups, or the
// room on what may still be chosen, show that it cannot be better than the best so far.
//
// Whether the constraints hold as a whole is only known when a choice is made around a set, so the
// search gives up after some sets. It then keeps the best that it has found.
type staySearch struct {
	sel     *choice
	request *Request
	holders []holder
	limited []stayTally
	rooms   []int64 // sums of the room of the roomiest places
	in      []bool  // whether a holder stays in this branch
	best    []bool
	staying int64 // replicas in this branch
	count   int64 // its clusters
	room    int64
	most    int64 // replicas of the best set; -1 = none
	steps   int
	choices int
}

// holder is a place that could stay.
type holder struct {
	place int32
	value int64 // replicas that stay with it
	group int64 // replicas in its groups, to try large groups first
}

// stayTally is the part of a group constraint in the search.
type stayTally struct {
	tally
	values []int64 // by group: replicas of the holders that are not decided yet
	rooms  []int64 // by group: room
	sorted []int64 // scratch memory
}

// keep sets which places are in every choice.
func (sel *selection) keep(stays func(p *place) bool) {
	for i := range sel.places {
		p := &sel.places[i]
		p.stays = stays(p)
	}
}

// keepMost lets those places stay that together hold the most replicas, or are the most copies.
func (sel *choice) keepMost(r *Request) {
	sel.keep(func(*place) bool { return false })
	if sel.hopeless(r) {
		return
	}
	s := sel.newStaySearch(r)
	s.descend(0)
	for i, h := range s.holders {
		sel.places[h.place].stays = s.most >= 0 && s.best[i]
	}
}

func (sel *choice) newStaySearch(r *Request) *staySearch {
	s := &staySearch{sel: sel, request: r, most: -1, steps: maxStaySteps}
	s.choices = min(maxStayChoices, max(1, maxStayPlaces/len(sel.places)))
	rooms := make([]int64, len(sel.places))
	for i := range sel.places {
		rooms[i] = sel.places[i].most
	}
	slices.SortFunc(rooms, func(a, b int64) int { return cmp.Compare(b, a) })
	s.rooms = make([]int64, 1, len(rooms)+1)
	for i, room := range rooms {
		s.rooms = append(s.rooms, s.rooms[i]+room)
	}
	for i := range sel.limits.tallies {
		c := sel.limits.tallies[i].constraint
		t := stayTally{values: make([]int64, len(c.Groups.Names)), rooms: make([]int64, len(c.Groups.Names))}
		t.reset(c)
		s.limited = append(s.limited, t)
	}
	var one [1]int32
	for i := range sel.places {
		p := &sel.places[i]
		value := p.staying(r)
		for k := range s.limited {
			t := &s.limited[k]
			groups := t.constraint.Groups.of(p.row, &one)
			for _, g := range groups {
				t.rooms[g] += p.most
			}
			if p.holds {
				t.values[groups[0]] += value
			}
		}
		if p.holds {
			s.holders = append(s.holders, holder{place: int32(i), value: value})
		}
	}
	for i := range s.holders {
		h := &s.holders[i]
		for k := range s.limited {
			t := &s.limited[k]
			h.group += t.values[t.constraint.Groups.of(sel.places[h.place].row, &one)[0]]
		}
	}
	slices.SortFunc(s.holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.group, a.group), cmp.Compare(b.value, a.value),
			compareEntries(sel.entry(byPreference, int(a.place)), sel.entry(byPreference, int(b.place))))
	})
	s.in, s.best = make([]bool, len(s.holders)), make([]bool, len(s.holders))
	return s
}

// staying returns how many replicas stay if a place is chosen: each copy counts as one.
func (p *place) staying(r *Request) int64 {
	if !r.divided() {
		return 1
	}
	return min(max(p.held, p.kept), p.most)
}

// descend decides on the holders from the i-th on.
func (s *staySearch) descend(i int) {
	if s.steps--; s.steps < 0 || s.choices == 0 || s.bound(i) <= s.most {
		return
	}
	if i == len(s.holders) {
		s.choices--
		for i, h := range s.holders {
			s.sel.places[h.place].stays = s.in[i]
		}
		if s.sel.chooseOnce(s.request, s.sel.tiers-1) == nil {
			s.most = s.bound(i)
			copy(s.best, s.in)
		}
		return
	}
	p := &s.sel.places[s.holders[i].place]
	value := s.holders[i].value
	var one [1]int32
	for k := range s.limited {
		t := &s.limited[k]
		t.values[t.constraint.Groups.of(p.row, &one)[0]] -= value
	}
	s.in[i] = true
	s.staying, s.count, s.room = s.staying+value, s.count+1, s.room+p.most
	for k := range s.limited {
		s.limited[k].add(p.row)
	}
	s.descend(i + 1)
	s.in[i] = false
	s.staying, s.count, s.room = s.staying-value, s.count-1, s.room-p.most
	for k := range s.limited {
		s.limited[k].remove(p.row)
	}
	s.descend(i + 1)
	for k := range s.limited {
		t := &s.limited[k]
		t.values[t.constraint.Groups.of(p.row, &one)[0]] += value
	}
}

// bound returns an upper bound on the replicas that stay in a branch, or -1 if no choice of it
// satisfies the constraints.
func (s *staySearch) bound(i int) int64 {
	left := s.sel.limits.most - s.count
	if left < 0 {
		return -1
	}
	others := min(left, int64(len(s.sel.places)))
	if s.request.divided() && s.room+s.rooms[others] < s.request.Replicas {
		return -1
	}
	var bound int64
	if rest := s.holders[i:]; left < int64(len(rest)) {
		s.steps -= len(rest) / 8
		values := make([]int64, len(rest))
		for j := range rest {
			values[j] = rest[j].value
		}
		bound = sumLargest(values, left)
	} else {
		for j := range rest {
			bound += rest[j].value
		}
	}
	for k := range s.limited {
		t := &s.limited[k]
		s.steps -= len(t.values) / 8
		values, ok := t.largest(t.values)
		if !ok {
			return -1
		}
		bound = min(bound, values)
		if room, _ := t.largest(t.rooms); s.request.divided() && room < s.request.Replicas {
			return -1
		}
	}
	bound += s.staying
	if s.missing(0) > left {
		return -1
	}
	if s.request.divided() {
		bound = min(bound, s.request.Replicas-s.missing(int64(len(s.holders)-i)))
	}
	return bound
}

// missing returns how many more places are needed at least, after the given number of holders that
// are not decided yet.
func (s *staySearch) missing(open int64) int64 {
	missing := max(s.sel.limits.least-s.count-open, 0)
	for k := range s.limited {
		if t := &s.limited[k]; t.constraint.Groups.Several == nil {
			missing = max(missing, t.constraint.Min-t.groups-open)
		}
	}
	return missing
}

// largest returns the largest sum over groups that may be in one choice with those that are open. It
// is false if too many are open.
func (t *stayTally) largest(values []int64) (int64, bool) {
	var sum int64
	t.sorted = t.sorted[:0]
	for g, n := range values {
		if t.count[g] > 0 {
			sum += n
		} else {
			t.sorted = append(t.sorted, n)
		}
	}
	if t.groups > t.constraint.Max {
		return 0, false
	}
	return sum + sumLargest(t.sorted, t.constraint.Max-t.groups), true
}

package division

import (
	"cmp"
	"slices"
)

// group is a group of clusters in the search for the best ones.
type group struct {
	id     int32 // index into Groups.Names
	value  int64 // clusters in it
	weight int64 // how good it is
	room   int64 // replicas that its clusters have room for
	must   bool  // is among the chosen ones in any case
	picked bool
}

// maxPathStates bounds the table of the exact search.
const maxPathStates = 1 << 22

// pathSearch finds the best groups. It keeps its memory for the next search.
//
// The groups are ordered by value, then from the largest weight, then by name. A
// path is a series of them in this order that is satisfied: it has at least least
// and at most most groups, and target clusters. It ends where it is first
// satisfied. The best path has the largest weight, then the largest value, then
// comes first. If some of its groups, from the largest weight on, are a path
// themselves, the shortest such path is better.
//
// There are exponentially many paths, but what can follow a part of one depends
// only on where it ends, its length, and its value up to the target.
type pathSearch struct {
	taken     []bool // by group, length and value: whether the best path goes through the group
	next, now []pathSum
	sums      []int64 // values of the first groups
	sorted    []int32
}

// pathSum is what the groups of a path add up to.
type pathSum struct {
	weight, value int64
	ok            bool
}

func (s pathSum) less(t pathSum) bool {
	if s.ok != t.ok {
		return t.ok
	}
	if s.weight != t.weight {
		return s.weight < t.weight
	}
	return s.value < t.value
}

// choose marks the groups of the best path as picked. It reorders the groups, and
// reports whether there is a path.
func (s *pathSearch) choose(groups []group, names []string, least, most, target int64) bool {
	least = max(least, 1)
	most = min(most, int64(len(groups)))
	for i := range groups {
		groups[i].picked = false
	}
	if least > most {
		return false
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(b.weight, a.weight), cmp.Compare(names[a.id], names[b.id]))
	})
	switch {
	case target <= least && groups[0].value > 0:
		s.pickLeast(groups, least)
	case int64(len(groups)+1) <= maxPathStates/(counts(groups, least, most)+1)/(target+1):
		if !s.pickBest(groups, least, most, target) {
			return false
		}
	default:
		if !s.pickGreedily(groups, least, most, target) {
			return false
		}
	}
	s.shorten(groups, names, least, target)
	return true
}

// counts is the largest length of a path that has to be told from longer ones.
func counts(groups []group, least, most int64) int64 {
	if most == int64(len(groups)) {
		return least // there is no limit
	}
	return most
}

// pickLeast picks the best groups when any least of them are enough.
func (s *pathSearch) pickLeast(groups []group, least int64) {
	for _, i := range s.byWeight(groups)[:least] {
		groups[i].picked = true
	}
}

// byWeight are the groups from the largest weight, then the largest value, on.
func (s *pathSearch) byWeight(groups []group) []int32 {
	s.sorted = s.sorted[:0]
	for i := range groups {
		s.sorted = append(s.sorted, int32(i))
	}
	slices.SortFunc(s.sorted, func(i, j int32) int {
		a, b := &groups[i], &groups[j]
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.value, a.value), cmp.Compare(i, j))
	})
	return s.sorted
}

// pickBest picks the best path. From the last group back it finds the best rest
// of a path for every length and value that the path may have until there; of
// equal ones that which takes the group comes first.
func (s *pathSearch) pickBest(groups []group, least, most, target int64) bool {
	counts, values := counts(groups, least, most), target+1
	unlimited := most == int64(len(groups))
	states := (counts + 1) * values
	s.taken = slices.Grow(s.taken[:0], len(groups)*int(states))[:len(groups)*int(states)]
	s.next = slices.Grow(s.next[:0], int(states))[:states]
	s.now = slices.Grow(s.now[:0], int(states))[:states]
	satisfied := func(count, value int64) bool { return count >= least && value >= target }
	for count := range counts + 1 {
		for value := range values {
			s.next[count*values+value] = pathSum{ok: satisfied(count, value)}
		}
	}
	s.sums = append(s.sums[:0], 0)
	for i := range groups {
		s.sums = append(s.sums, s.sums[i]+groups[i].value)
	}
	for i := len(groups) - 1; i >= 0; i-- {
		g := &groups[i]
		// No path has more groups before i, or a value that the smallest or the
		// largest of them do not add up to.
		for count := range min(counts, int64(i)) + 1 {
			largest := s.sums[i]
			if count < counts || !unlimited {
				largest -= s.sums[int64(i)-count]
			}
			for value := min(s.sums[count], target); value <= min(largest, target); value++ {
				at := count*values + value
				best, take := s.next[at], false
				if (count < counts || unlimited) && !satisfied(count, value) {
					with := s.next[min(count+1, counts)*values+min(value+g.value, target)]
					with.weight += g.weight
					with.value += g.value
					if with.ok && !with.less(best) {
						best, take = with, true
					}
				}
				s.now[at] = best
				s.taken[int64(i)*states+at] = take
			}
		}
		s.next, s.now = s.now, s.next
	}
	if !s.next[0].ok {
		return false
	}
	var count, value int64
	for i := range groups {
		if s.taken[int64(i)*states+count*values+value] {
			groups[i].picked = true
			count = min(count+1, counts)
			value = min(value+groups[i].value, target)
		}
	}
	return true
}

// pickGreedily picks a good path where the table of all would be too large: the
// groups with the largest weights, which give way to larger ones as long as
// clusters are missing.
func (s *pathSearch) pickGreedily(groups []group, least, most, target int64) bool {
	order := s.byWeight(groups)
	var count, value int64
	for _, i := range order {
		if count >= least && value >= target || count == most {
			break
		}
		groups[i].picked = true
		count++
		value += groups[i].value
	}
	large := len(groups) - 1
	for k := count - 1; k >= 0 && value < target; k-- {
		for large >= 0 && groups[large].picked {
			large--
		}
		small := &groups[order[k]]
		if large < 0 || groups[large].value <= small.value {
			continue
		}
		value += groups[large].value - small.value
		small.picked, groups[large].picked = false, true
	}
	return value >= target
}

// shorten leaves of the picked groups only as many, from the largest weight on, as
// are a path themselves.
func (s *pathSearch) shorten(groups []group, names []string, least, target int64) {
	s.sorted = s.sorted[:0]
	for i := range groups {
		if groups[i].picked {
			s.sorted = append(s.sorted, int32(i))
		}
	}
	slices.SortFunc(s.sorted, func(i, j int32) int {
		a, b := &groups[i], &groups[j]
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(names[a.id], names[b.id]))
	})
	var value int64
	last := int32(-1) // the group that a path of those until here would end with
	for count, i := range s.sorted {
		value += groups[i].value
		last = max(last, i)
		n := int64(count + 1)
		if n < least || value < target || n > least && value-groups[last].value >= target {
			continue
		}
		for _, j := range s.sorted[count+1:] {
			groups[j].picked = false
		}
		return
	}
}

package division

import (
	"cmp"
	"slices"
)

// group is a group of clusters in the search for the best groups.
type group struct {
	id     int32 // index into Groups.Names
	value  int64 // number of its clusters
	weight int64 // higher is better
	room   int64 // replicas that fit on its clusters
	votes  int64 // of its clusters
	must   bool  // must be chosen
	picked bool
}

// maxPathStates limits the table of the exact search.
const maxPathStates = 1 << 22

// pathSearch finds the best groups. It keeps its memory for the next search.
//
// The groups are ordered by value, then by descending weight, then by name. A path is a sequence of
// groups in this order with at least least and at most most groups, and at least target clusters.
// It ends where these conditions are first met. The best path has the largest weight, then the
// largest value, then comes first. If some of its groups, taken by descending weight, form a path
// themselves, the shortest such path is better.
//
// There are exponentially many paths, but how one can continue depends only on where it is, its
// length, and its value up to the target.
type pathSearch struct {
	taken     []bool // by group, length and value: whether the best path contains the group
	next, now []pathSum
	sums      []int64 // sums of the first values
	sorted    []int32
}

// pathSum is the sum over the groups of a path.
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

// choose marks the groups of the best path as picked and reports whether there is a path. It
// reorders the groups.
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

// counts returns the largest path length that must be distinguished from longer ones.
func counts(groups []group, least, most int64) int64 {
	if most == int64(len(groups)) {
		return least // there is no limit
	}
	return most
}

// pickLeast picks the best groups if any least of them are enough.
func (s *pathSearch) pickLeast(groups []group, least int64) {
	for _, i := range s.byWeight(groups)[:least] {
		groups[i].picked = true
	}
}

// byWeight returns the groups by descending weight, then by descending value.
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

// pickBest picks the best path. Starting from the last group, it finds the best rest of a path for
// every possible length and value so far; among equals, one that contains the group comes first.
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
		// No path has more groups before i, or a value outside the sums of the smallest and largest
		// of them.
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

// pickGreedily picks a good path if the table would be too large: the groups with the largest
// weights, which are replaced by larger ones as long as clusters are missing.
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

// shorten keeps only as many of the picked groups, by descending weight, as form a path themselves.
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
	last := int32(-1) // the last group of a path with those so far
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

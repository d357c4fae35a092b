package division

import (
	"cmp"
	"slices"
)

// maxRoomSteps limits the work of the exact search for room.
const maxRoomSteps = 1 << 22

// pickRoomiest picks groups with room for what is missing, on as many clusters as may still be
// chosen: as few groups as possible. It reports whether it found any.
func (sel *groupSelection) pickRoomiest(r *Request, t *tally, groups []group, least, most int64) bool {
	most = min(most, int64(len(groups)))
	least = max(least, 0)
	slots := sel.limits.most - int64(len(sel.chosen))
	if least > most || slots < least {
		return false
	}
	rooms, free := sel.rooms(t, groups)
	clusters := int64(len(free))
	for i := range rooms {
		clusters += int64(len(rooms[i]))
	}
	need := int64(0)
	if r.divided() {
		need = r.Replicas - sel.chosenRoom
	}
	if slots < clusters && (most+1)*(slots+1)*(clusters+int64(len(groups))) <= maxRoomSteps {
		return sel.pickExactly(groups, rooms, free, least, most, slots, need)
	}
	sel.pickLargest(groups, rooms, free, least, most, slots, need)
	return true
}

// rooms returns the room of the clusters of each group, in descending order, and that of the
// clusters that need no further group.
func (sel *groupSelection) rooms(t *tally, groups []group) (rooms [][]int64, free []int64) {
	index := make([]int32, len(t.count))
	for i := range index {
		index[i] = -1
	}
	for i := range groups {
		index[groups[i].id] = int32(i)
	}
	rooms = make([][]int64, len(groups))
	var one [1]int32
	for i := range sel.places {
		p := &sel.places[i]
		if p.state != undecided {
			continue
		}
		in := int32(-1)
		for _, id := range t.constraint.Groups.of(p.row, &one) {
			in = max(in, index[id])
		}
		if in < 0 {
			free = append(free, p.most)
		} else {
			rooms[in] = append(rooms[in], p.most)
		}
	}
	slices.Sort(free)
	slices.Reverse(free)
	for i := range rooms {
		slices.Sort(rooms[i])
		slices.Reverse(rooms[i])
	}
	return rooms, free
}

// pickMost picks the largest groups, as many as are allowed.
func (sel *groupSelection) pickMost(t *tally, groups []group, most int64) {
	rooms, free := sel.rooms(t, groups)
	sel.pickLargest(groups, rooms, free, 0, min(most, int64(len(groups))), sel.limits.most-int64(len(sel.chosen)), Unlimited)
}

// pickLargest picks the groups with the largest sums: the minimum number, and then more until they
// have enough room. This is optimal if slots are not limiting, otherwise a heuristic.
func (sel *groupSelection) pickLargest(groups []group, rooms [][]int64, free []int64, least, most, slots, need int64) {
	sum := func(rooms []int64) int64 {
		var sum int64
		for _, room := range rooms[:min(int64(len(rooms)), max(slots, 0))] {
			sum += room
		}
		return sum
	}
	order := make([]int32, len(groups))
	for i := range groups {
		order[i] = int32(i)
		groups[i].room = sum(rooms[i])
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &groups[i], &groups[j]
		return cmp.Or(cmp.Compare(b.room, a.room), cmp.Compare(b.value, a.value), cmp.Compare(a.id, b.id))
	})
	room := sum(free)
	clusters := int64(len(sel.chosen) + len(free))
	for n, i := range order[:most] {
		if int64(n) >= least && room >= need && clusters >= sel.limits.least {
			return
		}
		groups[i].picked = true
		room += groups[i].room
		clusters += groups[i].value
	}
}

// pickExactly picks the groups on which the given number of clusters have the most room. After each
// group, it knows the best sums for every number of groups and clusters.
func (sel *groupSelection) pickExactly(groups []group, rooms [][]int64, free []int64, least, most, slots, need int64) bool {
	width := slots + 1
	states := (most + 1) * width
	best := make([]int64, states)
	for i := range best {
		best[i] = -1
	}
	sum := int64(0)
	best[0] = 0
	for k, room := range free[:min(int64(len(free)), slots)] {
		sum += room
		best[k+1] = sum
	}
	took := make([]int32, int64(len(groups))*states) // clusters taken from the group
	for i := range groups {
		for n := min(most, int64(i+1)); n > 0; n-- {
			for k := slots; k > 0; k-- {
				sum := int64(0)
				for c, room := range rooms[i][:min(int64(len(rooms[i])), k)] {
					sum += room
					if with := best[(n-1)*width+k-int64(c)-1]; with >= 0 && with+sum > best[n*width+k] {
						best[n*width+k] = with + sum
						took[int64(i)*states+n*width+k] = int32(c + 1)
					}
				}
			}
		}
	}
	n, k := int64(-1), int64(0)
	for groups := least; groups <= most; groups++ {
		for clusters := max(sel.limits.least-int64(len(sel.chosen)), 0); clusters <= slots; clusters++ {
			at := groups*width + clusters
			if best[at] >= 0 && (n < 0 || best[at] > best[n*width+k]) {
				n, k = groups, clusters
			}
		}
		if n >= 0 && best[n*width+k] >= need {
			break
		}
	}
	if n < 0 {
		return false
	}
	for i := len(groups) - 1; i >= 0; i-- {
		if c := int64(took[int64(i)*states+n*width+k]); c > 0 {
			groups[i].picked = true
			n, k = n-1, k-c
		}
	}
	return true
}

// hopeless reports, after a choice turned out to lack room, whether the constraints, each on its
// own, show that no choice has enough.
func (sel *selection) hopeless(r *Request) bool {
	if sel.roomiest == 0 {
		return false
	}
	if sel.ceilingRoom == 0 {
		sel.ceilingRoom = sel.boundRoom()
	}
	return sel.ceilingRoom < r.Replicas
}

// boundRoom returns an upper bound on the room of any choice: that of the roomiest clusters or
// groups.
func (sel *selection) boundRoom() int64 {
	rooms := make([]int64, len(sel.places))
	for i := range sel.places {
		rooms[i] = sel.places[i].most
	}
	bound := sumLargest(rooms, sel.limits.most)
	var one [1]int32
	for i := range sel.limits.tallies {
		c := sel.limits.tallies[i].constraint
		groups := make([]int64, len(c.Groups.Names))
		for j := range sel.places {
			for _, id := range c.Groups.of(sel.places[j].row, &one) {
				groups[id] += sel.places[j].most
			}
		}
		bound = min(bound, sumLargest(groups, c.Max))
	}
	return bound
}

// sumLargest returns the sum of the n largest values, which it may sort.
func sumLargest(values []int64, n int64) int64 {
	if n < int64(len(values)) {
		slices.Sort(values)
		values = values[int64(len(values))-n:]
	}
	var sum int64
	for _, v := range values {
		sum += v
	}
	return sum
}

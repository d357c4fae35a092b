package division

// tally counts the places in each group of a constraint.
type tally struct {
	constraint *Constraint
	count      []int32
	groups     int64 // number of groups with at least one place
	limits     bool  // not all groups may be chosen, or as few as possible should be
}

// reset clears the counts.
func (t *tally) reset(c *Constraint) {
	t.constraint, t.groups = c, 0
	if cap(t.count) < len(c.Groups.Names) {
		t.count = make([]int32, len(c.Groups.Names))
	}
	t.count = t.count[:len(c.Groups.Names)]
	clear(t.count)
}

func (t *tally) add(row int32) {
	var one [1]int32
	for _, g := range t.constraint.Groups.of(row, &one) {
		if t.count[g] == 0 {
			t.groups++
		}
		t.count[g]++
	}
}

func (t *tally) remove(row int32) {
	var one [1]int32
	for _, g := range t.constraint.Groups.of(row, &one) {
		t.count[g]--
		if t.count[g] == 0 {
			t.groups--
		}
	}
}

// opens returns how many groups of the row have no place yet.
func (t *tally) opens(row int32) int64 {
	var one [1]int32
	n := int64(0)
	for _, g := range t.constraint.Groups.of(row, &one) {
		if t.count[g] == 0 {
			n++
		}
	}
	return n
}

// holds reports whether the constraint is met.
func (t *tally) holds() bool {
	return t.groups >= t.constraint.Min && t.groups <= t.constraint.Max
}

package engine

// resourceShare rates an amount of a resource by where it stands between the
// least and the most of the candidates: the allocatable amount, or with free
// what is left of it.
type resourceShare struct {
	name, resource string
	free           bool
}

func (r resourceShare) Name() string { return r.name }

func (r resourceShare) figures(f *Fleet) figures {
	if r.free {
		return figures{amounts: f.uncommitted[r.resource]}
	}
	return figures{amounts: f.allocatable(r.resource)}
}

func (resourceShare) rate(_ *Fleet, from *figures, scale *span, row int) float64 {
	return scale.rate(from.amount(row))
}

func (r resourceShare) observe(_ *Fleet, from *figures, row int) observation {
	return r.observed(from.amount(row))
}

// observed is what a score rests on that rates an amount.
func (r resourceShare) observed(amount int64) observation {
	switch {
	case amount != unreported:
		return observation{raw: units(amount)}
	case r.free:
		return observation{reason: "absent: the cluster's allocatable " + r.resource + " is not known; counts as 0"}
	}
	return observation{reason: "absent: the cluster's allocatable " + r.resource + " or its capacity is not known; counts as 0"}
}

// units is an amount in thousandths as a number of units.
func units(amount int64) *float64 {
	raw := float64(amount) / 1000
	return &raw
}

// span is the range of a resource over the candidates.
type span struct {
	low, high int64
	any       bool
}

func (s *span) cover(amount int64) {
	if amount == unreported {
		return
	}
	if !s.any {
		*s = span{amount, amount, true}
		return
	}
	s.low, s.high = min(s.low, amount), max(s.high, amount)
}

// rate maps an amount to -100 at the lowest and 100 at the highest of the
// candidates, cut off to a whole number, and 100 where all have the same:
//
//	int(((a - low) / (high - low) - 0.5) · 2 · 100)
//
// Example: 1, 2 and 4 rate -100, -33 and 100. (That is what Open Cluster
// Management computes.)
func (s *span) rate(amount int64) float64 {
	switch {
	case amount == unreported:
		return 0
	case s.low == s.high:
		return 100
	}
	share := float64(amount-s.low) / float64(s.high-s.low)
	return float64(int64((share - 0.5) * 2 * 100))
}

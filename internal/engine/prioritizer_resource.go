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

func (resourceShare) raw(_ *Fleet, from *figures, row int) *float64 { return units(from.amount(row)) }

// units is an amount in thousandths as a number of units.
func units(amount int64) *float64 {
	if amount == unreported {
		return nil
	}
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

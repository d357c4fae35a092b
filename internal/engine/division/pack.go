package division

import (
	"cmp"
	"slices"
)

// pack keeps only places that can all have their lower bound and together have room for the
// replicas: first those that hold some, then tier by tier or by descending room. It reports whether
// it found such places.
func (pl *pool) pack(r *Request, roomiest bool) bool {
	order := make([]int32, len(pl.places))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &pl.places[i], &pl.places[j]
		byRoom := cmp.Or(cmp.Compare(b.most, a.most), cmp.Compare(a.rank, b.rank))
		switch {
		case roomiest || a.holds == b.holds && a.tier == b.tier:
			return byRoom
		case a.holds != b.holds && a.holds:
			return -1
		case a.holds != b.holds:
			return 1
		}
		return cmp.Compare(a.tier, b.tier)
	})
	missing := int64(0) // further places that must be used, each with at least one replica
	for i := range r.Constraints {
		missing = max(missing, r.Constraints[i].Min)
	}
	var lower, room int64
	for _, i := range order {
		p := &pl.places[i]
		if p.least > 0 && lower+p.least+max(missing-1, 0) > r.Replicas {
			continue
		}
		if lower += p.least; p.least > 0 {
			missing--
		}
		room += p.most
		p.state, p.must = chosen, p.least > 0
	}
	if room < r.Replicas {
		return false
	}
	pl.keepChosen()
	pl.room, pl.holders, pl.kept = room, 0, 0
	for i := range pl.places {
		p := &pl.places[i]
		pl.kept += p.kept
		if p.holds {
			pl.holders++
		}
	}
	return true
}

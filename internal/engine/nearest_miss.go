package engine

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// NearestMiss is the ground that is the only one most clusters fail, nil where
// no single ground keeps any out. Unlike Rejections it asks every ground about
// every cluster: a cluster that is offline and in the wrong region is out for
// two reasons, and neither alone would bring it back.
//
// With once the rows that failed at least one ground so far, and twice those
// that failed more, the rows that fail a ground alone are its failures that are
// not in twice at the end.
func (v *verdicts) NearestMiss() *api.NearestMiss {
	p := v.pass
	words := len(p.fleet.live)
	once, twice := make(Bitmap, words), make(Bitmap, words)
	failed := make(Bitmap, words*len(v.grounds))
	for i, g := range v.grounds {
		fails := failed[i*words : (i+1)*words]
		keep := make(Bitmap, words)
		copy(keep, p.fleet.live)
		g.filter.Apply(p, g.ground, keep)
		for w := range fails {
			fails[w] = p.fleet.live[w] &^ keep[w]
		}
		v.current.each(func(row int) { fails.Assign(row, p.fleet.live.Has(row) && !g.filter.Admits(p, g.ground, row, true)) })
		for w, bits := range fails {
			twice[w] |= once[w] & bits
			once[w] |= bits
		}
	}
	var miss *api.NearestMiss
	for i, g := range v.grounds {
		if g.filter.Name() == api.OwnershipFilter {
			// No one's to drop, and how many clusters of others fulfil the rest would
			// tell what these are like.
			continue
		}
		alone := failed[i*words : (i+1)*words]
		alone.andNot(twice)
		causes := []Cause{{On: g.filter.On(p.query, g.ground), Count: alone.Count()}}
		if filter, ok := g.filter.(pluralCauser); ok {
			for _, row := range alone.rows() {
				if filter.Several(p, row, v.current.Has(row)) {
					alone.clear(row)
				}
			}
		}
		if filter, ok := g.filter.(causer); ok {
			causes = filter.Causes(p, func(yield func(int) bool) {
				for _, row := range alone.rows() {
					if !yield(row) {
						return
					}
				}
			})
		}
		for _, c := range causes {
			if c.Count > 0 && (miss == nil || c.Count > miss.Count) {
				miss = &api.NearestMiss{Filter: g.filter.Name(), On: c.On, Count: c.Count}
			}
		}
	}
	return miss
}

// pluralCauser is a causer that may have more than one cause to reject a cluster.
type pluralCauser interface {
	// Several reports whether dropping any one cause would not be enough.
	Several(p *Pass, row int, current bool) bool
}

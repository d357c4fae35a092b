package placement

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
)

// NearestMiss is the check that is the only one most clusters fail, nil where
// no single check keeps any out. Unlike Rejections it asks every check about
// every cluster: a cluster that is offline and in the wrong region is out for
// two reasons, and neither alone would bring it back.
//
// With once the rows that failed at least one check so far, and twice those
// that failed more, the rows that fail a check alone are its failures that are
// not in twice at the end.
func (v *Verdicts) NearestMiss() *api.NearestMiss {
	p := v.pass
	words := len(p.Fleet.Live())
	once, twice := make(columns.Bitmap, words), make(columns.Bitmap, words)
	failed := make(columns.Bitmap, words*len(v.checks))
	for i, check := range v.checks {
		fails := failed[i*words : (i+1)*words]
		keep := make(columns.Bitmap, words)
		copy(keep, p.Fleet.Live())
		check.Apply(&p.Look, keep)
		for w := range fails {
			fails[w] = p.Fleet.Live()[w] &^ keep[w]
		}
		v.Current.Each(func(row int) { fails.Assign(row, p.Fleet.Live().Has(row) && !check.Admits(&p.Look, row, true)) })
		for w, bits := range fails {
			twice[w] |= once[w] & bits
			once[w] |= bits
		}
	}
	var miss *api.NearestMiss
	for i, check := range v.checks {
		if check.Name() == api.OwnershipFilter {
			// No one's to drop, and how many clusters of others fulfil the rest would
			// tell what these are like.
			continue
		}
		alone := failed[i*words : (i+1)*words]
		alone.AndNot(twice)
		causes := []filter.Cause{{On: check.On(), Count: alone.Count()}}
		if several, ok := check.(filter.Causer); ok {
			for _, row := range alone.Rows() {
				if several.Several(&p.Look, row, v.Current.Has(row)) {
					alone.Clear(row)
				}
			}
			causes = several.Causes(&p.Look, func(yield func(int) bool) {
				for _, row := range alone.Rows() {
					if !yield(row) {
						return
					}
				}
			})
		}
		for _, c := range causes {
			if c.Count > 0 && (miss == nil || c.Count > miss.Count) {
				miss = &api.NearestMiss{Filter: check.Name(), On: c.On, Count: c.Count}
			}
		}
	}
	return miss
}

package placement

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
)

// NearestMiss returns the check that excludes the most clusters on its own, or nil if no single
// check excludes any. Unlike Rejections, it evaluates every check for every cluster: a cluster that
// is offline and in the wrong region is rejected for two reasons, and dropping either would not
// admit it.
//
// once contains the rows that failed at least one check so far, twice those that failed more than
// one. The rows that fail only one check are its failures that are not in twice at the end.
func (v *Verdicts) NearestMiss() *api.NearestMiss {
	p := v.pass
	words := len(p.Fleet.Live())
	once, twice := make(columns.Bitmap, words), make(columns.Bitmap, words)
	failed := make(columns.Bitmap, words*len(v.checks))
	for i, check := range v.checks {
		fails := failed[i*words : (i+1)*words]
		keep := make(columns.Bitmap, words)
		copy(keep, p.Fleet.Live())
		check.Apply(&p.Evaluation, keep)
		for w := range fails {
			fails[w] = p.Fleet.Live()[w] &^ keep[w]
		}
		v.Current.Each(func(row int) { fails.Assign(row, p.Fleet.Live().Has(row) && !check.Admits(&p.Evaluation, row, true)) })
		for w, bits := range fails {
			twice[w] |= once[w] & bits
			once[w] |= bits
		}
	}
	var miss *api.NearestMiss
	for i, check := range v.checks {
		if check.Name() == api.OwnershipFilter {
			// Ownership cannot be dropped, and the number of other namespaces' clusters that meet
			// the rest would disclose information about them.
			continue
		}
		alone := failed[i*words : (i+1)*words]
		alone.AndNot(twice)
		causes := []filter.Cause{{On: check.On(), Count: alone.Count()}}
		if several, ok := check.(filter.Causer); ok {
			for _, row := range alone.Rows() {
				if several.Several(&p.Evaluation, row, v.Current.Has(row)) {
					alone.Clear(row)
				}
			}
			causes = several.Causes(&p.Evaluation, func(yield func(int) bool) {
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

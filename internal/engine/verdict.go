package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// verdicts say for every cluster whether the filters admit it for a query, and
// which one does not.
type verdicts struct {
	// Admitted are the clusters that fit, the present ones by their own rules.
	Admitted Bitmap

	pass    *Pass  // judges and rates clusters as the decision did
	current Bitmap // rows of the present decision
	grounds []groundOf
	counts  []int
	// rejectedBy is, by row, 1 + the position in grounds of the first ground that
	// rejected the cluster; 0 where it fits.
	rejectedBy []uint32
	// leaving is how many clusters would fit, were the workload not leaving them.
	leaving int
}

// groundOf is one ground of one filter.
type groundOf struct {
	filter Filter
	ground int
}

// newVerdicts judges every cluster as one outside of the present decision, and
// also returns the mask that is the result.
func newVerdicts(f *Fleet, q *Query, others Others) (*verdicts, Bitmap) {
	p := newPass(f, q, others.Reserved)
	v := &verdicts{pass: p}
	for _, filter := range filters {
		for ground := range filter.Grounds(q) {
			v.grounds = append(v.grounds, groundOf{filter, ground})
		}
	}
	words := (f.Slots() + 63) / 64
	bitmaps := make(Bitmap, 4*words)
	keep, before := bitmaps[:words:words], bitmaps[words:2*words:2*words]
	v.current, v.Admitted = bitmaps[2*words:3*words:3*words], bitmaps[3*words:]
	copy(keep, f.live)
	v.counts = make([]int, len(v.grounds))
	v.rejectedBy = make([]uint32, f.Slots())
	for i, g := range v.grounds {
		copy(before, keep)
		g.filter.Apply(p, g.ground, keep)
		before.andNot(keep)
		before.each(func(row int) {
			v.rejectedBy[row] = uint32(i + 1)
			v.counts[i]++
		})
	}
	copy(v.Admitted, keep)
	return v, keep
}

// judgePresent replaces the verdict on a cluster of the present decision by
// that of the milder rules for those.
func (v *verdicts) judgePresent(row int) {
	v.current.set(row)
	if was := v.rejectedBy[row]; was > 0 {
		v.counts[was-1]--
	}
	v.rejectedBy[row] = 0
	v.Admitted.set(row)
	for i, g := range v.grounds {
		if !g.filter.Admits(v.pass, g.ground, row, true) {
			v.rejectedBy[row] = uint32(i + 1)
			v.counts[i]++
			v.Admitted.clear(row)
			return
		}
	}
}

// leave takes out a cluster that the workload is leaving.
func (v *verdicts) leave(row int) {
	if v.Admitted.Has(row) {
		v.Admitted.clear(row)
		v.leaving++
	}
}

// evictionsFilter is the name under which explanations have the clusters that a
// workload is leaving.
const evictionsFilter = "evictions"

// Rejections counts the rejected clusters by ground, in the order of the
// filters.
func (v *verdicts) Rejections() []api.Rejection {
	var out []api.Rejection
	for i, g := range v.grounds {
		if v.counts[i] == 0 {
			continue
		}
		if causes := v.causes(i); len(causes) > 0 {
			for _, c := range causes {
				out = append(out, api.Rejection{Filter: g.filter.Name(), On: c.On, Count: c.Count})
			}
			continue
		}
		out = append(out, api.Rejection{Filter: g.filter.Name(), On: g.filter.On(v.pass.query, g.ground), Count: v.counts[i]})
	}
	if v.leaving > 0 {
		out = append(out, api.Rejection{Filter: evictionsFilter, Count: v.leaving})
	}
	return out
}

// causes divides what a ground rejected, nil where the ground says it all.
func (v *verdicts) causes(ground int) []Cause {
	filter, ok := v.grounds[ground].filter.(causer)
	if !ok {
		return nil
	}
	return filter.Causes(v.pass, func(yield func(int) bool) {
		for row, by := range v.rejectedBy {
			if by == uint32(ground+1) && !yield(row) {
				return
			}
		}
	})
}

// maxNamedCauses is how many causes the summary names.
const maxNamedCauses = 2

// named lists causes for a sentence: ` ("load", "cost" and 3 more)`.
func named(causes []Cause) string {
	if len(causes) == 0 {
		return ""
	}
	names := make([]string, 0, maxNamedCauses)
	for _, c := range causes[:min(len(causes), maxNamedCauses)] {
		name := strconv.Quote(c.On)
		if c.Why != "" {
			name += ": " + c.Why
		}
		names = append(names, name)
	}
	separator := ", "
	if slices.ContainsFunc(causes[:len(names)], func(c Cause) bool { return c.Why != "" }) {
		separator = "; "
	}
	text := strings.Join(names, separator)
	if more := len(causes) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return " (" + text + ")"
}

// Fits is the part of the summary that says how many clusters fit, and why the
// others do not. Without a present decision it is the same for all queries of a
// class. Clusters that belong to other namespaces are not even counted: whoever
// reads the sentence is not to learn of them.
func (v *verdicts) Fits() string {
	f, q := v.pass.fleet, v.pass.query
	fit, total := v.Admitted.Count(), f.Len()
	blames := make([]string, 0, len(v.grounds))
	for i, g := range v.grounds {
		if g.filter.Name() == api.OwnershipFilter {
			total -= v.counts[i]
			continue
		}
		if n := v.counts[i]; n > 0 {
			blames = append(blames, fmt.Sprintf("%d %s%s", n, g.filter.Blame(q, g.ground, n), named(v.causes(i))))
		}
	}
	if v.leaving > 0 {
		blames = append(blames, fmt.Sprintf("%d %s being left", v.leaving, plural(v.leaving, "is", "are")))
	}
	text := fmt.Sprintf("%d of %d %s %s", fit, total, plural(total, cmp.Or(q.one, "cluster"), cmp.Or(q.many, "clusters")), plural(fit, "fits", "fit"))
	if len(blames) > 0 {
		text += ": " + strings.Join(blames, ", ")
	}
	return text
}

// rejected describes the clusters that do not fit, by name.
func (v *verdicts) rejected() []api.Candidate {
	f := v.pass.fleet
	var out []api.Candidate
	for _, row := range f.byName {
		if by := v.rejectedBy[row]; by > 0 {
			g := v.grounds[by-1]
			candidate := api.Candidate{
				Cluster: f.name(int(row)), Current: v.current.Has(int(row)),
				Filter: g.filter.Name(), Reason: g.filter.Reason(v.pass, g.ground, int(row)),
			}
			if filter, ok := g.filter.(teller); ok {
				candidate.Tells = filter.Tells(v.pass, g.ground, int(row))
			}
			out = append(out, candidate)
		}
	}
	return out
}

// Fits is the sentence about how many clusters fit a query, and why the others do
// not.
func Fits(f *Fleet, q *Query, others Others) string {
	v, _ := newVerdicts(f, q, others)
	return v.Fits()
}

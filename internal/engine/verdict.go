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
	checks  []Check
	counts  []int // of what each check rejected
	// turnedAway are, by check, the rows that it was the first to reject.
	turnedAway []Bitmap
	// leaving is how many clusters would fit, were the workload not leaving them.
	leaving int
}

// newVerdicts judges every cluster as one outside of the present decision, and
// also returns the mask that is the result.
func newVerdicts(f *Fleet, q *Query, others Others) (*verdicts, Bitmap) {
	p := newPass(f, q, others.Reserved)
	v := &verdicts{pass: p, checks: q.checks.all}
	words := (f.Slots() + 63) / 64
	bitmaps := make(Bitmap, (3+len(v.checks))*words)
	next := func() (b Bitmap) {
		b, bitmaps = bitmaps[:words:words], bitmaps[words:]
		return b
	}
	keep := next()
	v.current, v.Admitted = next(), next()
	copy(keep, f.live)
	v.counts, v.turnedAway = make([]int, len(v.checks)), make([]Bitmap, len(v.checks))
	for i, check := range v.checks {
		rejected := next()
		copy(rejected, keep)
		check.Apply(&p.Look, keep)
		rejected.andNot(keep)
		v.counts[i], v.turnedAway[i] = rejected.Count(), rejected
	}
	copy(v.Admitted, keep)
	return v, keep
}

// rejectedBy is the position of the first check that rejected a row, -1 where none
// did.
func (v *verdicts) rejectedBy(row int) int {
	return slices.IndexFunc(v.turnedAway, func(rows Bitmap) bool { return rows.Has(row) })
}

// judgePresent replaces the verdict on a cluster of the present decision by
// that of the milder rules for those.
func (v *verdicts) judgePresent(row int) {
	v.current.set(row)
	if was := v.rejectedBy(row); was >= 0 {
		v.counts[was]--
		v.turnedAway[was].clear(row)
	}
	v.Admitted.set(row)
	for i, check := range v.checks {
		if !check.Admits(&v.pass.Look, row, true) {
			v.turnedAway[i].set(row)
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

// Rejections counts the rejected clusters by check, in the order of the
// filters.
func (v *verdicts) Rejections() []api.Rejection {
	var out []api.Rejection
	for i, check := range v.checks {
		if v.counts[i] == 0 {
			continue
		}
		if causes := v.causes(i); len(causes) > 0 {
			for _, c := range causes {
				out = append(out, api.Rejection{Filter: check.Name(), On: c.On, Count: c.Count})
			}
			continue
		}
		out = append(out, api.Rejection{Filter: check.Name(), On: check.On(), Count: v.counts[i]})
	}
	if v.leaving > 0 {
		out = append(out, api.Rejection{Filter: evictionsFilter, Count: v.leaving})
	}
	return out
}

// causes divides what a check rejected, nil where the check says it all.
func (v *verdicts) causes(at int) []Cause {
	check, ok := v.checks[at].(causer)
	if !ok {
		return nil
	}
	return check.Causes(&v.pass.Look, func(yield func(int) bool) {
		for _, row := range v.turnedAway[at].rows() {
			if !yield(row) {
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
	blames := make([]string, 0, len(v.checks))
	for i, check := range v.checks {
		if check.Name() == api.OwnershipFilter {
			total -= v.counts[i]
			continue
		}
		if n := v.counts[i]; n > 0 {
			blames = append(blames, fmt.Sprintf("%d %s%s", n, check.Blame(n), named(v.causes(i))))
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
		if by := v.rejectedBy(int(row)); by >= 0 {
			check := v.checks[by]
			candidate := api.Candidate{
				Cluster: f.name(int(row)), Current: v.current.Has(int(row)),
				Filter: check.Name(), Reason: check.Reason(&v.pass.Look, int(row)),
			}
			if t, ok := check.(teller); ok {
				candidate.Tells = t.Tells(&v.pass.Look, int(row))
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

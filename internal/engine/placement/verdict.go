package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// Verdicts say for every cluster whether the filters admit it for a query, and which one rejects
// it.
type Verdicts struct {
	// Admitted are the clusters that fit. Current ones are subject to their more lenient rules.
	Admitted columns.Bitmap

	pass    *Pass          // evaluates and rates clusters as the decision did
	Current columns.Bitmap // rows of the current decision
	checks  []filter.Check
	counts  []int // rejections by check
	// turnedAway holds, by check, the rows that it was the first to reject.
	turnedAway []columns.Bitmap
	// leaving is how many clusters would fit if the workload were not leaving them.
	leaving int
}

// NewVerdicts evaluates every cluster as one outside the current decision, and also returns the
// resulting mask.
func NewVerdicts(f *columns.Fleet, q *Query, others ledger.Others) (*Verdicts, columns.Bitmap) {
	p := newPass(f, q, others.Reserved)
	v := &Verdicts{pass: p, checks: q.Checks.All}
	words := (f.Slots() + 63) / 64
	bitmaps := make(columns.Bitmap, (3+len(v.checks))*words)
	next := func() (b columns.Bitmap) {
		b, bitmaps = bitmaps[:words:words], bitmaps[words:]
		return b
	}
	keep := next()
	v.Current, v.Admitted = next(), next()
	copy(keep, f.Live())
	v.counts, v.turnedAway = make([]int, len(v.checks)), make([]columns.Bitmap, len(v.checks))
	for i, check := range v.checks {
		rejected := next()
		copy(rejected, keep)
		check.Apply(&p.Evaluation, keep)
		rejected.AndNot(keep)
		v.counts[i], v.turnedAway[i] = rejected.Count(), rejected
	}
	copy(v.Admitted, keep)
	return v, keep
}

// RejectedBy returns the position of the first check that rejected a row, or -1.
func (v *Verdicts) RejectedBy(row int) int {
	return slices.IndexFunc(v.turnedAway, func(rows columns.Bitmap) bool { return rows.Has(row) })
}

// JudgePresent replaces the verdict on a cluster of the current decision by that of the more
// lenient rules.
func (v *Verdicts) JudgePresent(row int) {
	v.Current.Set(row)
	if was := v.RejectedBy(row); was >= 0 {
		v.counts[was]--
		v.turnedAway[was].Clear(row)
	}
	v.Admitted.Set(row)
	for i, check := range v.checks {
		if !check.Admits(&v.pass.Evaluation, row, true) {
			v.turnedAway[i].Set(row)
			v.counts[i]++
			v.Admitted.Clear(row)
			return
		}
	}
}

// Leave rejects a cluster that the workload is leaving.
func (v *Verdicts) Leave(row int) {
	if v.Admitted.Has(row) {
		v.Admitted.Clear(row)
		v.leaving++
	}
}

// EvictionsFilter is the filter name in explanations for the clusters that a workload is leaving.
const EvictionsFilter = "evictions"

// Rejections counts the rejected clusters by check, in filter order.
func (v *Verdicts) Rejections() []api.Rejection {
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
		out = append(out, api.Rejection{Filter: EvictionsFilter, Count: v.leaving})
	}
	return out
}

// causes returns the causes of a check's rejections, or nil if the check has only one.
func (v *Verdicts) causes(at int) []filter.Cause {
	check, ok := v.checks[at].(filter.Causer)
	if !ok {
		return nil
	}
	return check.Causes(&v.pass.Evaluation, func(yield func(int) bool) {
		for _, row := range v.turnedAway[at].Rows() {
			if !yield(row) {
				return
			}
		}
	})
}

// maxNamedCauses is the number of causes that the summary names.
const maxNamedCauses = 2

// named formats causes: ` ("load", "cost" and 3 more)`.
func named(causes []filter.Cause) string {
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
	if slices.ContainsFunc(causes[:len(names)], func(c filter.Cause) bool { return c.Why != "" }) {
		separator = "; "
	}
	text := strings.Join(names, separator)
	if more := len(causes) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return " (" + text + ")"
}

// Sentence is the part of the summary that says how many clusters fit, and why the others do not.
// Without a current decision it is the same for all queries of a class. Clusters that belong to
// other namespaces are not counted, because the reader must not learn of them.
func (v *Verdicts) Sentence() string {
	f, q := v.pass.Fleet, v.pass.Query
	fit, total := v.Admitted.Count(), f.Len()
	blames := make([]string, 0, len(v.checks))
	for i, check := range v.checks {
		if check.Name() == api.OwnershipFilter {
			total -= v.counts[i]
			continue
		}
		if n := v.counts[i]; n > 0 {
			blames = append(blames, fmt.Sprintf("%d %s%s", n, check.Rejection(n), named(v.causes(i))))
		}
	}
	if v.leaving > 0 {
		blames = append(blames, fmt.Sprintf("%d %s being left", v.leaving, filter.Plural(v.leaving, "is", "are")))
	}
	text := fmt.Sprintf("%d of %d %s %s", fit, total, filter.Plural(total, cmp.Or(q.One, "cluster"), cmp.Or(q.Many, "clusters")), filter.Plural(fit, "fits", "fit"))
	if len(blames) > 0 {
		text += ": " + strings.Join(blames, ", ")
	}
	return text
}

// Rejected describes the clusters that do not fit, by name.
func (v *Verdicts) Rejected() []api.Candidate {
	f := v.pass.Fleet
	var out []api.Candidate
	for _, row := range f.ByName() {
		if by := v.RejectedBy(int(row)); by >= 0 {
			check := v.checks[by]
			candidate := api.Candidate{
				Cluster: f.Name(int(row)), Description: f.Description(int(row)), Current: v.Current.Has(int(row)),
				Filter: check.Name(), Reason: check.Reason(&v.pass.Evaluation, int(row)),
			}
			if t, ok := check.(filter.Teller); ok {
				candidate.Tells = t.Tells(&v.pass.Evaluation, int(row))
			}
			out = append(out, candidate)
		}
	}
	return out
}

// Sentence says how many clusters fit a query, and why the others do not.
func Sentence(f *columns.Fleet, q *Query, others ledger.Others) string {
	p := newPass(f, q, others.Reserved)
	v := &Verdicts{pass: p, checks: q.Checks.All, Admitted: slices.Clone(f.Live())}
	v.counts, v.turnedAway = make([]int, len(v.checks)), make([]columns.Bitmap, len(v.checks))
	left := f.Len()
	for i, check := range v.checks {
		var before columns.Bitmap
		if _, ok := check.(filter.Causer); ok { // it also needs to know which ones
			before = slices.Clone(v.Admitted)
		}
		check.Apply(&p.Evaluation, v.Admitted)
		now := v.Admitted.Count()
		if v.counts[i] = left - now; v.counts[i] > 0 && before != nil {
			before.AndNot(v.Admitted)
			v.turnedAway[i] = before
		}
		left = now
	}
	return v.Sentence()
}

// RejectedAlike reports whether the given rows are admitted in two versions of a fleet, or rejected
// in both by the same check for the same cause. Then the Sentence of the query is the same if
// nothing else differs.
func RejectedAlike(before, now *columns.Fleet, q *Query, others ledger.Others, rows []int) bool {
	if q.Checks.Remember() {
		return false // an evaluation for the earlier fleet would be costly, and replace what is remembered
	}
	was, is := q.evaluation(before, others.Reserved), q.evaluation(now, others.Reserved)
	for _, row := range rows {
		by := rejecting(q.Checks.All, &is, row)
		if by != rejecting(q.Checks.All, &was, row) {
			return false
		}
		if by >= 0 {
			if _, ok := q.Checks.All[by].(filter.Causer); ok {
				return false
			}
		}
	}
	return true
}

// rejecting returns the position of the first check that rejects a row, or -1.
func rejecting(checks []filter.Check, l *filter.Evaluation, row int) int {
	return slices.IndexFunc(checks, func(c filter.Check) bool { return !c.Admits(l, row, false) })
}

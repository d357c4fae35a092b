package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Explained is an answer together with the verdict on every cluster.
type Explained struct {
	Outcome
	// Admitted are the clusters that fit, the present ones by their own rules.
	Admitted Bitmap

	pass    *Pass // judges and rates clusters as the decision did
	view    *View
	present Present
	current Bitmap // rows of the present decision
	now     time.Time
	grounds []groundOf
	counts  []int
	// rejectedBy is, by row, 1 + the position in grounds of the first ground that
	// rejected the cluster; 0 where it fits.
	rejectedBy []uint32
	// counted are the chosen clusters by spread constraint and domain.
	counted map[*api.SpreadConstraint]map[string]int
}

// groundOf is one ground of one filter.
type groundOf struct {
	filter Filter
	ground int
}

// Explain answers a query as Decide does, from the same filters and the same
// selection, and keeps the verdict on every cluster. A ranking that is at hand
// is used; nil is made anew.
func Explain(f *Fleet, q *Query, ranking *Ranking, others Others, present Present, now time.Time) *Explained {
	p := newPass(f, q, others.Reserved)
	e := &Explained{pass: p, present: present, now: now}
	for _, filter := range filters {
		for ground := range filter.Grounds(q) {
			e.grounds = append(e.grounds, groundOf{filter, ground})
		}
	}
	words := (f.Slots() + 63) / 64
	bitmaps := make(Bitmap, 4*words)
	keep, before := bitmaps[:words:words], bitmaps[words:2*words:2*words]
	e.current, e.Admitted = bitmaps[2*words:3*words:3*words], bitmaps[3*words:]
	copy(keep, f.live)
	e.counts = make([]int, len(e.grounds))
	e.rejectedBy = make([]uint32, f.Slots())
	for i, g := range e.grounds {
		copy(before, keep)
		g.filter.Apply(p, g.ground, keep)
		before.andNot(keep)
		before.each(func(row int) {
			e.rejectedBy[row] = uint32(i + 1)
			e.counts[i]++
		})
	}
	e.view = &View{Mask: keep, Demoted: p.demotedRows(), Until: p.until, Ranking: ranking}
	if ranking == nil && q.Ranked() {
		e.view.Ranking = NewRanking(f, q, keep)
	}
	e.Outcome = Decide(f, q, e.view, others, present, now)
	copy(e.Admitted, keep)
	for _, d := range present.Decisions {
		if row, ok := f.Row(d.Cluster); ok {
			e.current.set(row)
			e.judgePresent(row)
		}
	}
	rows := presentRows(f, present)
	rating := e.view.decision(f, q, others, rows)
	p.ranking, p.seen, p.mine, p.spans, p.candidates = rating.ranking, rating.seen, rating.mine, rating.spans, rating.candidates
	p.left = nil
	current := p.present(rows, present, e.view) // widens the spans as the decision did
	if e.Held == "" && q.Minds() && present.Answered && !present.Fresh && len(q.spread) == 0 && q.Wanted != All {
		// Others' decisions may rate another cluster higher and yet move nothing.
		wanted := min(q.Wanted, f.Len())
		if free := p.seatBest(e.view, current, wanted, false); staying(free.seats) < e.staying() {
			e.Held = HeldByBalance
		}
	}
	return e
}

// staying counts the chosen clusters that were chosen before.
func (e *Explained) staying() int {
	n := 0
	for _, c := range e.Choices {
		if e.current.Has(c.Row) {
			n++
		}
	}
	return n
}

// judgePresent replaces the verdict on a cluster of the present decision by
// that of the milder rules for those.
func (e *Explained) judgePresent(row int) {
	if was := e.rejectedBy[row]; was > 0 {
		e.counts[was-1]--
	}
	e.rejectedBy[row] = 0
	e.Admitted.set(row)
	for i, g := range e.grounds {
		if !g.filter.Admits(e.pass, g.ground, row, true) {
			e.rejectedBy[row] = uint32(i + 1)
			e.counts[i]++
			e.Admitted.clear(row)
			return
		}
	}
}

// Rejections counts the rejected clusters by ground, in the order of the
// filters.
func (e *Explained) Rejections() []api.Rejection {
	var out []api.Rejection
	for i, g := range e.grounds {
		if e.counts[i] == 0 {
			continue
		}
		if causes := e.causes(i); len(causes) > 0 {
			for _, c := range causes {
				out = append(out, api.Rejection{Filter: g.filter.Name(), On: c.On, Count: c.Count})
			}
			continue
		}
		out = append(out, api.Rejection{Filter: g.filter.Name(), On: g.filter.On(e.pass.query, g.ground), Count: e.counts[i]})
	}
	return out
}

// causes divides what a ground rejected, nil where the ground says it all.
func (e *Explained) causes(ground int) []Cause {
	filter, ok := e.grounds[ground].filter.(causer)
	if !ok {
		return nil
	}
	return filter.Causes(e.pass, func(yield func(int) bool) {
		for row, by := range e.rejectedBy {
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
		names = append(names, strconv.Quote(c.On))
	}
	text := strings.Join(names, ", ")
	if more := len(causes) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return " (" + text + ")"
}

// Summary is the answer in one sentence: "0 of 120 clusters fit: 80 do not
// match label constraint \"location is DE\", 40 are not online".
func (e *Explained) Summary() string {
	f, q := e.pass.fleet, e.pass.query
	var b strings.Builder
	fit := e.Admitted.Count()
	if q.Wanted != 0 && fit > 0 {
		names := make([]string, 0, 3)
		for _, c := range e.Choices[:min(len(e.Choices), 3)] {
			names = append(names, f.name(c.Row))
		}
		if more := len(e.Choices) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		fmt.Fprintf(&b, "%s chosen", strings.Join(names, ", "))
		if q.Wanted > len(e.Choices) {
			fmt.Fprintf(&b, ", %d wanted", q.Wanted)
		}
		b.WriteString("; ")
	}
	if q.Wanted == 0 {
		b.WriteString("no clusters wanted; ")
	}
	b.WriteString(e.Fits())
	return b.String()
}

// Fits is the part of the summary that says how many clusters fit, and why the
// others do not. Without a present decision it is the same for all queries of a
// class.
func (e *Explained) Fits() string {
	f, q := e.pass.fleet, e.pass.query
	fit := e.Admitted.Count()
	text := fmt.Sprintf("%d of %d %s %s", fit, f.Len(), plural(f.Len(), "cluster", "clusters"), plural(fit, "fits", "fit"))
	blames := make([]string, 0, len(e.grounds))
	for i, g := range e.grounds {
		if n := e.counts[i]; n > 0 {
			blames = append(blames, fmt.Sprintf("%d %s%s", n, g.filter.Blame(q, g.ground, n), named(e.causes(i))))
		}
	}
	if len(blames) > 0 {
		text += ": " + strings.Join(blames, ", ")
	}
	return text
}

// Render writes the explanation out, cluster by cluster: the chosen ones first,
// then the others that fit, best first, then the rejected ones by name.
func (e *Explained) Render() *api.Explanation {
	f, q := e.pass.fleet, e.pass.query
	at := e.now.UTC()
	out := &api.Explanation{
		Namespace: q.Key.Namespace, Name: q.Key.Name, At: at,
		Summary: e.Summary(), Total: f.Len(), Feasible: e.Admitted.Count(),
		Rejections: e.Rejections(), Kept: string(e.Held), NearestMiss: e.NearestMiss(),
		Candidates: make([]api.Candidate, 0, f.Len()),
	}
	if q.Wanted != All {
		wanted := int64(q.Wanted)
		out.Wanted = &wanted
	}
	// A year beyond 9999 has no JSON form; only a simulation gets there.
	if next := e.NextAt.UTC(); !next.IsZero() && next.Year() <= 9999 {
		out.NextAt = &next
	}
	out.Margin = e.margin()
	chosen := make(map[int]bool, len(e.Choices))
	for i, c := range e.Choices {
		chosen[c.Row] = true
		candidate := e.admitted(c.Row)
		candidate.Selected, candidate.Rank = true, int64(i+1)
		out.Candidates = append(out.Candidates, candidate)
	}
	var passed, rejected []int
	for _, row := range f.index {
		switch {
		case chosen[row]:
		case e.rejectedBy[row] == 0:
			passed = append(passed, row)
		default:
			rejected = append(rejected, row)
		}
	}
	contenders := make([]contender, len(passed))
	for i, row := range passed {
		current := e.current.Has(row)
		contenders[i] = contender{
			row: row, current: current, merit: e.pass.total(row, current && !e.present.Fresh), tie: e.pass.tie(row, e.view),
		}
	}
	slices.SortFunc(contenders, e.pass.before)
	for i, c := range contenders {
		candidate := e.admitted(c.row)
		candidate.Rank = int64(len(e.Choices) + i + 1)
		candidate.Reason = e.spreadReason(c.row)
		out.Candidates = append(out.Candidates, candidate)
	}
	slices.SortFunc(rejected, func(a, b int) int { return cmp.Compare(f.name(a), f.name(b)) })
	for _, row := range rejected {
		g := e.grounds[e.rejectedBy[row]-1]
		out.Candidates = append(out.Candidates, api.Candidate{
			Cluster: f.name(row), Current: e.current.Has(row),
			Filter: g.filter.Name(), Reason: g.filter.Reason(e.pass, g.ground, row),
		})
	}
	return out
}

// admitted describes a cluster that fits.
func (e *Explained) admitted(row int) api.Candidate {
	q := e.pass.query
	current := e.current.Has(row)
	sticky := current && !e.present.Fresh
	score := q.scorer.Score(e.pass, row, sticky)
	return api.Candidate{
		Cluster: e.pass.fleet.name(row), Current: current, Score: &score,
		Scores: q.scorer.Parts(e.pass, row, sticky),
	}
}

package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// Explained is a result together with the verdict on every cluster.
type Explained struct {
	Outcome
	*Verdicts

	view    *View
	present Present
	now     time.Time
	// counted holds the number of chosen clusters by spread constraint and domain.
	counted map[*api.SpreadConstraint]map[string]int
}

// Explain answers a query like Decide, with the same filters and selection, and keeps the verdict
// on every cluster. If ranking is nil, it is computed.
func Explain(f *columns.Fleet, q *Query, ranking *score.Ranking, others ledger.Others, present Present, now time.Time) *Explained {
	v, keep := NewVerdicts(f, q, others)
	p := v.pass
	e := &Explained{Verdicts: v, present: present, now: now}
	e.view = &View{Mask: keep, demoted: p.demotedRows(), Until: p.Until, Ranking: ranking}
	if ranking == nil && q.Ranked() {
		e.view.Ranking = NewRanking(f, q, keep)
	}
	e.Outcome = Decide(f, q, e.view, others, present, now)
	for _, d := range present.Decisions {
		if row, ok := f.Row(d.Cluster); ok {
			e.JudgePresent(row)
		}
	}
	rows := presentRows(f, present)
	rating := e.view.decision(f, q, others, rows)
	rating.Evaluation = p.Evaluation
	p.Rating = rating.Rating
	p.Settled = present.settled()
	current := p.present(rows, present, e.view) // widens the spans as the decision did
	if e.kept == "" && q.Minds() && present.settled() && len(q.spread) == 0 && q.Wanted != score.All {
		// Decisions of others may make another cluster score higher without moving anything.
		wanted := min(q.Wanted, f.Len())
		if free := p.seatBest(e.view, current, wanted, false); staying(free.seats) < e.staying() {
			e.kept = keptByBalance
		}
	}
	p.Settled = false // show every part of the score
	return e
}

// staying counts the chosen clusters that were chosen before.
func (e *Explained) staying() int {
	n := 0
	for _, c := range e.Choices {
		if e.Current.Has(c.Row) {
			n++
		}
	}
	return n
}

// Summary returns the result as one sentence: "0 of 120 clusters fit: 80 do not match label
// constraint \"location is DE\", 40 are not online".
func (e *Explained) Summary() string {
	q := e.pass.Query
	var b strings.Builder
	fit := e.Admitted.Count()
	if q.Wanted != 0 && fit > 0 {
		names := make([]string, 0, 4)
		for i := range e.Choices[:min(len(e.Choices), 3)] {
			names = append(names, e.listed(i))
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
	b.WriteString(e.Sentence())
	return b.String()
}

// listed returns the name of the i-th chosen cluster in the order of the status: an unchanged
// decision keeps its order, whatever the scores are now (see NewStatus).
func (e *Explained) listed(i int) string {
	if e.Same && e.present.settled() {
		return e.present.Decisions[i].Cluster
	}
	return e.pass.Fleet.Name(e.Choices[i].Row)
}

// Render returns the explanation with every cluster: the chosen ones first, then the others that
// fit, best first, then the rejected ones by name.
func (e *Explained) Render() *api.Explanation {
	f, q := e.pass.Fleet, e.pass.Query
	at := e.now.UTC()
	out := &api.Explanation{
		Kind: api.KindPlacement, Namespace: q.Key.Namespace, Name: q.Key.Name, At: at,
		Summary: e.Summary(), Total: f.Len(), Feasible: e.Admitted.Count(),
		Rejections: e.Rejections(), Kept: string(e.kept), NearestMiss: e.NearestMiss(),
		Candidates: make([]api.Candidate, 0, f.Len()),
	}
	if q.Wanted != score.All {
		wanted := int64(q.Wanted)
		out.Wanted = &wanted
	}
	// A year beyond 9999 has no JSON form; only simulations reach it.
	if next := e.nextAt().UTC(); !next.IsZero() && next.Year() <= 9999 {
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
	var passed []int
	for _, row := range f.Index() {
		if !chosen[row] && e.RejectedBy(row) < 0 {
			passed = append(passed, row)
		}
	}
	contenders := make([]contender, len(passed))
	for i, row := range passed {
		current := e.Current.Has(row)
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
	out.Candidates = append(out.Candidates, e.Rejected()...)
	return out
}

// admitted describes a cluster that fits.
func (e *Explained) admitted(row int) api.Candidate {
	q := e.pass.Query
	current := e.Current.Has(row)
	sticky := current && !e.present.Fresh
	score := q.scoring.Score(&e.pass.Rating, row, sticky)
	return api.Candidate{
		Cluster: e.pass.Fleet.Name(row), Description: e.pass.Fleet.Description(row), Current: current, Score: &score,
		Scores: q.scoring.Parts(&e.pass.Rating, row, sticky),
	}
}

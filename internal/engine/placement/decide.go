package placement

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/window"
)

// Present is the current decision of a placement.
type Present struct {
	// Decisions are the chosen clusters, best first.
	Decisions []api.Decision
	// ScheduledAt is when the decision last changed.
	ScheduledAt time.Time
	// Answered says that the decision was made for the current spec. If not, the placement is
	// decided at once, regardless of reschedule_after.
	Answered bool
	// Fresh is an explicit request for a new decision: current clusters get neither stickiness nor
	// min_improvement. They still win ties.
	Fresh bool
	// Labels are those of the placement, which move windows select by.
	Labels map[string]string
}

// Choice is one chosen cluster with its score.
type Choice struct {
	Row   int
	Score float64
}

// KeptBy is why a decision is kept without comparing scores.
type KeptBy string

// Values of KeptBy.
const (
	// keptByAge: the decision is younger than reschedule_after.
	keptByAge KeptBy = "reschedule_after"
	// KeptByMigration: the decision must not move while it fits.
	KeptByMigration KeptBy = "migration"
	// keptByMisconfiguration: scores cannot be computed, because the policy names a metric that
	// does not exist.
	keptByMisconfiguration KeptBy = "misconfigured"
	// keptByUnread: scores cannot be compared, because a metric of a chosen cluster cannot be read.
	keptByUnread KeptBy = "unread_metric"
	// keptByWindow: a move window holds the decision.
	keptByWindow KeptBy = "move_window"
	// keptByBalance: another decision would be better only because of the decisions of other
	// placements.
	keptByBalance KeptBy = "balance"
)

// Outcome is the result of a query.
type Outcome struct {
	// Choices are the chosen clusters, best first.
	Choices []Choice
	// Same says that Choices are the clusters of the current decision, in any order.
	Same bool
	// kept is why the current decision is kept although scores alone would choose otherwise, or "".
	kept KeptBy
	// NextAt is when the result may change through the passing of time alone; zero if never.
	NextAt time.Time
	// Full says that all seats are taken.
	Full bool
	// Worst is the merit of the chosen cluster that would be displaced first, and next that of the
	// best cluster that was not chosen (valid if hasNext). Nothing moves as long as the merit of
	// every cluster outside the decision is below Worst and that of every chosen one is above next.
	// worstRow and nextRow are these clusters.
	Worst, next       Merit
	hasNext           bool
	worstRow, nextRow int
	// WorstTotal is the lowest merit of a chosen cluster with the decisions of other placements
	// included. If those count (see Query.Minds), a cluster takes over a seat only if its own merit
	// is above Worst and its total merit is above WorstTotal.
	WorstTotal Merit
	// lostBy are the scores by which a cluster was left for another, nil if none was.
	lostBy *api.DecisionMargin
	// Movable says that the decisions of others alone may move a seat: a cluster that was not chosen
	// is better without regard to them (see Query.Minds).
	Movable bool
}

// rows yields the rows of the chosen clusters.
func (out *Outcome) rows(yield func(row int) bool) {
	for _, c := range out.Choices {
		if !yield(c.Row) {
			return
		}
	}
}

// Merit determines whether a decision moves: standing, then the score without the decisions of
// other placements. For clusters of the current decision it includes stickiness and
// min_improvement.
type Merit struct {
	columns.Standing
}

// Highest is a merit that no cluster exceeds.
var Highest = Merit{columns.Standing{Scored: true, Score: math.Inf(1)}}

// Less reports whether m is below other.
func (m Merit) Less(other Merit) bool { return m.Standing.Less(other.Standing) }

// Lower returns the lower of two merits.
func Lower(a, b Merit) Merit {
	if a.Less(b) {
		return a
	}
	return b
}

// MeritOf returns the merit of a row for a query of a view.
func MeritOf(f *columns.Fleet, q *Query, v *View, others ledger.Others, row int, current bool) Merit {
	p := v.rating(f, q, others)
	return p.own(row, current)
}

// TotalOf returns an upper bound, for every query of a view, on the merit of a cluster outside the
// decision with the decisions of others included. ok is false if it cannot be computed cheaply.
func TotalOf(f *columns.Fleet, q *Query, v *View, others ledger.Others, row int) (total Merit, ok bool) {
	if q.scoring.Minds == nil {
		return Merit{}, false
	}
	p := v.rating(f, q, others)
	p.See(others.Load, nil)
	score, ok := q.scoring.Minds.AtMost(&p.Rating, row, q.scoring.Own(&p.Rating, row, false))
	return p.merit(row, false, score), ok
}

// KeepsSeat reports whether a chosen row keeps its seat with its current rating, as far as that can
// be determined cheaply; own and total are its merits. The row must be admitted, and the query must
// mind the decisions of others and have no spread constraints.
func KeepsSeat(f *columns.Fleet, q *Query, v *View, others ledger.Others, present Present, row int) (own, total Merit, keeps bool) {
	p := v.decision(f, q, others, presentRows(f, present))
	p.Settled = present.settled()
	own, total = p.own(row, true), p.total(row, true)
	return own, total, p.Settled && p.outOfReach(v, own, total)
}

// Overtaken reports whether an admitted cluster that is not chosen has at least the given merit,
// without the decisions of other placements.
func Overtaken(f *columns.Fleet, q *Query, v *View, others ledger.Others, merit Merit, chosen func(row int) bool) bool {
	p := v.rating(f, q, others)
	order := f.Ranking()
	if p.Ranking != nil {
		order = p.Ranking.Order
	}
	for _, row := range order[:min(len(order), manyProbes)] {
		switch row := int(row); {
		case p.own(row, false).Less(merit):
			return false
		case v.Mask.Has(row) && !chosen(row):
			return true
		}
	}
	for i, w := range v.Mask { // few of the best are admitted: check all admitted rows
		for ; w != 0 && len(order) > manyProbes; w &= w - 1 {
			if row := i<<6 + bits.TrailingZeros64(w); !p.own(row, false).Less(merit) && !chosen(row) {
				return true
			}
		}
	}
	return false
}

// manyProbes is the number of clusters of a ranking that are probed before all admitted ones are
// checked instead.
const manyProbes = 512

// own returns the merit of a row.
func (p *Pass) own(row int, current bool) Merit {
	return p.merit(row, current, p.By.Own(&p.Rating, row, current))
}

// total returns the merit of a row with the decisions of other placements included.
func (p *Pass) total(row int, current bool) Merit {
	return p.merit(row, current, p.By.Score(&p.Rating, row, current))
}

func (p *Pass) merit(row int, current bool, score float64) Merit {
	if current {
		score = min(addDecimal(score, p.Query.minImprovement), math.MaxFloat64)
	}
	return Merit{columns.Standing{Scored: p.Query.Ranked() || p.Fleet.Scored().Has(row), Score: score}}
}

// addDecimal adds two decimal numbers. In binary, 0.7 + 0.1 is less than 0.8, so that an improvement
// by just 0.1 would be one by more. If the sum is as close to a number of 15 digits as the additions
// are exact, it is that number.
func addDecimal(score, more float64) float64 {
	sum := score + more
	if more == 0 || math.IsInf(sum, 0) {
		return sum
	}
	decimal, err := strconv.ParseFloat(strconv.FormatFloat(sum, 'g', 15, 64), 64)
	if err != nil || math.Abs(sum-decimal) > (math.Abs(score)+more)*0x1p-52 {
		return sum
	}
	return decimal
}

// contender is a cluster that competes for a seat.
type contender struct {
	row     int
	current bool
	merit   Merit // total
	tie     uint64
}

// before orders contenders, best first. Ties go to the current decision, then to clusters that are
// not demoted, then by hash or name.
func (p *Pass) before(a, b contender) int {
	switch {
	case a.merit.Scored != b.merit.Scored:
		return first(a.merit.Scored)
	case a.merit.Score != b.merit.Score:
		return first(a.merit.Score > b.merit.Score)
	case a.current != b.current:
		return first(a.current)
	case a.tie != b.tie:
		return first(a.tie < b.tie)
	case a.row == b.row:
		return 0
	}
	return first(p.Fleet.NameRank()[a.row] < p.Fleet.NameRank()[b.row])
}

func first(yes bool) int {
	if yes {
		return -1
	}
	return 1
}

// Decide answers a query at the given time.
//
// The rules (3 to 5 of docs/architecture.md): a cluster of the current decision that no longer fits is
// dropped at once. The others keep their seats while the decision is younger than reschedule_after
// or migration is off; otherwise a seat moves only to a cluster whose score is better by more than
// min_improvement. The decisions of other placements determine where new seats go, but never move a
// decision that was made for the current spec: otherwise placements would chase each other.
func Decide(f *columns.Fleet, q *Query, v *View, others ledger.Others, present Present, now time.Time) Outcome {
	rows := presentRows(f, present)
	pass := v.decision(f, q, others, rows)
	p := &pass
	p.Settled = present.settled()
	current := p.present(rows, present, v)
	wanted := q.Wanted
	if wanted == score.All || wanted > f.Len() {
		wanted = f.Len()
	}
	s, out := p.seat(v, current, wanted, present, false), Outcome{}
	if staying(s.seats) < min(len(current), wanted) {
		if by, until := p.kept(current, present, now); by != "" {
			s = p.seat(v, current, wanted, present, true)
			out.kept, out.NextAt = by, until
		} else if hold := p.heldByWindow(present, now); hold != nil {
			s = p.seat(v, current, wanted, present, true)
			out.kept, out.NextAt = keptByWindow, hold.Next
		}
	}
	out.Full = q.Wanted != score.All && len(s.seats) >= q.Wanted
	p.border(&out, s, present)
	out.lostBy = p.lost(s, present)
	out.Same = len(s.seats) == len(present.Decisions) && staying(s.seats) == len(s.seats)
	out.Choices = p.shown(s.seats, present)
	return out
}

// settled reports whether the decision was made for the current spec and no new one was requested.
func (d *Present) settled() bool { return d.Answered && !d.Fresh }

// heldByWindow returns the move window that keeps a decision which answers its spec where it is, or nil.
func (p *Pass) heldByWindow(present Present, now time.Time) *window.Hold {
	if !present.settled() {
		return nil
	}
	return p.Fleet.Windows().Held(p.Query.Key.Namespace, present.Labels, now)
}

// kept returns why a current decision keeps its clusters whatever the scores of others, and until
// when. It returns "" if nothing keeps it.
func (p *Pass) kept(current []contender, present Present, now time.Time) (KeptBy, time.Time) {
	q := p.Query
	since := present.ScheduledAt
	if since.After(now) {
		since = now // the other clock is ahead: treat the decision as made now
	}
	end := since.Add(q.rescheduleAfter)
	switch {
	case len(current) > 0 && len(q.unknownScoreMetrics(p.Fleet)) > 0:
		return keptByMisconfiguration, time.Time{}
	case !q.Migration:
		return KeptByMigration, time.Time{}
	case present.settled() && now.Before(end):
		return keptByAge, end
	case !present.Fresh && slices.ContainsFunc(current, func(c contender) bool { return q.scoring.Unread(p.Fleet, c.row) != nil }):
		return keptByUnread, time.Time{}
	}
	return "", time.Time{}
}

// border records the clusters between which a seat would move next, and when a chosen cluster will
// be rejected through the passing of time alone.
func (p *Pass) border(out *Outcome, s seating, present Present) {
	for i, c := range s.seats {
		if own := p.ownOf(c, present.Fresh); i == 0 || !out.Worst.Less(own) { // among equals, the last is displaced first
			out.Worst, out.worstRow = own, c.row
		}
		if i == 0 || c.merit.Less(out.WorstTotal) {
			out.WorstTotal = c.merit
		}
		out.NextAt = filter.Sooner(out.NextAt, p.Stays(c.row))
	}
	for i, c := range s.left() {
		if own := p.ownOf(c, present.Fresh); i == 0 || out.next.Less(own) {
			out.next, out.nextRow, out.hasNext = own, c.row, true
		}
	}
	out.Movable = p.Query.Minds() && out.kept == "" && (out.hasNext && out.Worst.Less(out.next) || p.Query.Spreads() && !out.Full)
}

// ownOf returns the merit of a contender without the decisions of other placements.
func (p *Pass) ownOf(c contender, fresh bool) Merit {
	if !p.Query.Minds() {
		return c.merit
	}
	return p.own(c.row, c.current && !fresh)
}

// shown returns the choices for display: with plain scores, that is without min_improvement but
// with a negative steady weight, and in the resulting order.
func (p *Pass) shown(seats []contender, present Present) []Choice {
	p.Settled = false
	if (p.Query.minImprovement > 0 || p.By.Traits.Away) && !present.Fresh {
		for i := range seats {
			if c := &seats[i]; c.current {
				c.merit.Score = p.By.Score(&p.Rating, c.row, true)
			}
		}
	}
	if p.Query.Ranked() {
		// The choice is made; among equals, names determine the displayed order.
		for i := range seats {
			seats[i].current = false
		}
	}
	p.sort(seats)
	choices := make([]Choice, len(seats))
	for i, c := range seats {
		choices[i] = Choice{Row: c.row, Score: c.merit.Score}
	}
	return choices
}

// staying counts the current clusters among the seats.
func staying(seats []contender) int {
	n := 0
	for _, c := range seats {
		if c.current {
			n++
		}
	}
	return n
}

// presentRows returns the rows of the current decision.
func presentRows(f *columns.Fleet, present Present) []int {
	if len(present.Decisions) == 0 {
		return nil
	}
	rows := make([]int, 0, len(present.Decisions))
	for _, d := range present.Decisions {
		if row, ok := f.Index()[d.Cluster]; ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// present returns the clusters of the current decision that still fit. Rows in the mask need no
// further check: the checks are never stricter for current clusters.
func (p *Pass) present(rows []int, present Present, v *View) []contender {
	if outside := func(row int) bool { return !v.Mask.Has(row) }; slices.ContainsFunc(rows, outside) {
		rows = slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return outside(row) && !p.Admits(row, true) })
		if p.Query.Relative() && slices.ContainsFunc(rows, outside) {
			p.Widen(rows) // to include a current cluster that is not a candidate for others
		}
	}
	p.MeasureLeft(v.Mask, rows)
	if len(rows) == 0 {
		return nil
	}
	current := make([]contender, 0, len(rows))
	for _, row := range rows {
		current = append(current, contender{row: row, current: true, merit: p.total(row, !present.Fresh), tie: p.tie(row, v)})
	}
	p.sort(current)
	// A decision given to a simulation may name a cluster twice.
	return slices.CompactFunc(current, func(a, b contender) bool { return a.row == b.row })
}

// tie returns the position of a row among equals: lower comes first.
func (p *Pass) tie(row int, v *View) uint64 {
	tie := uint64(0)
	if p.Query.Ranked() {
		tie = uint64(p.Fleet.NameRank()[row])
	} else {
		tie = columns.TieHash(p.Query.seed, p.Fleet.NameHashes()[row]) >> 1
	}
	if v.isDemoted(row) {
		tie |= 1 << 63
	}
	return tie
}

// sort sorts contenders. Those of an existing decision are usually sorted already.
func (p *Pass) sort(list []contender) {
	for i := 1; i < len(list); i++ {
		if p.before(list[i], list[i-1]) < 0 {
			slices.SortFunc(list, p.before)
			return
		}
	}
}

package placement

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// Present is the decision a placement has now.
type Present struct {
	// Decisions are the chosen clusters, best first.
	Decisions []api.Decision
	// ScheduledAt is when the decision last changed.
	ScheduledAt time.Time
	// Answered says that the decision answers the present spec. If not, the
	// placement is decided at once, without regard to reschedule_after.
	Answered bool
	// Fresh is an explicit wish for a new decision: the present clusters get no
	// stickiness and no min_improvement. Equal scores still stay.
	Fresh bool
	// Standing says that nothing that concerns the placement has changed since the
	// decision, as far as is known. Where other placements' decisions count in the
	// score it then moves nothing, whatever they have decided since: a restart,
	// which looks at everything, must not move what otherwise stays.
	Standing bool
}

// Choice is one chosen cluster with its score.
type Choice struct {
	Row   int
	Score float64
}

// KeptBy says why a decision stands without comparing scores.
type KeptBy string

// The grounds on which a decision is held.
const (
	// keptByAge is a decision younger than reschedule_after.
	keptByAge KeptBy = "reschedule_after"
	// KeptByMigration is a decision that may never move while it fits.
	KeptByMigration KeptBy = "migration"
	// keptByMisconfiguration is a decision whose scores cannot be told, because
	// the policy names a metric that does not exist.
	keptByMisconfiguration KeptBy = "misconfigured"
	// keptByBalance is a decision for which another would be better only because
	// of what other placements decided.
	keptByBalance KeptBy = "balance"
)

// Outcome is the answer to a query.
type Outcome struct {
	// Choices are the chosen clusters, best first.
	Choices []Choice
	// Same says that Choices are the clusters of the present decision, in
	// whatever order.
	Same bool
	// kept says why the present decision is kept although scores alone would
	// choose otherwise; "" where it is not.
	kept KeptBy
	// NextAt is when time alone may change the answer; zero if it cannot.
	NextAt time.Time
	// Full says that every wanted seat is taken.
	Full bool
	// Worst is the merit of the chosen cluster that would go first, and next
	// that of the best cluster left over (valid where hasNext). Nothing moves
	// while every outsider's merit is below Worst and every chosen one's above
	// next. worstRow and nextRow are the clusters.
	Worst, next       Merit
	hasNext           bool
	worstRow, nextRow int
	// WorstTotal is the lowest merit of a chosen cluster with what other
	// placements decided. Where that counts (see Query.Minds), an outsider takes a
	// seat only if it is above Worst by itself and above WorstTotal with it.
	WorstTotal Merit
}

// Merit is what decides whether a decision moves: standing, then the score
// without regard to the decisions of other placements, where a cluster of the
// present decision has stickiness and min_improvement added.
type Merit struct {
	columns.Standing
}

// Highest is a merit that no cluster stands above.
var Highest = Merit{columns.Standing{Scored: true, Score: math.Inf(1)}}

// Less reports that m stands below other.
func (m Merit) Less(other Merit) bool { return m.Standing.Less(other.Standing) }

// Lower is the lower of two merits.
func Lower(a, b Merit) Merit {
	if a.Less(b) {
		return a
	}
	return b
}

// MeritOf is the merit of a row for a query of a view.
func MeritOf(f *columns.Fleet, q *Query, v *View, others ledger.Others, row int, current bool) Merit {
	p := v.rating(f, q, others)
	return p.own(row, current)
}

// TotalOf is at least the merit of an outsider with what the decisions of others
// say, for every query of a view; ok is false where that cannot be told at once.
func TotalOf(f *columns.Fleet, q *Query, v *View, others ledger.Others, row int) (total Merit, ok bool) {
	if q.scoring.Minds == nil {
		return Merit{}, false
	}
	p := v.rating(f, q, others)
	p.See(others.Load, nil)
	score, ok := q.scoring.Minds.AtMost(&p.Rating, row, q.scoring.Own(&p.Rating, row, false))
	return p.merit(row, false, score), ok
}

// KeepsSeat reports whether a chosen row keeps its seat as it is rated now, as far as
// that can be told without looking at many; own and total are its merits. It has to be
// admitted, and the query to mind what others decided and not to spread.
func KeepsSeat(f *columns.Fleet, q *Query, v *View, others ledger.Others, present Present, row int) (own, total Merit, keeps bool) {
	p := v.decision(f, q, others, presentRows(f, present))
	p.Settled = present.settled()
	own, total = p.own(row, true), p.total(row, true)
	return own, total, p.Settled && p.outOfReach(v, own, total)
}

// Overtaken reports whether a cluster that is admitted and not chosen has at least
// some merit, without regard to what other placements decided.
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
	for i, w := range v.Mask { // where few of the best are admitted, all that are
		for ; w != 0 && len(order) > manyProbes; w &= w - 1 {
			if row := i<<6 + bits.TrailingZeros64(w); !p.own(row, false).Less(merit) && !chosen(row) {
				return true
			}
		}
	}
	return false
}

// manyProbes is how many clusters of a ranking are probed one by one before all that
// are admitted are looked at instead.
const manyProbes = 512

// own is the merit of a row.
func (p *Pass) own(row int, current bool) Merit {
	return p.merit(row, current, p.By.Own(&p.Rating, row, current))
}

// total is the merit of a row with what the other placements' decisions say.
func (p *Pass) total(row int, current bool) Merit {
	return p.merit(row, current, p.By.Score(&p.Rating, row, current))
}

func (p *Pass) merit(row int, current bool, score float64) Merit {
	if current {
		score = min(score+p.Query.minImprovement, math.MaxFloat64)
	}
	return Merit{columns.Standing{Scored: p.Query.Ranked() || p.Fleet.Scored().Has(row), Score: score}}
}

// contender is a cluster in the race for a seat.
type contender struct {
	row     int
	current bool
	merit   Merit // total
	tie     uint64
}

// before orders contenders, best first. Ties go to the present decision, then
// to clusters that nothing speaks against, then by hash or name.
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

// Decide answers a query at a moment.
//
// The rules (DESIGN 3.2.3 to 3.2.5): a cluster of the present decision that no
// longer fits goes at once. The others keep their seat while the decision is
// younger than reschedule_after or migration is off; otherwise a seat moves
// only to a cluster whose score is better by more than min_improvement. What
// other placements decide says where new seats go and never moves a decision
// that answers the spec: otherwise the placements would chase each other.
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
	if held, until := p.kept(len(current) > 0, present, now); held != "" && staying(s.seats) < min(len(current), wanted) {
		s = p.seat(v, current, wanted, present, true)
		out.kept, out.NextAt = held, until
	}
	p.border(&out, s, present)
	out.Full = q.Wanted != score.All && len(s.seats) >= q.Wanted
	out.Same = len(s.seats) == len(present.Decisions) && staying(s.seats) == len(s.seats)
	out.Choices = p.shown(s.seats, present)
	return out
}

// settled says that the decision answers its spec, and that no other is wished for.
func (d *Present) settled() bool { return d.Answered && !d.Fresh }

// kept says why a present decision keeps its clusters whatever others score, and
// until when by time alone; "" where nothing holds it.
func (p *Pass) kept(stays bool, present Present, now time.Time) (KeptBy, time.Time) {
	q := p.Query
	since := present.ScheduledAt
	if since.After(now) {
		since = now // dated by a clock that is ahead of this one: it is new, and no more
	}
	end := since.Add(q.rescheduleAfter)
	switch {
	case stays && len(q.unknownScoreMetrics(p.Fleet)) > 0:
		return keptByMisconfiguration, time.Time{}
	case !q.Migration:
		return KeptByMigration, time.Time{}
	case present.settled() && now.Before(end):
		return keptByAge, end
	case present.settled() && present.Standing && q.Minds():
		return keptByBalance, time.Time{}
	}
	return "", time.Time{}
}

// border notes the clusters between which a seat would move next, and when time
// alone takes away one that has a seat.
func (p *Pass) border(out *Outcome, s seating, present Present) {
	for i, c := range s.seats {
		if own := p.ownOf(c, present.Fresh); i == 0 || !out.Worst.Less(own) { // of equals the last goes
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
}

// ownOf is the merit of a contender without regard to other placements.
func (p *Pass) ownOf(c contender, fresh bool) Merit {
	if !p.Query.Minds() {
		return c.merit
	}
	return p.own(c.row, c.current && !fresh)
}

// shown are the choices as they are shown: with plain scores, without
// min_improvement but with a negative steady, and in the order that follows from
// those.
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
		// Who is in is settled; among equals the name orders what is shown.
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

// staying counts the present clusters among the seats.
func staying(seats []contender) int {
	n := 0
	for _, c := range seats {
		if c.current {
			n++
		}
	}
	return n
}

// presentRows are the rows of the present decision.
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

// present are the clusters of the present decision that still fit. What the
// mask admits need not be asked again: staying is never harder than coming.
func (p *Pass) present(rows []int, present Present, v *View) []contender {
	if outside := func(row int) bool { return !v.Mask.Has(row) }; slices.ContainsFunc(rows, outside) {
		rows = slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return outside(row) && !p.Admits(row, true) })
		if p.Query.Relative() && slices.ContainsFunc(rows, outside) {
			p.Widen(rows) // by a present cluster that is no candidate for others
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
	// A simulation may be given a decision that names a cluster twice.
	return slices.CompactFunc(current, func(a, b contender) bool { return a.row == b.row })
}

// tie orders a row among equals: the smaller comes first.
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

// sort orders contenders. Those of a standing decision mostly are in order.
func (p *Pass) sort(list []contender) {
	for i := 1; i < len(list); i++ {
		if p.before(list[i], list[i-1]) < 0 {
			slices.SortFunc(list, p.before)
			return
		}
	}
}

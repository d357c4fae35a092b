package engine

import (
	"math"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
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
}

// Choice is one chosen cluster with its score.
type Choice struct {
	Row   int
	Score float64
}

// Held says why a decision stands without comparing scores.
type Held string

// The grounds on which a decision is held.
const (
	// HeldByAge is a decision younger than reschedule_after.
	HeldByAge Held = "reschedule_after"
	// HeldByMigration is a decision that may never move while it fits.
	HeldByMigration Held = "migration"
)

// Outcome is the answer to a query.
type Outcome struct {
	// Choices are the chosen clusters, best first.
	Choices []Choice
	// Same says that Choices are the clusters of the present decision, in
	// whatever order.
	Same bool
	// Held says why the present decision is kept although scores alone would
	// choose otherwise; "" where it is not.
	Held Held
	// NextAt is when time alone may change the answer; zero if it cannot.
	NextAt time.Time
	// Full says that every wanted seat is taken.
	Full bool
	// Worst is the merit of the chosen cluster that would go first, and Next
	// that of the best cluster left over (valid where HasNext). Nothing moves
	// while every outsider's merit is below Worst and every chosen one's above
	// Next. WorstRow and NextRow are the clusters.
	Worst, Next       Merit
	HasNext           bool
	WorstRow, NextRow int
}

// Merit is what the selection compares: standing, then score, where a cluster
// of the present decision has stickiness and min_improvement added.
type Merit struct {
	standing
}

// Less reports that m stands below other.
func (m Merit) Less(other Merit) bool { return m.less(other.standing) }

// MeritOf is the merit of a row for a query.
func MeritOf(f *Fleet, q *Query, row int, current bool) Merit {
	score := q.scorer.Score(f, q, row, current)
	if current {
		score = min(score+q.minImprovement, math.MaxFloat64)
	}
	return Merit{standing{f.scored.Has(row), score}}
}

// contender is a cluster in the race for a seat.
type contender struct {
	row     int
	current bool
	merit   Merit
	tie     uint64
}

// before orders contenders, best first. Ties go to the present decision, then
// by hash, then by name.
func (p *Pass) before(a, b contender) int {
	switch {
	case a.merit.scored != b.merit.scored:
		return first(a.merit.scored)
	case a.merit.score != b.merit.score:
		return first(a.merit.score > b.merit.score)
	case a.current != b.current:
		return first(a.current)
	case a.tie != b.tie:
		return first(a.tie < b.tie)
	case a.row == b.row:
		return 0
	}
	return first(p.fleet.name(a.row) < p.fleet.name(b.row))
}

func first(yes bool) int {
	if yes {
		return -1
	}
	return 1
}

// Decide answers a query at a moment. mask is Mask(f, q, reserved).
//
// The rules (DESIGN 3.2.3 to 3.2.5): a cluster of the present decision that no
// longer fits goes at once. The others keep their seat while the decision is
// younger than reschedule_after or migration is off; otherwise a seat moves
// only to a cluster whose score is better by more than min_improvement.
func Decide(f *Fleet, q *Query, mask Bitmap, reserved *Reservations, present Present, now time.Time) Outcome {
	p := &Pass{fleet: f, query: q, reserved: reserved}
	current := p.present(present, mask)
	wanted := q.Wanted
	if wanted == All || wanted > f.Len() {
		wanted = f.Len()
	}
	// Mostly nothing moves: then the outsiders that matter are those for the
	// vacant seats and one more.
	few := wanted - min(len(current), wanted) + 1
	outsiders := p.outsiders(mask, current, few)
	seats, left, beyond := p.seat(current, outsiders, wanted, false)
	if beyond && len(outsiders) == few {
		outsiders = p.outsiders(mask, current, wanted+1)
		seats, left, _ = p.seat(current, outsiders, wanted, false)
	}
	out := Outcome{}
	end := present.ScheduledAt.Add(q.RescheduleAfter)
	young := present.Answered && !present.Fresh && now.Before(end)
	if (young || !q.Migration) && staying(seats) < min(len(current), wanted) {
		seats, left, _ = p.seat(current, outsiders, wanted, true)
		if q.Migration {
			out.Held, out.NextAt = HeldByAge, end
		} else {
			out.Held = HeldByMigration
		}
	}
	for i, c := range seats {
		if i == 0 || c.merit.Less(out.Worst) {
			out.Worst, out.WorstRow = c.merit, c.row
		}
	}
	for i, c := range left {
		if i == 0 || out.Next.Less(c.merit) {
			out.Next, out.NextRow, out.HasNext = c.merit, c.row, true
		}
	}
	out.Full = q.Wanted != All && len(seats) >= q.Wanted
	out.Same = len(seats) == len(present.Decisions) && staying(seats) == len(seats)
	// Shown are plain scores, without min_improvement, and the order follows
	// what is shown.
	if q.minImprovement > 0 && !present.Fresh {
		for i := range seats {
			if c := &seats[i]; c.current {
				c.merit.score = q.scorer.Score(f, q, c.row, true)
			}
		}
	}
	p.sort(seats)
	out.Choices = make([]Choice, len(seats))
	for i, c := range seats {
		out.Choices[i] = Choice{Row: c.row, Score: c.merit.score}
	}
	return out
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

// present are the clusters of the present decision that still fit. What the
// mask admits need not be asked again: staying is never harder than coming.
func (p *Pass) present(present Present, mask Bitmap) []contender {
	if len(present.Decisions) == 0 {
		return nil
	}
	current := make([]contender, 0, len(present.Decisions))
	for _, d := range present.Decisions {
		row, ok := p.fleet.index[d.Cluster]
		if !ok || !mask.Has(row) && !p.admits(row, true) {
			continue
		}
		current = append(current, contender{
			row: row, current: true,
			merit: MeritOf(p.fleet, p.query, row, !present.Fresh),
			tie:   tieHash(p.query.seed, p.fleet.nameHash[row]),
		})
	}
	p.sort(current)
	// A simulation may be given a decision that names a cluster twice.
	return slices.CompactFunc(current, func(a, b contender) bool { return a.row == b.row })
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

// outsiders are the best admitted clusters outside of the present decision, at
// most n, best first.
func (p *Pass) outsiders(mask Bitmap, current []contender, n int) []contender {
	f := p.fleet
	count := mask.Count()
	isCurrent := func(row int) bool {
		return slices.ContainsFunc(current, func(c contender) bool { return c.row == row })
	}
	if len(current) > 8 {
		taken := newBitmap(f.Slots())
		for _, c := range current {
			taken.set(c.row)
		}
		isCurrent = taken.Has
	}
	best := shortlist{pass: p, n: min(n, count), most: count}
	if best.n == 0 {
		return nil
	}
	// A walk probes about n·len(ranking)/count rows before it has found n; where
	// few are admitted, looking at all of them costs less.
	if 8*count*count <= n*len(f.ranking) {
		mask.each(func(row int) {
			if !isCurrent(row) {
				best.add(contender{row: row, merit: MeritOf(f, p.query, row, false), tie: tieHash(p.query.seed, f.nameHash[row])})
			}
		})
		return best.finish()
	}
	for i := 0; i < len(f.ranking) && len(best.list) < best.n; {
		// One group of equal standing after the other; within a group the tie
		// hash decides, so all of it has to be looked at.
		head := f.standing(int(f.ranking[i]))
		best.open()
		for ; i < len(f.ranking); i++ {
			row := int(f.ranking[i])
			if f.standing(row) != head {
				break
			}
			if !mask.Has(row) {
				continue
			}
			tie := tieHash(p.query.seed, f.nameHash[row])
			if (best.full && tie > best.bound.tie) || isCurrent(row) {
				continue
			}
			best.add(contender{row: row, merit: MeritOf(f, p.query, row, false), tie: tie})
		}
		best.close()
	}
	return best.finish()
}

// seat gives out the wanted seats, and returns the best of either list that got
// none. With hold, the present clusters keep theirs whatever the others score.
// beyond says that more outsiders than given might have got one.
func (p *Pass) seat(current, outsiders []contender, wanted int, hold bool) (seats, left []contender, beyond bool) {
	seats = make([]contender, 0, min(wanted, len(current)+len(outsiders)))
	i, j := 0, 0
	for len(seats) < wanted && (i < len(current) || j < len(outsiders)) {
		if i < len(current) && (hold || j == len(outsiders) || p.before(current[i], outsiders[j]) < 0) {
			seats = append(seats, current[i])
			i++
		} else {
			seats = append(seats, outsiders[j])
			j++
		}
	}
	left = make([]contender, 0, 2)
	if i < len(current) {
		left = append(left, current[i])
	}
	if j < len(outsiders) {
		left = append(left, outsiders[j])
	}
	return seats, left, j == len(outsiders)
}

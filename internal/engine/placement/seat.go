package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// seating says who gets the wanted seats, and names the best of those that got
// none: of the present clusters, and of the others.
type seating struct {
	seats   []contender
	best    [2]contender
	without int // how many of best there are
}

// leave notes one that got no seat.
func (s *seating) leave(c contender) {
	s.best[s.without] = c
	s.without++
}

// left are those that got no seat.
func (s *seating) left() []contender { return s.best[:s.without] }

// seat gives out the wanted seats. With hold, the present clusters keep theirs
// whatever the others score.
func (p *Pass) seat(v *View, current []contender, wanted int, present Present, hold bool) seating {
	minds := p.Query.Minds()
	var s seating
	switch {
	case len(p.Query.spread) > 0:
		s = p.seatSpread(v, current, wanted, present, hold)
	case minds && present.Answered && !present.Fresh:
		s = p.seatBalanced(v, current, wanted, hold)
	default:
		s = p.seatBest(v, current, wanted, hold)
	}
	if minds || len(p.Query.spread) > 0 {
		// Those who came first by the total of scores need not be first by their
		// own.
		s.without = 0
		has := p.among(s.seats)
		for _, c := range current {
			if !has.row(c.row) {
				s.leave(c)
				break
			}
		}
		if len(s.seats) >= wanted {
			if c, ok := p.bestOwn(v, has, p.among(current)); ok {
				s.leave(c)
			}
		}
	}
	return s
}

// among tells whether a row is one of some contenders.
type among struct {
	list []contender
	rows columns.Bitmap // where the list is long
}

func (p *Pass) among(list []contender) among {
	a := among{list: list}
	if len(list) > 16 {
		a.rows = columns.NewBitmap(p.Fleet.Slots())
		for _, c := range list {
			a.rows.Set(c.row)
		}
	}
	return a
}

func (a among) row(row int) bool {
	if a.rows != nil {
		return a.rows.Has(row)
	}
	for i := range a.list {
		if a.list[i].row == row {
			return true
		}
	}
	return false
}

// seatBest gives the seats to the best.
func (p *Pass) seatBest(v *View, current []contender, wanted int, hold bool) seating {
	// Mostly nothing moves: then the outsiders that matter are those for the
	// vacant seats and one more.
	few := wanted - min(len(current), wanted) + 1
	if p.Ranking != nil && wanted <= manySeats {
		few = wanted + 1 // a walk of a ranking ends soon
	}
	outsiders := p.outsiders(v, current, few)
	s, beyond := p.merge(current, outsiders, wanted, hold)
	if beyond && len(outsiders) == few && few <= wanted {
		s, _ = p.merge(current, p.outsiders(v, current, wanted+1), wanted, hold)
	}
	return s
}

// manySeats is the number of wanted clusters above which the best that many
// outsiders are only looked for when some of them are known to win.
const manySeats = 64

// merge seats the best of two lists, each best first. beyond says that more
// outsiders than given might have got a seat.
func (p *Pass) merge(current, outsiders []contender, wanted int, hold bool) (s seating, beyond bool) {
	i, j := 0, 0
	stays := func() bool {
		return i < len(current) && (hold || j == len(outsiders) || p.before(current[i], outsiders[j]) < 0)
	}
	for i < wanted && stays() {
		i++
	}
	// Mostly nothing moves.
	s.seats = slices.Grow(current[:i:i], max(min(wanted, len(current)+len(outsiders))-i, 0))
	for len(s.seats) < wanted && (i < len(current) || j < len(outsiders)) {
		if stays() {
			s.seats = append(s.seats, current[i])
			i++
		} else {
			s.seats = append(s.seats, outsiders[j])
			j++
		}
	}
	if i < len(current) {
		s.leave(current[i])
	}
	if j < len(outsiders) {
		s.leave(outsiders[j])
	}
	return s, j == len(outsiders)
}

// seatBalanced seats a decision that answers its spec where others' decisions
// count in the score: vacant seats go to the best, and a present cluster gives
// way only to one that is better also without regard to the others. Every move
// thus raises what the placement's own inputs say, so moves come to an end
// however many placements look at each other.
//
// Example: the present cluster scores 50 itself and nobody else uses it (+100);
// another scores 100 and everybody uses it (-100). The present one stays at 150
// against 0. Were the placement on the other one, it would stay there, too.
func (p *Pass) seatBalanced(v *View, current []contender, wanted int, hold bool) seating {
	incumbents := min(len(current), wanted)
	seats := current[:incumbents:incumbents]
	if wanted > incumbents {
		seats = append(seats, p.outsiders(v, current, wanted-incumbents)...)
	}
	lowest, least := Highest, Highest // by itself, and in total
	for _, c := range seats[:incumbents] {
		lowest, least = Lower(lowest, p.own(c.row, true)), Lower(least, c.merit)
	}
	if hold || incumbents == 0 || p.outOfReach(v, lowest, least) {
		return seating{seats: seats}
	}
	staying, seats := make([]incumbent, incumbents), slices.Clone(seats)
	for i, c := range seats[:incumbents] {
		staying[i] = incumbent{seat: i, total: c.merit, own: p.own(c.row, true)}
	}
	slices.Reverse(staying) // worst total first
	for _, r := range p.rivals(v, seats, current, staying, lowest) {
		for i, s := range staying {
			if s.yields(r) {
				seats[s.seat] = r.contender
				staying = slices.Delete(staying, i, i+1)
				break
			}
		}
	}
	return seating{seats: seats}
}

// incumbent is a present cluster that may have to give way.
type incumbent struct {
	seat       int // position among the seats
	total, own Merit
	// best are the best rivals that it would yield to, at most as many as there
	// are incumbents: one that the others leave is among them.
	best []rival
}

// rival is a cluster that an incumbent may have to give way to.
type rival struct {
	contender
	own Merit
}

func (s *incumbent) yields(r rival) bool { return s.total.Less(r.merit) && s.own.Less(r.own) }

// rivals are the outsiders that some incumbent would yield to, best first; of
// many, those that are enough to replace them all. lowest is the lowest that an
// incumbent is by itself.
func (p *Pass) rivals(v *View, seats, current []contender, staying []incumbent, lowest Merit) []rival {
	taken, present, most := p.among(seats), p.among(current), p.MostOfOthers()
	var found []rival
	many := len(staying) > manySeats // then lists for each would outgrow all rivals
	p.eachByOwn(v, func(row int, own Merit) bool {
		if !lowest.Less(own) {
			return false
		}
		if taken.row(row) || present.row(row) {
			return true
		}
		r := rival{contender{row: row, merit: p.total(row, false), tie: p.tie(row, v)}, own}
		if many {
			found = append(found, r)
			return true
		}
		// Those behind have at most this total.
		limit, wanted := Merit{columns.Standing{Scored: own.Scored, Score: own.Score + most}}, false
		for i := range staying {
			s := &staying[i]
			last := len(s.best) - 1
			if !s.own.Less(own) {
				continue // nor will it yield to those behind
			}
			wanted = wanted || len(s.best) < len(staying) || !limit.Less(s.best[last].merit)
			if !s.total.Less(r.merit) {
				continue
			}
			if len(s.best) == len(staying) {
				if p.before(s.best[last].contender, r.contender) < 0 {
					continue
				}
				s.best = s.best[:last]
			}
			at, _ := slices.BinarySearchFunc(s.best, r, func(a, b rival) int { return p.before(a.contender, b.contender) })
			s.best = slices.Insert(s.best, at, r)
		}
		return wanted
	})
	for i := range staying {
		found = append(found, staying[i].best...)
	}
	slices.SortFunc(found, func(a, b rival) int { return p.before(a.contender, b.contender) })
	return slices.CompactFunc(found, func(a, b rival) bool { return a.row == b.row })
}

// outOfReach reports whether no outsider is above both a merit by itself and a total,
// as far as that can be told without looking at many.
func (p *Pass) outOfReach(v *View, own, total Merit) bool {
	if p.Ranking == nil || len(p.Ranking.Order) == 0 {
		return false
	}
	if !own.Less(p.own(int(p.Ranking.Order[0]), false)) {
		return true
	}
	score, ok := v.Ceiling.Of(&p.Rating)
	return ok && !total.Less(Merit{columns.Standing{Scored: true, Score: score}})
}

// eachByOwn visits the admitted rows, those of the highest own merit first,
// until visit returns false.
func (p *Pass) eachByOwn(v *View, visit func(row int, own Merit) bool) {
	if !p.Query.Ranked() || p.Ranking != nil {
		order := p.Fleet.Ranking()
		if p.Ranking != nil {
			order = p.Ranking.Order
		}
		for _, row := range order {
			if v.Mask.Has(int(row)) && !visit(int(row), p.own(int(row), false)) {
				return
			}
		}
		return
	}
	type rated struct {
		row int
		own Merit
	}
	var list []rated
	v.Mask.Each(func(row int) { list = append(list, rated{row, p.own(row, false)}) })
	slices.SortFunc(list, func(a, b rated) int {
		switch {
		case b.own.Less(a.own):
			return -1
		case a.own.Less(b.own):
			return 1
		}
		return cmp.Compare(a.row, b.row)
	})
	for _, r := range list {
		if !visit(r.row, r.own) {
			return
		}
	}
}

// bestOwn is the admitted row of the highest own merit outside of some.
func (p *Pass) bestOwn(v *View, seats, current among) (best contender, ok bool) {
	p.eachByOwn(v, func(row int, _ Merit) bool {
		if seats.row(row) || current.row(row) {
			return true
		}
		best, ok = contender{row: row, merit: p.total(row, false), tie: p.tie(row, v)}, true
		return false
	})
	return best, ok
}

// outsiders are the best admitted clusters outside of the present decision, at
// most n, best first.
func (p *Pass) outsiders(v *View, current []contender, n int) []contender {
	f := p.Fleet
	count := v.Mask.Count()
	present := p.among(current)
	best := shortlist{pass: p, n: min(n, count), most: count}
	if best.n <= 0 {
		return nil
	}
	// A walk probes about n·len(ranking)/count rows before it has found n; where
	// few are admitted, looking at all of them costs less.
	switch {
	case 8*count*count <= n*len(f.Ranking()), p.Query.Ranked() && (p.Ranking == nil || p.MeasuresLeft()):
		best.open()
		v.Mask.Each(func(row int) {
			if !present.row(row) {
				best.add(contender{row: row, merit: p.total(row, false), tie: p.tie(row, v)})
			}
		})
	case p.Query.Ranked():
		p.walkRanking(v, &best, present)
	default:
		p.walkFleet(v, &best, present)
	}
	return best.finish()
}

// walkFleet adds admitted rows in the order of the fleet's ranking.
func (p *Pass) walkFleet(v *View, best *shortlist, present among) {
	f := p.Fleet
	for i := 0; i < len(f.Ranking()) && len(best.list) < best.n; {
		// One group of equal standing after the other; within a group the tie
		// hash decides, so all of it has to be looked at.
		head := f.Standing(int(f.Ranking()[i]))
		best.open()
		if 2*i <= len(f.Ranking()) && f.Standing(int(f.Ranking()[len(f.Ranking())-1])) == head {
			p.walkTail(v, best, present, head, i > 0)
			return
		}
		for ; i < len(f.Ranking()); i++ {
			row := int(f.Ranking()[i])
			if f.Standing(row) != head {
				break
			}
			if !v.Mask.Has(row) {
				continue
			}
			tie := p.tie(row, v)
			if (best.full && tie > best.worst.tie) || present.row(row) {
				continue
			}
			best.add(contender{row: row, merit: p.total(row, false), tie: tie})
		}
		best.close()
	}
}

// walkTail adds the admitted rows of the last group of equal standing, a large one,
// found by the mask: where nothing tells clusters apart, the group is the whole fleet. Rows of
// other groups are among those that the mask admits if others says so.
func (p *Pass) walkTail(v *View, best *shortlist, present among, head columns.Standing, others bool) {
	undemoted, demoted := v.Mask, columns.Bitmap(nil)
	if v.demoted != nil {
		undemoted, demoted = slices.Clone(v.Mask), slices.Clone(v.Mask)
		for i, w := range v.demoted[:min(len(v.demoted), len(v.Mask))] {
			undemoted[i] &^= w
		}
		demoted.AndNot(undemoted)
	}
	for _, rows := range []columns.Bitmap{undemoted, demoted} {
		best.open()
		p.walkTies(v, best, rows, present, func(row int) bool { return !others || p.Fleet.Standing(row) == head })
		best.close()
	}
}

// walkTies adds those of some rows of equal merit, and equally demoted, that come
// first by their ties. It looks at the rows below a hash that about as many as are
// needed stay below, and at more where those are too few.
func (p *Pass) walkTies(v *View, best *shortlist, rows columns.Bitmap, present among, equal func(row int) bool) {
	need, count := best.n-len(best.list), rows.Count()
	if need <= 0 || count == 0 {
		return
	}
	var few [256]int32 // enough for more than a hundred seats
	low := few[:0]
	if need > len(few)/2 {
		low = make([]int32, 0, min(2*need, count))
	}
	limit := columns.TieLimit(need, count-len(present.list))
	for {
		low = slices.DeleteFunc(columns.LowTies(low[:0], rows, p.Fleet.NameHashes(), p.Query.seed, limit), func(row int32) bool {
			return !equal(int(row)) || present.row(int(row))
		})
		if len(low) >= need || limit == math.MaxUint64 {
			break
		}
		if limit > math.MaxUint64>>4 {
			limit = math.MaxUint64
		} else {
			limit <<= 4
		}
	}
	for _, row := range low {
		best.add(contender{row: int(row), merit: p.total(int(row), false), tie: p.tie(int(row), v)})
	}
}

// walkRanking adds admitted rows in the order of the policy's ranking until no
// later one can be among the best: it would need more than the most that others
// add to any cluster.
func (p *Pass) walkRanking(v *View, best *shortlist, present among) {
	most, r, mask, names := p.MostOfOthers(), p.Ranking, v.Mask, p.Fleet.NameRank()
	seen, minds := p.Seen, p.By.Minds
	var few [score.MaxByCount]float64
	known := p.ByCount(few[:0])
	best.open()
	full, low, tie := false, 0.0, uint64(0) // the worst that the list keeps
	for _, at := range r.Order {
		row := int(at)
		score := r.Score[row]
		// The rows behind this one score no more, and those that score the same have
		// later names.
		if full && score+most <= low && (score+most < low || tie < uint64(names[row])) {
			return
		}
		if !mask.Has(row) {
			continue
		}
		if count := int(seen.At(row)); count < len(known) {
			score += known[count]
		} else if minds != nil {
			score = minds.Others(&p.Rating, row, score)
		}
		if full && score <= low && (score < low || tie < uint64(names[row])) || present.row(row) {
			continue
		}
		best.add(contender{row: row, merit: Merit{columns.Standing{Scored: true, Score: score}}, tie: p.tie(row, v)})
		full, low, tie = best.full, best.worst.merit.Score, best.worst.tie
	}
}

package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// seating says which clusters get the seats, and which are the best of those that got none: current
// clusters, and others.
type seating struct {
	seats   []contender
	best    [2]contender
	without int // length of the used part of best
}

// leave records a contender that got no seat.
func (s *seating) leave(c contender) {
	s.best[s.without] = c
	s.without++
}

// left returns the recorded contenders that got no seat.
func (s *seating) left() []contender { return s.best[:s.without] }

// seat assigns the seats. With hold, the current clusters keep theirs, whatever the scores of
// others.
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
		// The first by total score need not be the first by own score.
		s.without = 0
		has := p.among(s.seats)
		var best contender
		left := false
		for _, c := range current {
			if !has.row(c.row) && (!left || p.ownOf(best, present.Fresh).Less(p.ownOf(c, present.Fresh))) {
				best, left = c, true
			}
		}
		if left {
			s.leave(best)
		}
		if len(s.seats) >= wanted {
			if c, ok := p.bestOwn(v, has, p.among(current)); ok {
				s.leave(c)
			}
		}
	}
	return s
}

// among reports whether a row is one of some contenders.
type among struct {
	list []contender
	rows columns.Bitmap // if the list is long
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

// seatBest assigns the seats to the best.
func (p *Pass) seatBest(v *View, current []contender, wanted int, hold bool) seating {
	// Usually nothing moves: then only as many outside clusters matter as there are vacant seats,
	// plus one.
	few := wanted - min(len(current), wanted) + 1
	if p.Ranking != nil && wanted <= manySeats {
		few = wanted + 1 // walking a ranking is cheap
	}
	outsiders := p.outsiders(v, current, few)
	s, beyond := p.merge(current, outsiders, wanted, hold)
	if beyond && len(outsiders) == few && few <= wanted {
		s, _ = p.merge(current, p.outsiders(v, current, wanted+1), wanted, hold)
	}
	return s
}

// manySeats is the number of seats above which the best outside clusters are searched only if some
// of them are known to win.
const manySeats = 64

// merge assigns the seats to the best of two lists, each best first. beyond says that more outside
// clusters than given might have got a seat.
func (p *Pass) merge(current, outsiders []contender, wanted int, hold bool) (s seating, beyond bool) {
	i, j := 0, 0
	stays := func() bool {
		return i < len(current) && (hold || j == len(outsiders) || p.before(current[i], outsiders[j]) < 0)
	}
	for i < wanted && stays() {
		i++
	}
	// Usually nothing moves.
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

// seatBalanced assigns the seats if the decisions of others count in the score and the current
// decision was made for the current spec: vacant seats go to the best, and a current cluster is
// displaced only by one that is also better without the decisions of others. Every move thus raises
// the placement's own score, so moves end, however many placements depend on each other.
//
// Example: the current cluster scores 50 itself and nobody else uses it (+100); another scores 100
// and everybody uses it (-100). The current one stays with 150 against 0. If the placement were on
// the other one, it would stay there too.
func (p *Pass) seatBalanced(v *View, current []contender, wanted int, hold bool) seating {
	incumbents := min(len(current), wanted)
	seats := current[:incumbents:incumbents]
	if wanted > incumbents {
		seats = append(seats, p.outsiders(v, current, wanted-incumbents)...)
	}
	lowest, least := Highest, Highest // own and total
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

// incumbent is a current cluster that may be displaced.
type incumbent struct {
	seat       int // index of its seat
	total, own Merit
	// best are the best rivals that may displace it, at most as many as there are incumbents, so
	// that one of them remains after the other incumbents.
	best []rival
}

// rival is a cluster that may displace an incumbent.
type rival struct {
	contender
	own Merit
}

func (s *incumbent) yields(r rival) bool { return s.total.Less(r.merit) && s.own.Less(r.own) }

// rivals returns the outside clusters that may displace an incumbent, best first; if there are
// many, enough to displace all incumbents. lowest is the lowest own merit of an incumbent.
func (p *Pass) rivals(v *View, seats, current []contender, staying []incumbent, lowest Merit) []rival {
	taken, present, most := p.among(seats), p.among(current), p.MostOfOthers()
	var found []rival
	many := len(staying) > manySeats // lists for each incumbent would be larger than the list of all rivals
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
		// The following rows have at most this total.
		limit, wanted := Merit{columns.Standing{Scored: own.Scored, Score: own.Score + most}}, false
		for i := range staying {
			s := &staying[i]
			last := len(s.best) - 1
			if !s.own.Less(own) {
				continue // nor can the following rows displace it
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

// outOfReach reports whether no outside cluster exceeds both an own merit and a total, as far as
// that can be determined cheaply.
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

// eachByOwn visits the admitted rows by descending own merit until visit returns false.
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

// bestOwn returns the admitted row with the highest own merit, except the given ones.
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

// outsiders returns the best admitted clusters outside the current decision, at most n, best first.
func (p *Pass) outsiders(v *View, current []contender, n int) []contender {
	f := p.Fleet
	count := v.Mask.Count()
	present := p.among(current)
	best := shortlist{pass: p, n: min(n, count), most: count}
	if best.n <= 0 {
		return nil
	}
	// A walk probes about n·len(ranking)/count rows before it has found n; if few rows are
	// admitted, checking all of them is cheaper.
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
		// Process one group of equal standing after another; within a group the tie hash decides,
		// so the whole group must be checked.
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

// walkTail adds the admitted rows of the last group of equal standing, a large one, using the mask:
// if clusters have no metrics, the group is the whole fleet. others says that the mask also admits
// rows of other groups.
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

// walkTies adds the rows that win the ties among rows of equal merit and equal demotion. It checks
// the rows below a hash limit that is expected to select about as many as needed, and more if these
// are too few.
func (p *Pass) walkTies(v *View, best *shortlist, rows columns.Bitmap, present among, equal func(row int) bool) {
	need, count := best.n-len(best.list), rows.Count()
	if need <= 0 || count == 0 {
		return
	}
	var few [256]int32 // enough for over a hundred seats
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

// walkRanking adds admitted rows in the order of the policy's ranking until no later row can be
// among the best, because it would need more than the maximum that others add to any cluster.
func (p *Pass) walkRanking(v *View, best *shortlist, present among) {
	most, r, mask, names := p.MostOfOthers(), p.Ranking, v.Mask, p.Fleet.NameRank()
	seen, minds := p.Seen, p.By.Minds
	var few [score.MaxByCount]float64
	known := p.ByCount(few[:0])
	best.open()
	full, low, tie := false, 0.0, uint64(0) // of the worst row in the list
	for _, at := range r.Order {
		row := int(at)
		score := r.Score[row]
		// The following rows have no higher base score, and those with the same score have later
		// names.
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

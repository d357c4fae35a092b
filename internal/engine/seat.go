package engine

import (
	"cmp"
	"slices"
)

// seating says who gets the wanted seats, and names the best of those that got
// none: of the present clusters, and of the others.
type seating struct {
	seats, left []contender
}

// seat gives out the wanted seats. With hold, the present clusters keep theirs
// whatever the others score.
func (p *Pass) seat(v *View, current []contender, wanted int, present Present, hold bool) seating {
	minds := p.query.Minds()
	var s seating
	switch {
	case len(p.query.spread) > 0:
		s = p.seatSpread(v, current, wanted, present, hold)
	case minds && present.Answered && !present.Fresh:
		s = p.seatBalanced(v, current, wanted, hold)
	default:
		s = p.seatBest(v, current, wanted, hold)
	}
	if minds || len(p.query.spread) > 0 {
		// Those who came first by the total of scores need not be first by their
		// own.
		s.left = s.left[:0]
		has := p.rowsOf(s.seats)
		for _, c := range current {
			if !has(c.row) {
				s.left = append(s.left, c)
				break
			}
		}
		if len(s.seats) >= wanted {
			present := p.rowsOf(current)
			if c, ok := p.bestOwn(v, func(row int) bool { return has(row) || present(row) }); ok {
				s.left = append(s.left, c)
			}
		}
	}
	return s
}

// rowsOf tells whether a row is among contenders.
func (p *Pass) rowsOf(list []contender) func(row int) bool {
	if len(list) <= 8 {
		return func(row int) bool {
			return slices.ContainsFunc(list, func(c contender) bool { return c.row == row })
		}
	}
	rows := newBitmap(p.fleet.Slots())
	for _, c := range list {
		rows.set(c.row)
	}
	return rows.Has
}

// seatBest gives the seats to the best.
func (p *Pass) seatBest(v *View, current []contender, wanted int, hold bool) seating {
	// Mostly nothing moves: then the outsiders that matter are those for the
	// vacant seats and one more.
	few := wanted - min(len(current), wanted) + 1
	outsiders := p.outsiders(v, current, few)
	s, beyond := p.merge(current, outsiders, wanted, hold)
	if beyond && len(outsiders) == few {
		s, _ = p.merge(current, p.outsiders(v, current, wanted+1), wanted, hold)
	}
	return s
}

// merge seats the best of two lists, each best first. beyond says that more
// outsiders than given might have got a seat.
func (p *Pass) merge(current, outsiders []contender, wanted int, hold bool) (s seating, beyond bool) {
	s.seats = make([]contender, 0, min(wanted, len(current)+len(outsiders)))
	i, j := 0, 0
	for len(s.seats) < wanted && (i < len(current) || j < len(outsiders)) {
		if i < len(current) && (hold || j == len(outsiders) || p.before(current[i], outsiders[j]) < 0) {
			s.seats = append(s.seats, current[i])
			i++
		} else {
			s.seats = append(s.seats, outsiders[j])
			j++
		}
	}
	s.left = make([]contender, 0, 2)
	if i < len(current) {
		s.left = append(s.left, current[i])
	}
	if j < len(outsiders) {
		s.left = append(s.left, outsiders[j])
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
	seats := slices.Clone(current[:min(len(current), wanted)])
	incumbents := len(seats)
	seats = append(seats, p.outsiders(v, current, wanted-incumbents)...)
	if hold || incumbents == 0 {
		return seating{seats: seats}
	}
	type rival struct {
		contender
		own Merit
	}
	staying := make([]rival, incumbents)
	lowest := 0
	for i, c := range seats[:incumbents] {
		staying[i] = rival{c, p.own(c.row, true)}
		if staying[i].own.Less(staying[lowest].own) {
			lowest = i
		}
	}
	var rivals []rival
	taken, present := p.rowsOf(seats), p.rowsOf(current)
	p.eachByOwn(v, func(row int, own Merit) bool {
		if !staying[lowest].own.Less(own) {
			return false
		}
		if !taken(row) && !present(row) {
			rivals = append(rivals, rival{contender{row: row, merit: p.total(row, false), tie: p.tie(row, v)}, own})
		}
		return true
	})
	slices.SortFunc(rivals, func(a, b rival) int { return p.before(a.contender, b.contender) })
	slices.SortFunc(staying, func(a, b rival) int { return p.before(b.contender, a.contender) }) // worst first
	for _, r := range rivals {
		if len(staying) == 0 {
			break
		}
		for i, s := range staying {
			if s.merit.Less(r.merit) && s.own.Less(r.own) {
				at := slices.IndexFunc(seats, func(c contender) bool { return c.row == s.row })
				seats[at] = r.contender
				staying = slices.Delete(staying, i, i+1)
				break
			}
		}
	}
	return seating{seats: seats}
}

// eachByOwn visits the admitted rows, those of the highest own merit first,
// until visit returns false.
func (p *Pass) eachByOwn(v *View, visit func(row int, own Merit) bool) {
	if p.query.policy == nil || p.ranking != nil {
		order := p.fleet.ranking
		if p.ranking != nil {
			order = p.ranking.order
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
	v.Mask.each(func(row int) { list = append(list, rated{row, p.own(row, false)}) })
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
func (p *Pass) bestOwn(v *View, out func(row int) bool) (best contender, ok bool) {
	p.eachByOwn(v, func(row int, _ Merit) bool {
		if out(row) {
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
	f := p.fleet
	count := v.Mask.Count()
	isCurrent := p.rowsOf(current)
	best := shortlist{pass: p, n: min(n, count), most: count}
	if best.n <= 0 {
		return nil
	}
	// A walk probes about n·len(ranking)/count rows before it has found n; where
	// few are admitted, looking at all of them costs less.
	switch {
	case 8*count*count <= n*len(f.ranking), p.query.policy != nil && (p.ranking == nil || p.left != nil):
		best.open()
		v.Mask.each(func(row int) {
			if !isCurrent(row) {
				best.add(contender{row: row, merit: p.total(row, false), tie: p.tie(row, v)})
			}
		})
	case p.query.policy != nil:
		p.walkRanking(v, &best, isCurrent)
	default:
		p.walkFleet(v, &best, isCurrent)
	}
	return best.finish()
}

// walkFleet adds admitted rows in the order of the fleet's ranking.
func (p *Pass) walkFleet(v *View, best *shortlist, skip func(row int) bool) {
	f := p.fleet
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
			if !v.Mask.Has(row) {
				continue
			}
			tie := p.tie(row, v)
			if (best.full && tie > best.bound.tie) || skip(row) {
				continue
			}
			best.add(contender{row: row, merit: p.total(row, false), tie: tie})
		}
		best.close()
	}
}

// walkRanking adds admitted rows in the order of the policy's ranking until no
// later one can be among the best: it would need more than the most that balance
// gives to any cluster.
func (p *Pass) walkRanking(v *View, best *shortlist, skip func(row int) bool) {
	most := 0.0
	switch weight := p.query.policy.balance; {
	case weight > 0:
		most = weight * balance(p.seen.low, p.seen.high)
	case weight < 0:
		most = weight * balance(p.seen.high, p.seen.high)
	}
	r := p.ranking
	best.open()
	for _, at := range r.order {
		row := int(at)
		if best.full {
			// The rows behind this one score no more, and those that score the same
			// have later names.
			limit := contender{row: row, merit: Merit{standing{true, r.score[row] + most}}, tie: uint64(p.fleet.nameRank[row])}
			if p.before(best.bound, limit) < 0 {
				return
			}
		}
		if !v.Mask.Has(row) || skip(row) {
			continue
		}
		best.add(contender{row: row, merit: p.total(row, false), tie: p.tie(row, v)})
	}
}

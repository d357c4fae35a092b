package placement

import (
	"encoding/binary"
	"math"
	"slices"
)

// spreadRule is a spread constraint in the selection, with numbered candidates and domains.
type spreadRule struct {
	// maxSkew is by how much the fullest domain may exceed the emptiest.
	maxSkew int
	// hard constraints exclude candidates, soft ones only rank them after others.
	hard bool
	// domains lists the distinct domains of each candidate. A candidate may have none.
	domains [][]int32
	// count is the number of domains.
	count int
}

// A selection that got stuck is retried at most spreadRetries times, and not after spreadOffers
// comparisons (about 10 ms).
const (
	spreadRetries = 64
	spreadOffers  = 1_000_000
)

// pickSpread chooses at most n candidates, one at a time, so that they spread over the domains of
// the rules. Candidates are numbered best first; score has their scores, best first (nil if only
// the order counts), and weight is that of the `spread` prioritizer, 0 for none. The candidates in
// held keep their seats whatever the rules say: they come first, and count. spread contains the
// spread score of each pick at its turn.
//
// Eligible domains are those of candidates that are held or could be chosen; candidates without a
// domain of a hard rule cannot. A candidate violates a rule if it is in no domain of it, or if one
// of its domains would then exceed the emptiest eligible domain, full ones included, by more than
// max_skew. Among the candidates that violate no hard rule, the next pick is the one that
//
//  1. violates the fewest soft rules,
//  2. then has the highest score + weight · spread score,
//  3. then comes first.
//
// The spread score is the mean over the rules of 100 if all eligible domains have equal counts,
// otherwise from 100 for the emptiest to -100 for the fullest; the worst counts if a candidate is
// in several domains, and -100 if it is in none.
//
// Example: candidates 0 to 3 are in region a, 4 in b and 5 in c, and a hard rule has max_skew 1.
// The first pick is 0: a 1, b 0, c 0. With 1, 2 or 3, a would have 2, two above b, so 4 is next and
// then 5. Now all have 1, and the fourth is 1. a has 2, and as b and c have no candidates left, a
// third in a would always be two above them: of n = 6 only 0, 4, 5 and 1 are chosen. If the rule
// were soft, 2 and 3 would follow.
//
// With one hard rule and one domain per candidate, no choice fills more seats: the selection gets
// stuck only when the emptiest domain is used up, which is then the smallest one, and all others
// are used up too or at max_skew above it. With several hard rules, or candidates in several
// domains, an early pick may prevent two later ones. So if it gets stuck then, it is retried with
// the candidates of one combination of domains before the others, then of the next, and so on; a
// result that fills more seats is kept and improved further.
func pickSpread(n int, held []int, score []float64, weight float64, rules []spreadRule) (picks []int, spread []float64) {
	s := newSpreading(n, held, score, weight, rules)
	picks, spread = s.run()
	if !s.mayBeStuck() {
		return picks, spread
	}
	s.offers = 0
	tries := 0
	for cell := 0; cell < len(s.cells) && len(picks) < s.seats && tries < spreadRetries && s.offers < spreadOffers; cell++ {
		if s.cells[cell].ahead {
			continue
		}
		tries++
		s.cells[cell].ahead = true
		s.again()
		p, q := s.run()
		if len(p) > len(picks) {
			picks, spread, cell = p, q, -1
		} else {
			s.cells[cell].ahead = false
		}
	}
	return picks, spread
}

// spreading is a selection in progress.
type spreading struct {
	seats  int
	held   []int
	score  []float64
	weight float64
	rules  []spreadRule
	loads  []spreadLoad // by rule
	barred []bool       // candidates that are held, or in no domain of a hard rule

	// The candidates from next on have not been examined: most selections end long before the last.
	next int
	// cells are the groups of candidates with the same domains, which differ only in score: only
	// the first of each cell needs to be compared.
	cells  []spreadCell
	cellOf []int32 // by examined candidate
	byKey  map[string]int32
	key    []byte
	// open are the cells that have a candidate left.
	open []int32
	// parked are the cells that a hard rule excludes until its emptiest domain gains.
	parked []int32
	// offers counts comparisons.
	offers int
}

type spreadCell struct {
	members []int // best first
	taken   int   // how many of them are chosen
	listed  bool  // in open or parked
	ahead   bool  // precedes the others unless a hard rule excludes it
}

// spreadLoad counts the chosen candidates in the domains of one rule.
type spreadLoad struct {
	counts      []int // by domain; -1 = not eligible
	tally       []int // number of eligible domains with this count
	least, most int
}

func newSpreading(n int, held []int, score []float64, weight float64, rules []spreadRule) *spreading {
	s := &spreading{
		seats: n, held: held[:min(len(held), n)],
		score: score, weight: weight, rules: rules,
		byKey: map[string]int32{},
	}
	size := len(score)
	for _, r := range rules {
		size = max(size, len(r.domains))
	}
	s.cellOf = make([]int32, size)
	s.barred = make([]bool, size)
	for _, r := range rules {
		for c := range s.barred {
			s.barred[c] = s.barred[c] || r.hard && len(r.domains[c]) == 0
		}
	}
	for _, c := range s.held {
		s.barred[c] = false
	}
	s.loads = make([]spreadLoad, len(rules))
	for i, r := range rules {
		l := &s.loads[i]
		l.counts = make([]int, r.count)
		for d := range l.counts {
			l.counts[d] = -1
		}
		for c, domains := range r.domains {
			if !s.barred[c] {
				for _, d := range domains {
					l.counts[d] = 0
				}
			}
		}
	}
	for _, c := range s.held {
		s.barred[c] = true
	}
	s.again()
	return s
}

// again starts over with the existing cells: all candidates have been examined, otherwise it would
// not have got stuck.
func (s *spreading) again() {
	for i := range s.loads {
		l := &s.loads[i]
		eligible := 0
		for d, n := range l.counts {
			if n >= 0 {
				l.counts[d] = 0
				eligible++
			}
		}
		l.tally = append(l.tally[:0], eligible)
		l.least, l.most = 0, 0
	}
	s.open, s.parked = s.open[:0], s.parked[:0]
	for i := range s.cells {
		s.cells[i].taken = 0
		s.cells[i].listed = true
		s.open = append(s.open, int32(i))
	}
}

// run assigns the seats.
func (s *spreading) run() (picks []int, spread []float64) {
	picks = make([]int, 0, min(s.seats, len(s.cellOf)))
	spread = make([]float64, 0, cap(picks))
	for _, c := range s.held {
		picks, spread = append(picks, c), append(spread, s.spreadScore(c))
		s.count(c)
	}
	for len(picks) < s.seats {
		c, ok := s.best()
		if !ok {
			break
		}
		picks, spread = append(picks, c), append(spread, s.spreadScore(c))
		s.cells[s.cellOf[c]].taken++
		if s.count(c) {
			s.open = append(s.open, s.parked...)
			s.parked = s.parked[:0]
		}
	}
	return picks, spread
}

// count records that a candidate is chosen, and reports whether the emptiest domain of a rule has
// gained.
func (s *spreading) count(c int) bool {
	gained := false
	for i, r := range s.rules {
		l := &s.loads[i]
		for _, d := range r.domains[c] {
			n := l.counts[d]
			l.counts[d]++
			if len(l.tally) == n+1 {
				l.tally = append(l.tally, 0)
			}
			l.tally[n]--
			l.tally[n+1]++
			l.most = max(l.most, n+1)
			if n == l.least && l.tally[n] == 0 {
				l.least++
				gained = true
			}
		}
	}
	return gained
}

// offer is how a candidate compares with others at its turn.
type offer struct {
	candidate int
	ahead     bool
	breaks    int // violated soft rules
	worth     float64
}

func (o offer) better(than offer) bool {
	if o.ahead != than.ahead {
		return o.ahead
	}
	if o.breaks != than.breaks {
		return o.breaks < than.breaks
	}
	if o.worth != than.worth {
		return o.worth > than.worth
	}
	return o.candidate < than.candidate
}

// best returns the next pick.
func (s *spreading) best() (candidate int, ok bool) {
	var best offer
	consider := func(cell int32) (stays bool) {
		of := &s.cells[cell]
		if of.taken == len(of.members) {
			of.listed = false
			return false
		}
		o, barred := s.offer(of.members[of.taken])
		o.ahead = of.ahead
		if barred {
			s.parked = append(s.parked, cell)
			return false
		}
		if !ok || o.better(best) {
			best, ok = o, true
		}
		return true
	}
	open := s.open[:0]
	for _, cell := range s.open {
		if consider(cell) {
			open = append(open, cell)
		}
	}
	s.open = open
	for ; s.next < len(s.cellOf); s.next++ {
		if ok && best.breaks == 0 && (s.weight == 0 || best.worth >= s.bound(s.next)) {
			break
		}
		if s.barred[s.next] {
			continue
		}
		cell := s.cell(s.next)
		of := &s.cells[cell]
		of.members = append(of.members, s.next)
		if of.listed {
			continue // behind another candidate with the same domains
		}
		of.listed = true
		if consider(cell) {
			s.open = append(s.open, cell)
		}
	}
	return best.candidate, ok
}

// bound returns the maximum value of a candidate and those after it.
func (s *spreading) bound(c int) float64 {
	return s.plain(c) + 100*math.Abs(s.weight)
}

func (s *spreading) plain(c int) float64 {
	if s.score == nil {
		return 0
	}
	return s.score[c]
}

// offer evaluates a candidate; barred says that a hard rule excludes it.
func (s *spreading) offer(c int) (o offer, barred bool) {
	s.offers++
	o.candidate = c
	for i, r := range s.rules {
		l := &s.loads[i]
		breaks := len(r.domains[c]) == 0
		for _, d := range r.domains[c] {
			breaks = breaks || l.counts[d]+1-l.least > r.maxSkew
		}
		switch {
		case breaks && r.hard:
			return o, true
		case breaks:
			o.breaks++
		}
	}
	if s.weight != 0 {
		o.worth = s.plain(c) + s.weight*s.spreadScore(c)
	}
	return o, false
}

// spreadScore returns the current score of the `spread` prioritizer for a candidate.
func (s *spreading) spreadScore(c int) float64 {
	if len(s.rules) == 0 {
		return 0
	}
	sum := 0.0
	for i, r := range s.rules {
		sum += s.loads[i].score(r.domains[c])
	}
	return sum / float64(len(s.rules))
}

func (l *spreadLoad) score(domains []int32) float64 {
	if len(domains) == 0 {
		return -100
	}
	if l.most == l.least {
		return 100
	}
	worst := l.least
	for _, d := range domains {
		worst = max(worst, l.counts[d])
	}
	return 100 - 200*float64(worst-l.least)/float64(l.most-l.least)
}

// cell returns the cell of a candidate, creating it if necessary.
func (s *spreading) cell(c int) int32 {
	s.key = s.key[:0]
	for _, r := range s.rules {
		domains := r.domains[c]
		if !slices.IsSorted(domains) {
			domains = slices.Sorted(slices.Values(domains))
		}
		s.key = binary.AppendUvarint(s.key, uint64(len(domains)))
		for _, d := range domains {
			s.key = binary.AppendUvarint(s.key, uint64(d))
		}
	}
	cell, ok := s.byKey[string(s.key)]
	if !ok {
		cell = int32(len(s.cells))
		s.cells = append(s.cells, spreadCell{members: make([]int, 0, 4)})
		s.byKey[string(s.key)] = cell
	}
	s.cellOf[c] = cell
	return cell
}

// mayBeStuck reports whether an early pick may have prevented two later ones, because there are
// several hard rules, or candidates in several domains.
func (s *spreading) mayBeStuck() bool {
	hard := 0
	for _, r := range s.rules {
		if !r.hard {
			continue
		}
		hard++
		for c, domains := range r.domains {
			if len(domains) > 1 && !s.barred[c] {
				return true
			}
		}
	}
	return hard > 1
}

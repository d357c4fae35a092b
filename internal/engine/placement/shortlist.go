package placement

// shortlist keeps the best n of many contenders in any order. It collects twice as many, sorts
// them, drops the worse half, and from then on rejects what is worse than the worst it keeps: of N
// equals, only about n·log(N/n) are compared more than once.
type shortlist struct {
	pass *Pass
	n    int
	most int // the maximum number of contenders, for allocation
	list []contender
	// from is where the open group starts; the entries before it are final.
	from int
	// worst is the worst contender kept, if full.
	worst contender
	full  bool
}

// open starts a group of contenders that all rank below the previous ones.
func (s *shortlist) open() { s.from, s.full = len(s.list), false }

func (s *shortlist) add(c contender) {
	if s.full && s.pass.before(s.worst, c) < 0 {
		return
	}
	if s.list == nil {
		s.list = make([]contender, 0, min(2*s.n, s.most))
	}
	s.list = append(s.list, c)
	if room := s.n - s.from; len(s.list)-s.from >= 2*room {
		s.close()
		s.worst, s.full = s.list[len(s.list)-1], true
	}
}

// close sorts the open group and truncates the list to n.
func (s *shortlist) close() {
	s.pass.sort(s.list[s.from:])
	s.list = s.list[:min(s.n, len(s.list))]
}

// finish returns the best n, best first.
func (s *shortlist) finish() []contender {
	s.close()
	return s.list
}

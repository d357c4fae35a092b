package engine

import (
	"fmt"
	"strconv"
	"strings"
)

// predicates demands that a cluster matches one of the placement's predicates.
type predicates struct{}

func (predicates) Name() string { return "predicates" }

func (predicates) Grounds(q *Query) int {
	if len(q.predicates) == 0 {
		return 0
	}
	return 1
}

func (predicates) On(q *Query, _ int) string {
	texts := make([]string, len(q.predicates))
	for i := range q.predicates {
		texts[i] = q.predicates[i].String()
	}
	return strings.Join(texts, " or ")
}

func (predicates) Blame(q *Query, _, n int) string {
	if len(q.predicates) == 1 {
		if parts := q.predicates[0].parts(); len(parts) == 1 {
			return plural(n, "does not", "do not") + " match predicate " + strconv.Quote(parts[0])
		}
	}
	return plural(n, "matches no predicate", "match no predicate")
}

func (predicates) Apply(p *Pass, _ int, keep Bitmap) {
	matched, part := newBitmap(p.fleet.Slots()), newBitmap(p.fleet.Slots())
	for i := range p.query.predicates {
		copy(part, keep)
		part.andNot(matched)
		p.query.predicates[i].selectInto(p, part, p.scratch)
		matched.or(part)
	}
	keep.and(matched)
}

func (predicates) Admits(p *Pass, _, row int, _ bool) bool {
	c := &clusterFacts{p, row}
	for i := range p.query.predicates {
		if p.query.predicates[i].match(c) {
			return true
		}
	}
	return false
}

// Reason names what fails in the predicate that comes closest.
func (predicates) Reason(p *Pass, _, row int) string {
	c := &clusterFacts{p, row}
	closest := 0
	var failing []string
	for i := range p.query.predicates {
		if f := p.query.predicates[i].failing(c); i == 0 || len(f) < len(failing) {
			closest, failing = i, f
		}
	}
	return fmt.Sprintf("does not match predicate %d: %s", closest+1, strings.Join(failing, ", "))
}

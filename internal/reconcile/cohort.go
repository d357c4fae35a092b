package reconcile

import (
	"iter"
	"time"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// cohort is who asks the same of clusters: placements that also rate them alike (a
// class), affinity groups of workloads (a scope), or the guests of one role. Its
// members share a view of the fleet, which is kept up to date row by row, and are
// told of a change together.
//
// It is woken by a delta of the fleet that touches what it reads, and by the instant
// at which time alone takes a cluster out of its view.
type cohort[D member] struct {
	query *placement.Query // of any member
	view  *placement.View  // nil for guests: those of a role wait together, and ask for different things
	reads columns.Aspects  // what any member reads of clusters
	uses  int              // how often members have it
	at    time.Time        // when time alone next changes the view; zero = never
	seen  int              // version of the picture when a change was last seen
	// waiting are the members that did not get what they want, and so hear of every
	// change of the clusters that fit.
	waiting map[D]struct{}
	// sentences tell those why clusters do not fit.
	sentences sentences
}

// member is a decision that belongs to cohorts.
type member interface {
	comparable
	decision
}

// shared is the part that all sorts of cohorts have.
func (c *cohort[D]) shared() *cohort[D] { return c }

func (c *cohort[D]) instant() *time.Time { return &c.at }
func (c *cohort[D]) over() bool          { return c.uses == 0 }

// wait notes whether a member waits for what it did not get.
func (c *cohort[D]) wait(d D, waits bool) {
	switch {
	case !waits:
		delete(c.waiting, d)
	case c.waiting == nil:
		c.waiting = map[D]struct{}{d: {}}
	default:
		c.waiting[d] = struct{}{}
	}
}

// wake has the members that wait decided again.
func (c *cohort[D]) wake(q *queue) {
	for d := range c.waiting {
		q.mark(d)
	}
}

// manyRows is the number of rows to ask for above which computing a mask anew by
// bitmap algebra beats asking the filters row by row.
const manyRows = 16

// concerned are the rows of which anything changed that is read, not to be
// written to.
func concerned(delta *columns.Delta, reads columns.Aspects) []int {
	if !delta.Concerns(reads) {
		return nil
	}
	// Mostly it is none or all: of thousands of cohorts none is to take memory then.
	n := 0
	for n < len(delta.Rows) && delta.ConcernsRow(delta.Rows[n], reads) {
		n++
	}
	rows := delta.Rows[:n:n]
	for _, row := range delta.Rows[n:] {
		if delta.ConcernsRow(row, reads) {
			rows = append(rows, row)
		}
	}
	return rows
}

// fits is the sentence about why clusters do not fit a query of a member: the same
// for all members that put what they ask in the same words. own is the member's, nil
// where it has not asked yet.
func (c *cohort[D]) fits(p *picture, own **sentence, q *placement.Query) string {
	if *own == nil {
		*own = c.sentences.join(q)
	}
	return (*own).tell(p)
}

// silence gives up the sentence of a member that is told nothing.
func (c *cohort[D]) silence(own **sentence) {
	if *own != nil {
		c.sentences.leave(*own)
		*own = nil
	}
}

// toldOtherwise reports whether a sentence about why clusters do not fit differs now,
// after what a delta says, of rows of which anything differs that a member reads.
// before is the fleet before it, nil where it says nothing of the fleet.
func (c *cohort[D]) toldOtherwise(p *picture, before *columns.Fleet, delta *columns.Delta, rows []int) bool {
	since := c.seen
	c.seen = p.version
	if len(c.waiting) == 0 {
		return false
	}
	same := before != nil && !c.query.Reads().Any(columns.Clock) && delta.Fleet == 0 && !delta.Concerns(0)
	changed := false
	for _, s := range c.sentences {
		if same && s.version >= since && len(rows) <= manyRows && placement.RejectedAlike(before, p.fleet, s.query, p.others(), rows) {
			s.version = p.version
			continue
		}
		was := s.text
		changed = s.tell(p) != was || changed
	}
	return changed
}

// cohorts are those of one sort on one fleet.
type cohorts[D member, C cohortOf[D]] struct {
	of map[string]C // by engine.Query.Class
	// reading are the same by what their members read of clusters, so that a change
	// visits only those that it concerns.
	reading map[columns.Aspects]map[C]struct{}
	// readers are those that read what no row tells of.
	readers readers[C]
	// agenda holds when time alone takes a cluster out of their views.
	agenda agenda[*cohort[D]]
	// views are theirs, for the snapshots that follow.
	views *btree.BTreeG[seen]
}

// seen is what a cohort sees of the fleet, without what is changed in place: the
// ranking and the ceiling.
type seen struct {
	class string // engine.Query.Class
	view  placement.View
}

// cohortOf is a sort of cohorts: a pointer to what embeds a cohort.
type cohortOf[D member] interface {
	comparable
	shared() *cohort[D]
}

func newCohorts[D member, C cohortOf[D]]() cohorts[D, C] {
	return cohorts[D, C]{
		of: map[string]C{}, reading: map[columns.Aspects]map[C]struct{}{}, readers: readers[C]{},
		views: btree.NewG(16, func(a, b seen) bool { return a.class < b.class }),
	}
}

// follow brings the view of a cohort to the fleet's version, in which anything differs
// of some rows that a member reads. It returns the mask before.
func (all *cohorts[D, C]) follow(p *picture, c *cohort[D], rows []int) (was columns.Bitmap) {
	v, slots := c.view, p.fleet.Slots()
	grows := len(v.Mask) < (slots+63)/64
	if grows {
		v.Mask = v.Mask.Grown(slots)
	}
	was = v.Mask
	switch {
	case len(rows) > manyRows:
		v.Refresh(p.fleet, c.query, p.others())
	default:
		changed := grows
		for _, row := range rows {
			changed = v.Judge(p.fleet, c.query, p.others(), row) || changed
		}
		if !changed {
			return was
		}
	}
	all.note(c)
	return was
}

// note takes down what a cohort sees now, and for how long.
func (all *cohorts[D, C]) note(c *cohort[D]) {
	all.agenda.set(c, c.view.Until)
	c.view.Shared = true // by the snapshots
	view := *c.view
	view.Ranking, view.Ceiling = nil, nil
	all.views.ReplaceOrInsert(seen{c.query.Class, view})
}

// view is what a cohort of a query sees, for one that begins: a fork knows it. A
// ranking that is at hand is used, nil is made anew.
func (all *cohorts[D, C]) view(p *picture, q *placement.Query, ranking *score.Ranking) *placement.View {
	known, ok := all.views.Get(seen{class: q.Class})
	if !ok {
		return placement.NewView(p.fleet, q, p.others(), ranking)
	}
	view := &known.view
	if view.Ranking = ranking; ranking == nil && q.Ranked() {
		view.Ranking = placement.NewRanking(p.fleet, q, view.Mask)
	}
	return view
}

// concerned yields those that read something of what a delta says of clusters, each
// with the rows of which it does.
func (all *cohorts[D, C]) concerned(delta *columns.Delta) iter.Seq2[C, []int] {
	return func(yield func(C, []int) bool) {
		for reads, list := range all.reading {
			if !delta.Concerns(reads) {
				continue
			}
			rows := concerned(delta, reads)
			for c := range list {
				if !yield(c, rows) {
					return
				}
			}
		}
	}
}

// join finds the cohort of a query for a member that reads some aspects. begin makes
// one where there is none.
func (all *cohorts[D, C]) join(q *placement.Query, reads columns.Aspects, begin func(cohort[D]) C) C {
	c, ok := all.of[q.Class]
	if !ok {
		c = begin(cohort[D]{query: q})
		all.of[q.Class] = c
		all.readers.add(c, q.Reads())
		all.note(c.shared())
	}
	s := c.shared()
	if s.uses++; s.uses == 1 || s.reads|reads != s.reads {
		drop(all.reading, s.reads, c)
		s.reads |= reads
		add(all.reading, s.reads, c)
	}
	return c
}

// leave is the end of one use of a cohort. It reports whether that was the last.
func (all *cohorts[D, C]) leave(c C) (last bool) {
	s := c.shared()
	if s.uses--; s.uses > 0 {
		return false
	}
	delete(all.of, s.query.Class)
	all.views.Delete(seen{class: s.query.Class})
	drop(all.reading, s.reads, c)
	all.readers.remove(c, s.query.Reads())
	return true
}

// expire refreshes the views out of which time alone takes a cluster, because a
// toleration has run out, and then does something with each and the rows that are
// gone. Who has such a cluster is on the agenda of decisions.
func (all *cohorts[D, C]) expire(p *picture, now time.Time, then func(c C, gone []int)) {
	for _, s := range all.agenda.due(now) {
		p.version++
		gone := s.view.Refresh(p.fleet, s.query, p.others())
		s.seen = p.version
		all.note(s)
		then(all.of[s.query.Class], gone)
	}
}

// sooner is the earlier of two instants, of which zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

package reconcile

import (
	"iter"
	"time"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// cohort is a set of decisions with the same requirements on clusters: placements that also rate
// clusters alike (a class), affinity groups of workloads (a scope), or the guests of one role. Its
// members share a view of the fleet, which is updated row by row, and are woken together.
//
// A cohort is woken by a delta of the fleet that touches what it reads, when a cluster is removed
// from its view through the passing of time, and, if its view depends on the time, when the clock is
// set back.
type cohort[D member] struct {
	query *placement.Query // of any member
	view  *placement.View  // nil for guests: those of a role wait together, but have different requirements
	reads columns.Aspects  // what any member reads of clusters
	uses  int              // number of uses by members
	late  bool             // its view is not known yet: see lateClasses
	at    time.Time        // when the view next changes through the passing of time; zero = never
	seen  int              // version of the basis at the last change
	// waiting are the members that did not get what they want, and are therefore woken by every
	// change of the clusters that fit.
	waiting map[D]struct{}
	// sentences explain to these why clusters do not fit.
	sentences sentences
}

// member is a decision that belongs to cohorts.
type member interface {
	comparable
	decision
}

// shared returns the part that all kinds of cohorts share.
func (c *cohort[D]) shared() *cohort[D] { return c }

func (c *cohort[D]) instant() *time.Time { return &c.at }
func (c *cohort[D]) over() bool          { return c.uses == 0 }

// wait records whether a member waits.
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

// wake marks the waiting members as stale.
func (c *cohort[D]) wake(q *queue) {
	for d := range c.waiting {
		q.mark(d)
	}
}

// manyRows is the number of rows above which recomputing a mask by bitmap algebra is faster than
// checking row by row.
const manyRows = 16

// concerned returns the rows in which something that is read has changed. The result must not be
// modified.
func concerned(delta *columns.Delta, reads columns.Aspects) []int {
	if !delta.Concerns(reads) {
		return nil
	}
	// Usually it is none or all; with thousands of cohorts, these cases must not allocate.
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

// fits returns the sentence about why clusters do not fit a query of a member, which is shared by
// all members with the same wording. own is the member's sentence, nil if it has none yet.
func (c *cohort[D]) fits(p *basis, own **sentence, q *placement.Query) string {
	if *own == nil {
		*own = c.sentences.join(q)
	}
	return (*own).tell(p)
}

// silence drops the sentence of a member that needs none.
func (c *cohort[D]) silence(own **sentence) {
	if *own != nil {
		c.sentences.leave(*own)
		*own = nil
	}
}

// toldOtherwise reports whether a sentence about why clusters do not fit differs after a delta,
// given the rows in which something that a member reads has changed. before is the previous fleet,
// or nil if the fleet has not changed.
func (c *cohort[D]) toldOtherwise(p *basis, before *columns.Fleet, delta *columns.Delta, rows []int) bool {
	since := c.seen
	c.seen = p.version
	if len(c.waiting) == 0 || c.late {
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

// cohorts are the cohorts of one kind on one fleet.
type cohorts[D member, C cohortOf[D]] struct {
	of map[string]C // by engine.Query.Class
	// reading holds the same cohorts by what their members read of clusters, so that a change
	// visits only those that it concerns.
	reading map[columns.Aspects]map[C]struct{}
	// readers are the cohorts that read aspects that are not part of rows.
	readers readers[C]
	// agenda holds when clusters are removed from their views through the passing of time.
	agenda agenda[*cohort[D]]
	// views are theirs, for the following snapshots.
	views *btree.BTreeG[seen]
}

// seen is the view of a cohort, without the parts that are modified in place: the ranking and the
// ceiling.
type seen struct {
	class string // engine.Query.Class
	view  placement.View
}

// cohortOf is a kind of cohort: a pointer to a type that embeds cohort.
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

// follow updates the view of a cohort to the fleet's version, given the rows in which something
// that a member reads has changed. It returns the previous mask.
func (all *cohorts[D, C]) follow(p *basis, c *cohort[D], rows []int) (was columns.Bitmap) {
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

// note records the current view of a cohort, and how long it is valid.
func (all *cohorts[D, C]) note(c *cohort[D]) {
	all.agenda.set(c, c.view.Until)
	c.view.Shared = true // with the snapshots
	view := *c.view
	view.Ranking, view.Ceiling = nil, nil
	all.views.ReplaceOrInsert(seen{c.query.Class, view})
}

// view returns the view for a new cohort of a query; a fork may already know it. If ranking is nil,
// it is computed.
func (all *cohorts[D, C]) view(p *basis, q *placement.Query, ranking *score.Ranking) *placement.View {
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

// concerned yields the cohorts that read something that a delta changed in clusters, each with the
// affected rows.
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

// join returns the cohort of a query for a member that reads some aspects. begin creates one if
// necessary.
func (all *cohorts[D, C]) join(q *placement.Query, reads columns.Aspects, begin func(cohort[D]) C) C {
	c, ok := all.of[q.Class]
	if !ok {
		c = begin(cohort[D]{query: q})
		all.of[q.Class] = c
		all.readers.add(c, q.Reads())
		if !c.shared().late {
			all.note(c.shared())
		}
	}
	s := c.shared()
	if s.uses++; s.uses == 1 || s.reads|reads != s.reads {
		drop(all.reading, s.reads, c)
		s.reads |= reads
		add(all.reading, s.reads, c)
	}
	return c
}

// leave ends one use of a cohort. It reports whether that was the last.
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

// expire refreshes the views from which clusters are removed through the passing of time because a
// toleration has expired, and calls then with each cohort and the rows that differ. Decisions that
// have such a cluster are on the agenda of decisions.
//
// back says that the clock was set back: a toleration that had expired may not have, so all views
// that depend on the time are refreshed. The agenda does not list a view in which no toleration is left to expire.
func (all *cohorts[D, C]) expire(p *basis, now time.Time, back bool, then func(c C, differ []int, back bool)) {
	refresh := func(c C) {
		s := c.shared()
		if s.late {
			return
		}
		p.version++
		differ := s.view.Refresh(p.fleet, s.query, p.others())
		s.seen = p.version
		all.note(s)
		then(c, differ, back)
	}
	if back {
		for c := range all.readers[columns.Clock] {
			refresh(c)
		}
	}
	for _, s := range all.agenda.due(now) {
		refresh(all.of[s.query.Class])
	}
}

// sooner returns the earlier of two times; zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

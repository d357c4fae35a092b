package reconcile

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine"
)

// class is a group of placements that admit and rate clusters alike: they share
// one view of the fleet, which is kept up to date row by row.
type class struct {
	query      *engine.Query // of any member
	view       *engine.View
	ranking    *ranking // that of the view; nil where there is none
	placements []*tracked
	// wanting counts the placements that did not get what they want. They hear
	// of every change of why clusters are rejected.
	wanting int
	// sentences tell those why clusters do not fit.
	sentences sentences
	// expired names a placement score that has expired on a cluster that fits.
	expired string

	// floor is at most the lowest Worst of the full placements; an outsider below
	// it concerns none of them. floorKnown is false after a decision.
	floor      engine.Merit
	floorTotal engine.Merit // likewise of WorstTotal
	hasFull    bool
	floorKnown bool

	// raised is the highest merit of the outsiders that changed below the floor:
	// they may have become the next best of a placement without it being told.
	raised    engine.Merit
	hasRaised bool
}

// noteRaised remembers an outsider that changed and concerns no placement now.
func (c *class) noteRaised(merit engine.Merit) {
	if !c.hasRaised || c.raised.Less(merit) {
		c.raised, c.hasRaised = merit, true
	}
}

// refresh brings the view to the fleet's version and returns the mask before.
func (c *class) refresh(f *engine.Fleet, others engine.Others, delta *engine.Delta) (was engine.Bitmap) {
	return follow(c.view, f, c.query, others, concerned(delta, c.query.Reads()))
}

// concerned are the rows of which anything changed that is read, not to be
// written to.
func concerned(delta *engine.Delta, reads engine.Aspects) []int {
	if !delta.Concerns(reads) {
		return nil
	}
	// Mostly it is none or all: of thousands of classes none is to take memory then.
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

// follow brings a view to the fleet's version, in which rows differ, and returns
// the mask before.
func follow(v *engine.View, f *engine.Fleet, q *engine.Query, others engine.Others, rows []int) (was engine.Bitmap) {
	for words := (f.Slots() + 63) / 64; len(v.Mask) < words; {
		v.Mask = append(v.Mask, 0)
	}
	was = v.Mask
	switch {
	case len(rows) > manyRows:
		v.Refresh(f, q, others)
	case len(rows) > 0:
		was = slices.Clone(was)
		for _, row := range rows {
			v.Judge(f, q, others, row)
		}
	}
	return was
}

// manyRows is the number of rows to ask for above which computing a mask anew by
// bitmap algebra beats asking the filters row by row.
const manyRows = 16

// concerns reports whether an outsider of some merit can be of interest to a
// full placement of the class.
func (c *class) concerns(o outsider) bool {
	if !c.floorKnown {
		c.floorKnown, c.hasFull = true, false
		for _, p := range c.placements {
			if !p.out.Full || p.query.Wanted == 0 {
				continue
			}
			if !c.hasFull || p.out.Worst.Less(c.floor) {
				c.floor = p.out.Worst
			}
			if !c.hasFull || p.out.WorstTotal.Less(c.floorTotal) {
				c.floorTotal = p.out.WorstTotal
			}
			c.hasFull = true
		}
	}
	return c.hasFull && o.reaches(c.floor, c.floorTotal)
}

// outsider is a changed row as those see it that have not chosen it.
type outsider struct {
	merit engine.Merit
	total engine.Merit // with what others decide
	minds bool         // that total counts, too
}

// reaches reports whether the outsider may take a seat of some merit.
func (o outsider) reaches(worst, worstTotal engine.Merit) bool {
	return !o.merit.Less(worst) && (!o.minds || !o.total.Less(worstTotal))
}

func (c *class) add(placed *tracked) {
	placed.seat = len(c.placements)
	c.placements = append(c.placements, placed)
}

func (c *class) remove(placed *tracked) {
	last := len(c.placements) - 1
	c.placements[placed.seat] = c.placements[last]
	c.placements[placed.seat].seat = placed.seat
	c.placements[last] = nil
	c.placements = c.placements[:last]
}

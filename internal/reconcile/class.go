package reconcile

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/engine"
)

// class is a group of placements that admit the same clusters: they share one
// mask, which is kept up to date row by row.
type class struct {
	query      *engine.Query // of any member
	mask       engine.Bitmap
	placements []*tracked
	// wanting counts the placements that did not get what they want. They hear
	// of every change of why clusters are rejected.
	wanting int
	// fits is the sentence about why clusters do not fit, as of a version of the
	// planner's fleet and reservations.
	fits        string
	fitsVersion int

	// floor is at most the lowest Worst of the full placements; an outsider below
	// it concerns none of them. floorKnown is false after a decision.
	floor      engine.Merit
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

// update brings the mask to the fleet's version and visits the changed rows that
// it admits now, saying whether it admitted them before. Rows that are not among
// facts have other metric values only; facts nil stands for all rows.
func (c *class) update(f *engine.Fleet, reserved *engine.Reservations, rows []int, facts engine.Bitmap, visit func(row int, was bool)) {
	for words := (f.Slots() + 63) / 64; len(c.mask) < words; {
		c.mask = append(c.mask, 0)
	}
	same := func(row int) bool {
		return facts != nil && !facts.Has(row) && !c.query.HasMetricConstraints()
	}
	ask := 0
	for _, row := range rows {
		if !same(row) {
			ask++
		}
	}
	if ask > manyRows {
		was := c.mask
		c.mask = engine.Mask(f, c.query, reserved)
		for _, row := range rows {
			if c.mask.Has(row) {
				visit(row, was.Has(row))
			}
		}
		return
	}
	for _, row := range rows {
		was := c.mask.Has(row)
		is := was
		if !same(row) {
			is = engine.Admits(f, c.query, reserved, row, false)
			c.mask.Assign(row, is)
		}
		if is {
			visit(row, was)
		}
	}
}

// manyRows is the number of rows to ask for above which computing a mask anew by
// bitmap algebra beats asking the filters row by row.
const manyRows = 16

// concerns reports whether an outsider of some merit can be of interest to a
// full placement of the class.
func (c *class) concerns(merit engine.Merit) bool {
	if !c.floorKnown {
		c.floorKnown, c.hasFull = true, false
		for _, p := range c.placements {
			if p.out.Full && p.query.Wanted > 0 && (!c.hasFull || p.out.Worst.Less(c.floor)) {
				c.floor, c.hasFull = p.out.Worst, true
			}
		}
	}
	return c.hasFull && !merit.Less(c.floor)
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

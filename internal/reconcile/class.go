package reconcile

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// class is a cohort of placements: they admit and rate clusters alike.
type class struct {
	cohort[*placementDecision]
	panel      *panel // which has the ranking of the view
	at         int    // position among the panel's classes
	placements []*placementDecision
	wording    string // of its query, "" where nobody has asked for it
	// spreading are those under spread constraints: where one sits depends on the places
	// of all that fit. A class is who admits and rates alike, so it has them beside others.
	spreading map[*placementDecision]struct{}
	// expired names a placement score that has expired on a cluster that fits.
	expired string

	floorKnown bool // false after a decision

	// said are the conditions of the one decided last.
	said []api.Condition

	// absent is how many of those that rest in it a fork has not taken over, and resting
	// sums them up.
	absent  int
	resting restingClass
}

// says has a decision share its conditions with the one before it in the class, where it
// says the same: after one pass most do.
func (c *class) says(conditions []api.Condition) []api.Condition {
	if !slices.EqualFunc(c.said, conditions, func(a, b api.Condition) bool {
		return sameCondition(a, b) && a.Detail == b.Detail && sameInstant(a.LastTransitionAt, b.LastTransitionAt)
	}) {
		c.said = conditions
	}
	return c.said
}

func sameInstant(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// forgetFloor has the floor found again when it is needed next.
func (c *class) forgetFloor() {
	c.floorKnown = false
	c.panel.floors[c.at] = noFloor
}

// concerns reports whether an outsider of some merit can be of interest to a
// full placement of the class.
func (c *class) concerns(o outsider) bool {
	is := &c.panel.floors[c.at]
	if !c.floorKnown {
		c.floorKnown, *is = true, floor{placement.Highest, placement.Highest}
		if c.absent > 0 {
			*is = floor{c.resting.floor, c.resting.floorTotal}
		}
		for _, p := range c.placements {
			if !p.full || p.query.Wanted == 0 {
				continue
			}
			is.own, is.total = placement.Lower(p.worst, is.own), placement.Lower(p.worstTotal, is.total)
		}
	}
	return o.reaches(is)
}

// suspect is whom it is about where looking at the class panics.
func (c *class) suspect() api.Key {
	if len(c.placements) == 0 { // a fork has taken over none yet
		return c.query.Key
	}
	return c.placements[0].query.Key
}

// reachesAbsent reports whether an outsider that is changed, or new, may concern one of
// the placements that a fork has not taken over.
func (c *class) reachesAbsent(o outsider, isNew bool) bool {
	return c.absent > 0 && (isNew && c.resting.unsated > 0 || o.reaches(&floor{c.resting.floor, c.resting.floorTotal}))
}

// share has the query of a new member share the memory of the class's, where it asks
// in the same words: most are made from a template.
func (c *class) share(q *placement.Query) {
	if q == c.query {
		return
	}
	if c.wording == "" {
		c.wording = c.query.Wording()
	}
	if q.Wording() == c.wording {
		q.Share(c.query)
	}
}

func (c *class) add(placed *placementDecision) {
	placed.position = int32(len(c.placements))
	c.placements = append(c.placements, placed)
	if placed.query.Spreads() {
		if c.spreading == nil {
			c.spreading = map[*placementDecision]struct{}{}
		}
		c.spreading[placed] = struct{}{}
	}
}

func (c *class) remove(placed *placementDecision) {
	last := len(c.placements) - 1
	c.placements[placed.position] = c.placements[last]
	c.placements[placed.position].position = placed.position
	c.placements[last] = nil
	c.placements = c.placements[:last]
	delete(c.spreading, placed)
}

// markSpreading has every placement under spread constraints decided again.
func (c *class) markSpreading(q *queue) {
	for placed := range c.spreading {
		q.mark(placed)
	}
}

package reconcile

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// class is a cohort of placements that admit and rate clusters alike.
type class struct {
	cohort[*placementDecision]
	panel      *panel // holds the ranking of the view
	at         int    // index among the panel's classes
	placements []*placementDecision
	wording    string // of its query, "" if not computed yet
	// spreading are the placements with spread constraints: where one sits depends on the places of
	// all clusters that fit. A class includes them, because it is defined by what is admitted and
	// how it is rated.
	spreading map[*placementDecision]struct{}
	// expired names a placement score that has expired on a cluster that fits.
	expired string

	spent int // on its expressions since it is late

	floorKnown bool // false after a decision

	// said are the conditions of the last decision.
	said []api.Condition

	// absent is how many of the placements resting in it a fork has not taken over, and resting
	// summarizes them.
	absent  int
	resting restingClass
}

// says makes a decision share its conditions with the previous one in the class if they are equal,
// which most are after a pass.
func (c *class) says(conditions []api.Condition) []api.Condition {
	if !slices.EqualFunc(c.said, conditions, func(a, b api.Condition) bool {
		return sameCondition(a, b) && a.Detail == b.Detail && columns.SameTime(a.LastTransitionAt, b.LastTransitionAt)
	}) {
		c.said = conditions
	}
	return c.said
}

// forgetFloor makes the floor be recomputed when it is next needed.
func (c *class) forgetFloor() {
	c.floorKnown = false
	c.panel.floors[c.at] = noFloor
}

// concerns reports whether a cluster with some merit outside the decisions can affect a full
// placement of the class.
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

// suspect returns the object to blame if processing the class panics.
func (c *class) suspect() api.Key {
	if len(c.placements) == 0 { // a fork that has taken over none yet
		return c.query.Key
	}
	return c.placements[0].query.Key
}

// reachesAbsent reports whether a changed or new cluster may affect one of the placements that a
// fork has not taken over.
func (c *class) reachesAbsent(o outsider, isNew bool) bool {
	return c.absent > 0 && (isNew && c.resting.unsated > 0 || o.reaches(&floor{c.resting.floor, c.resting.floorTotal}))
}

// share makes the query of a new member share the memory of the class's if it has the same wording:
// most are created from a template.
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

// markSpreading marks every placement with spread constraints as stale.
func (c *class) markSpreading(q *queue) {
	for placed := range c.spreading {
		q.mark(placed)
	}
}

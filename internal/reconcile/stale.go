package reconcile

import (
	"iter"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// touch finds the placements of some classes that changed rows concern and marks
// them stale. It errs on the side of marking.
func (p *planner) touch(delta *columns.Delta, classes iter.Seq[*class]) {
	if len(delta.Rows) == 0 {
		return
	}
	for c := range classes {
		p.touchClass(c, delta)
	}
	for _, row := range delta.Rows {
		cluster := p.fleet.Cluster(row)
		if cluster == nil {
			continue
		}
		for placed := range p.members[cluster.Metadata.Name] {
			reads := placed.query.Reads() | placed.query.ScoreReads()&columns.OfCluster | placed.query.SeatReads()
			if !placed.stale && delta.ConcernsRow(row, reads) {
				p.touchMember(placed, row, delta)
			}
		}
	}
}

// touchClass looks at changed rows as outsiders of the class's decisions.
func (p *planner) touchClass(c *class, delta *columns.Delta) {
	p.focus(c.placements[0].query.Key)
	was, _ := p.classes.follow(p.picture, c.shared(), delta)
	all := c.query.Relative() && placement.UpdateRanking(c.ranking.Ranking, p.fleet, c.query, c.view.Mask, delta.Rows)
	spread := false
	for _, row := range delta.Rows {
		was, is := was.Has(row), c.view.Mask.Has(row)
		if (was || is) && !spread {
			spread = true
			c.markSpreading(p)
		}
		if is && !all {
			p.touchOutsider(c, row, was)
		}
	}
	if c.noteExpired(p.fleet) || all {
		c.markAll(p)
	}
	if len(c.waiting) > 0 && c.toldOtherwise(p.picture) {
		c.wake(&p.queue)
	}
}

// touchOutsider looks at one changed row that the class admits.
func (p *planner) touchOutsider(c *class, row int, was bool) {
	merit := placement.MeritOf(p.fleet, c.query, c.view, p.others(), row, false)
	o := outsider{merit: merit}
	if c.query.Minds() {
		o.total, o.minds = placement.TotalOf(p.fleet, c.query, c.view, p.others(), row)
	}
	if was && !c.concerns(o) {
		c.noteRaised(merit)
		return
	}
	for _, placed := range c.placements {
		switch {
		case placed.stale || !placed.decided:
		case !placed.out.Full:
			// It has every cluster that fits: a score moves nothing, a new
			// cluster is wanted.
			if !was && placed.query.Wanted != 0 {
				p.queue.mark(placed)
			}
		case placed.query.Wanted == 0:
		case o.reaches(placed.out.Worst, placed.out.WorstTotal):
			if !slices.Contains(placed.status.Clusters, p.fleet.Cluster(row).Metadata.Name) {
				p.queue.mark(placed)
			}
		case !placed.out.HasNext || placed.out.Next.Less(merit):
			placed.out.Next, placed.out.HasNext = merit, true
		}
	}
}

// noteExpired reports whether a placement score has expired on a cluster that
// fits where none had, or the other way round.
func (c *class) noteExpired(f *columns.Fleet) (changed bool) {
	was := c.expired
	c.expired = c.view.Expired(f, c.query)
	return c.expired != was
}

// markAll has every placement of the class decided again.
func (c *class) markAll(p *planner) {
	for _, placed := range c.placements {
		p.queue.mark(placed)
	}
}

// touchMember looks at a changed row as a chosen cluster of a placement. What
// expires on one that only the decision may keep is in no condition of the class.
func (p *planner) touchMember(placed *tracked, row int, delta *columns.Delta) {
	held := placed.query.UsesScores() && !placed.class.view.Mask.Has(row)
	seat := placed.query.SeatReads()
	shown := seat != 0 && delta.ConcernsRow(row, seat)
	if !placed.decided || placed.query.Minds() || held || shown || !placement.Admits(p.fleet, placed.query, p.reserved, row, true) {
		p.queue.mark(placed)
		return
	}
	merit := placement.MeritOf(p.fleet, placed.query, placed.class.view, p.others(), row, true)
	switch {
	case placed.out.HasNext && !placed.out.Next.Less(merit),
		placed.class.hasRaised && !placed.class.raised.Less(merit):
		p.queue.mark(placed)
	case merit.Less(placed.out.Worst):
		placed.out.Worst = merit
		placed.class.floorKnown = false
		p.note(placed)
	}
}

package reconcile

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// touch marks the placements that changed rows concern as stale. It errs on the side of marking.
// before is the previous fleet, or nil if the fleet has not changed.
func (p *placementPlanner) touch(before *columns.Fleet, delta *columns.Delta) {
	if len(delta.Rows) == 0 {
		return
	}
	for c, rows := range p.classes.concerned(delta) {
		p.touchClass(c, before, delta, rows)
	}
	for c := range p.classes.readers[columns.Clock] {
		// Through the passing of time, clusters may be rejected for another reason.
		if len(c.waiting) > 0 && before != nil && c.toldOtherwise(p.basis, before, delta, nil) {
			c.wake(&p.queue)
		}
	}
	for _, r := range p.rankings.of {
		p.touchRanking(r, delta)
	}
	if delta.Fleet.Any(columns.ScoreValues) {
		for _, c := range p.classes.of {
			if c.noteExpired(p.fleet) {
				c.markAll(p.basis)
			}
		}
	}
	for _, row := range delta.Rows {
		cluster := p.fleet.Cluster(row)
		if cluster == nil {
			continue
		}
		p.inherited.takeOverAll(onCluster, cluster.Metadata.Name)
		for placed := range p.occupants[cluster.Metadata.Name] {
			reads := placed.query.Reads() | placed.query.ScoreReads()&columns.OfCluster | placed.query.SeatReads()
			if !placed.stale && delta.ConcernsRow(row, reads) {
				p.touchOccupant(placed, row, delta)
			}
		}
	}
}

// touchClass evaluates changed rows, in some of which something that the class reads has changed.
// Rows whose rating changed are handled by its ranking.
func (p *placementPlanner) touchClass(c *class, before *columns.Fleet, delta *columns.Delta, rows []int) {
	p.focus(c.suspect())
	if p.delays(c, rows) {
		return
	}
	was := p.classes.follow(p.basis, c.shared(), rows)
	all := c.query.Relative() && placement.UpdateRanking(c.panel.ranking.Ranking, p.fleet, c.query, c.view.Mask, delta.Rows)
	// If all are decided again anyway, as in the first pass, clusters outside the decisions need
	// not be evaluated.
	p.measureAgain(c)
	again := all || len(rows) > manyRows && c.absent == 0 && !slices.ContainsFunc(c.placements, func(d *placementDecision) bool { return !d.stale })
	spread := false
	for _, row := range delta.Rows {
		was, is := was.Has(row), c.view.Mask.Has(row)
		if (was || is) && !spread {
			spread = true
			c.markSpreading(&p.queue)
		}
		if is && !again {
			p.touchOutsider(c, row, p.outsider(c, row), was)
		}
	}
	if c.noteExpired(p.fleet) || all {
		c.markAll(p.basis)
	}
	if c.toldOtherwise(p.basis, before, delta, rows) {
		c.wake(&p.queue)
	}
}

// touchOutsider evaluates one changed row that the class admits.
func (p *placementPlanner) touchOutsider(c *class, row int, o outsider, was bool) {
	if was && !c.concerns(o) {
		return
	}
	if c.reachesAbsent(o, !was) {
		c.takeOver(p.inherited)
	}
	for _, placed := range c.placements {
		switch {
		case placed.stale || !placed.decided || placed.query.Wanted == 0:
		case !placed.full:
			// It has every cluster that fits: a score moves nothing, but a new cluster is wanted.
			if !was {
				p.queue.mark(placed)
			}
		case o.reaches(&floor{placed.worst, placed.worstTotal}):
			if !slices.Contains(placed.status.Clusters, p.fleet.Cluster(row).Metadata.Name) {
				p.queue.mark(placed)
			}
		}
	}
}

// noteExpired reports whether a placement score has newly expired on a cluster that fits, or no
// longer is.
func (c *class) noteExpired(f *columns.Fleet) (changed bool) {
	was := c.expired
	c.expired = c.view.Expired(f, c.query)
	return c.expired != was
}

// markAll marks every placement of the class as stale.
func (c *class) markAll(p *basis) {
	c.takeOver(p.inherited)
	for _, placed := range c.placements {
		p.queue.mark(placed)
	}
}

// touchOccupant evaluates a changed row as a chosen cluster of a placement. Expired scores on a
// cluster that only the decision keeps are in no condition of the class.
func (p *placementPlanner) touchOccupant(placed *placementDecision, row int, delta *columns.Delta) {
	if placed.class.late {
		return // decided again anyway
	}
	kept := placed.query.UsesScores() && !placed.class.view.Mask.Has(row)
	seat := placed.query.SeatReads()
	shown := seat != 0 && delta.ConcernsRow(row, seat) || placement.UnreadMatters(placed.status.Conditions, p.fleet, placed.query, row)
	if !placed.decided || kept || shown || !placement.Admits(p.fleet, placed.query, p.reserved, row, true) || p.comparesMore(placed) {
		p.queue.mark(placed)
		return
	}
	keeps, own, total := p.keepsSeat(placed, row)
	if !keeps {
		p.queue.mark(placed)
		return
	}
	if !own.Less(placed.worst) && !total.Less(placed.worstTotal) {
		return
	}
	placed.worst, placed.worstTotal = placement.Lower(own, placed.worst), placement.Lower(total, placed.worstTotal)
	placed.movable = placed.query.Minds() // perhaps
	placed.class.forgetFloor()
	p.note(placed)
}

// keepsSeat reports whether a chosen row whose rating changed keeps its seat, as far as that can be
// determined cheaply, and returns its merits.
func (p *placementPlanner) keepsSeat(placed *placementDecision, row int) (keeps bool, own, total placement.Merit) {
	q, view := placed.query, placed.class.view
	if q.Minds() {
		own, total, keeps = placement.KeepsSeat(p.fleet, q, view, p.others(), placed.present(), row)
		return keeps && !q.Spreads(), own, total
	}
	own = placement.MeritOf(p.fleet, q, view, p.others(), row, true)
	// While it is no worse than the worst chosen one, no cluster outside is better.
	if own.Less(placed.worst) {
		chosen := func(row int) bool { return slices.Contains(placed.status.Clusters, p.fleet.Name(row)) }
		keeps = !placement.Overtaken(p.fleet, q, view, p.others(), own, chosen)
		return keeps, own, own
	}
	return true, own, own
}

// comparesMore reports whether a placement compares its clusters with some that are not candidates
// of its class, because only the decision keeps them. It then has its own scale.
func (p *placementPlanner) comparesMore(placed *placementDecision) bool {
	return placed.query.Relative() && slices.ContainsFunc(placed.status.Clusters, func(name string) bool {
		row, ok := p.fleet.Row(name)
		return ok && !placed.class.view.Mask.Has(row)
	})
}

// followLoad marks the placements that may move because others chose other clusters since the last
// call. A move raises what the clusters of the placement score on their own, so moves end.
func (p *placementPlanner) followLoad() {
	if len(p.rankings.mindful) == 0 {
		p.load.Forget()
		return
	}
	shift := p.load.Shift()
	if shift.Empty() {
		return
	}
	for _, row := range shift.More {
		if !p.fleet.Live().Has(row) {
			continue
		}
		name := p.fleet.Name(row)
		p.inherited.takeOverAll(onCluster, name)
		for placed := range p.occupants[name] {
			if placed.class.panel.reads.Any(columns.Chosen) {
				p.wakeMovable(placed)
			}
		}
	}
	for c := range p.spreading {
		for placed := range c.spreading {
			p.wakeMovable(placed)
		}
	}
	if len(shift.Fewer) == 0 && !shift.Rescales() && p.rankings.herding == 0 {
		return
	}
	for panel := range p.rankings.mindful {
		if panel.reads.Any(columns.Chosen) {
			p.touchShift(panel, &shift)
		}
	}
}

// touchShift marks the placements of a panel that a shift of the load may move to a cluster that
// fewer others chose, or that now rate the counts of others otherwise.
func (p *placementPlanner) touchShift(panel *panel, shift *ledger.Shift) {
	herds := panel.classes[0].query.Herds()
	for _, c := range panel.classes {
		if herds {
			p.markMovable(c, nil)
		} else if shift.Rescales() {
			p.markMovable(c, func(placed *placementDecision) bool { return shift.RescalesFor(len(placed.status.Clusters)) })
		}
	}
	for _, row := range shift.Fewer {
		if !p.fleet.Live().Has(row) {
			continue
		}
		o := p.outsider(panel.classes[0], row)
		for i := range panel.floors {
			if c := panel.classes[i]; o.reaches(&panel.floors[i]) && c.view.Mask.Has(row) {
				p.touchOutsider(c, row, o, true)
			}
		}
	}
}

// measureAgain marks the placements of a class that compare what reservations leave on all clusters
// that fit: any of them may shift the scale.
func (p *placementPlanner) measureAgain(c *class) {
	if c.panel.reads.Any(columns.Reserved) {
		p.markMovable(c, nil)
	}
}

// markMovable marks the placements of a class that the decisions of others alone may move. If which
// is not nil, it chooses among them.
func (p *placementPlanner) markMovable(c *class, which func(*placementDecision) bool) {
	if c.absent > 0 && c.resting.movable > 0 {
		c.takeOver(p.inherited)
	}
	for _, placed := range c.placements {
		if which == nil || which(placed) {
			p.wakeMovable(placed)
		}
	}
}

// wakeMovable marks a placement if the decisions of others alone may move it. Its own decision, which
// is being taken in, does not.
func (p *placementPlanner) wakeMovable(placed *placementDecision) {
	if placed.movable && placed != p.deciding {
		p.queue.mark(placed)
	}
}

// outsider is a changed row from the point of view of placements that have not chosen it.
type outsider struct {
	merit placement.Merit
	total placement.Merit // including the decisions of others
	minds bool            // total counts too
	// above says that it must be better than a chosen cluster: among equals, the decisions of others
	// move nothing.
	above bool
}

// outsider returns a row for the classes of a panel, given any of them.
func (p *placementPlanner) outsider(c *class, row int) outsider {
	o := outsider{merit: placement.MeritOf(p.fleet, c.query, c.view, p.others(), row, false)}
	if o.above = c.query.Minds(); o.above {
		o.total, o.minds = placement.TotalOf(p.fleet, c.query, c.view, p.others(), row)
	}
	return o
}

// reaches reports whether the outsider may take a seat that is not below a floor.
func (o *outsider) reaches(f *floor) bool {
	if o.above {
		return f.own.Less(o.merit) && (!o.minds || f.total.Less(o.total))
	}
	return !o.merit.Less(f.own)
}

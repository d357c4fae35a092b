package reconcile

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

const (
	// passBudget is what expressions may cost in a pass, in CEL units: less than half a second.
	passBudget = 8_000_000
	// readBudget is what those of one preview, explanation or simulation may cost.
	readBudget = 8 * passBudget
	// attempts is the number of classes that share a budget at least.
	attempts = 8
)

// lateClasses are the classes whose expressions cost more than was left of the budget of a pass. Their
// views are empty, and their placements keep their decisions, until the expressions have been
// evaluated for all clusters, a part in each pass. Expressions remember results, so that the next
// pass continues where the last one ended. What is decided in the end does not depend on the budget.
type lateClasses struct {
	of     map[*class]struct{}
	budget int // of a pass
	left   int
	told   int // what is left for the explanations of a simulation
	// spent is what was spent on each namespace since the last time that no class was late. The
	// namespace that has cost least is next, so that none waits for another that costs more.
	spent map[string]int
}

func newLateClasses() lateClasses {
	return lateClasses{of: map[*class]struct{}{}, budget: passBudget, left: passBudget, told: readBudget, spent: map[string]int{}}
}

func (l *lateClasses) add(c *class) {
	c.late = true
	l.of[c] = struct{}{}
}

func (l *lateClasses) remove(c *class) {
	delete(l.of, c)
	c.late, c.spent = false, 0
}

// newReadPlanner returns a planner for a simulation: nobody waits for its pass but who asked for it.
func newReadPlanner(logger *slog.Logger) *planner {
	p := newPlanner(logger)
	p.placer.late.budget, p.placer.late.left = readBudget, readBudget
	return p
}

// attempt spends a part of what is left on some rows of a class, nil for all, and reports whether the
// view of the class can be updated now.
func (p *placementPlanner) attempt(c *class, rows []int) bool {
	if !c.query.Costly() {
		return true
	}
	slice := min(p.late.left, p.late.budget/attempts)
	rest := slice
	done := placement.Afford(p.fleet, c.query, p.others(), rows, &rest)
	cost := slice - rest
	p.late.left -= cost
	c.spent += cost
	p.late.spent[c.query.Key.Namespace] += cost
	return done
}

// newView returns the view of a new class; an empty one if the class is late.
func (p *placementPlanner) newView(c *class, r *score.Ranking) *placement.View {
	_, known := p.classes.views.Get(seen{class: c.query.Class})
	if known || p.attempt(c, nil) {
		return p.classes.view(p.basis, c.query, r)
	}
	p.late.add(c)
	v := &placement.View{Mask: columns.NewBitmap(p.fleet.Slots()), Ranking: r}
	if v.Ranking == nil && c.query.Ranked() {
		v.Ranking = placement.NewRanking(p.fleet, c.query, v.Mask)
	}
	return v
}

// delays reports whether a class is late, or is now because changed rows cost too much.
func (p *placementPlanner) delays(c *class, rows []int) bool {
	if !c.late && len(rows) > 0 && !p.attempt(c, rows) {
		p.late.add(c)
		c.markAll(p.basis) // the condition says so
	}
	if !c.late {
		return false
	}
	c.view.Mask, c.view.Shared = columns.NewBitmap(p.fleet.Slots()), false
	c.forgetFloor()
	p.classes.views.Delete(seen{class: c.query.Class})
	return true
}

// catchUp spends the budget of a pass on late classes, and completes those whose expressions have been
// evaluated.
func (p *placementPlanner) catchUp() {
	for p.late.left = p.late.budget; p.late.left > 0 && len(p.late.of) > 0; {
		var next *class
		for c := range p.late.of {
			if next == nil || p.late.before(c, next) {
				next = c
			}
		}
		p.focus(next.suspect())
		if p.attempt(next, nil) {
			p.complete(next)
		}
	}
	if p.late.left = p.late.budget; len(p.late.of) == 0 {
		clear(p.late.spent)
	}
}

// before reports whether a late class has its turn before another.
func (l *lateClasses) before(a, b *class) bool {
	return cmp.Or(
		cmp.Compare(l.spent[a.query.Key.Namespace], l.spent[b.query.Key.Namespace]),
		cmp.Compare(a.spent, b.spent),
		cmp.Compare(a.query.Class, b.query.Class),
	) < 0
}

// complete computes the view of a late class.
func (p *placementPlanner) complete(c *class) {
	p.late.remove(c)
	c.view.Refresh(p.fleet, c.query, p.others())
	p.classes.note(c.shared())
	if c.query.Relative() {
		all := make([]int, p.fleet.Slots())
		for row := range all {
			all[row] = row
		}
		placement.UpdateRanking(c.panel.ranking.Ranking, p.fleet, c.query, c.view.Mask, all)
	}
	c.noteExpired(p.fleet)
	c.seen = p.version
	c.markAll(p.basis)
}

// postpone leaves a placement of a late class as it is, with the condition that says so.
func (p *placementPlanner) postpone(placed *placementDecision, now time.Time) (changed bool) {
	status, changed := placement.Late(placed.status, now)
	if changed {
		placed.status = &status
	}
	return changed
}

// resumeAt returns when the planner must be called again for late classes.
func (l *lateClasses) resumeAt(now time.Time) time.Time {
	if len(l.of) == 0 {
		return time.Time{}
	}
	return now
}

// untold returns the explanation of a placement whose expressions cost too much to explain it, or nil.
func untold(f *columns.Fleet, q *placement.Query, budget *int, now time.Time) *api.Explanation {
	if placement.AffordExplanation(f, q, budget) {
		return nil
	}
	return placement.LateExplanation(f, q, now)
}

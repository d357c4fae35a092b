package filter

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/constraint/expression"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// Costly reports whether a check evaluates expressions whose cost depends on more than their length.
func (c *Checks) Costly() bool {
	return c.anyExpression(func(e *expression.Expression) bool { return !e.Bounded() })
}

// Remember reports whether a check evaluates expressions that remember results, each for the last
// version of a cluster.
func (c *Checks) Remember() bool { return c.anyExpression((*expression.Expression).Remembers) }

func (c *Checks) anyExpression(is func(*expression.Expression) bool) bool {
	check, ok := First[*matchesAny](c)
	return ok && slices.ContainsFunc(check.predicates, func(p predicate) bool { return slices.ContainsFunc(p.expressions, is) })
}

// Afford evaluates the expressions of the checks for some rows, as far as a budget in CEL units lasts,
// and reports whether it did. Afterwards the checks cost no more than that for these rows, or nothing
// if the expressions remember the results. Rows that an earlier check rejects need none.
func (c *Checks) Afford(l *Evaluation, rows columns.Bitmap, budget *int) bool {
	for _, check := range c.All {
		if check, ok := check.(*matchesAny); ok {
			return check.afford(l, rows, false, budget)
		}
		check.Apply(l, rows)
	}
	return true
}

// AffordAll is Afford for every cluster, even if an earlier check rejects it, and for every
// expression: for an explanation.
func (c *Checks) AffordAll(l *Evaluation, budget *int) bool {
	check, ok := First[*matchesAny](c)
	return !ok || check.afford(l, l.Fleet.Live(), true, budget)
}

func (c *matchesAny) afford(l *Evaluation, rows columns.Bitmap, every bool, budget *int) (known bool) {
	facts := c.facts(l, 0)
	known = true
	rows.Each(func(row int) {
		if facts.row = row; known {
			_, known = c.affordRow(facts, every, budget)
		}
	})
	if !known {
		// The next attempt continues from here. All of them remember: one that did not would spend the
		// budget of every attempt on what it has evaluated before, and another would never have its turn.
		for _, p := range c.predicates {
			for _, e := range p.expressions {
				e.Remember()
			}
		}
	}
	return known
}

// affordRow reports whether a row matches a predicate, and whether that is known.
func (c *matchesAny) affordRow(facts *clusterFacts, every bool, budget *int) (match, known bool) {
	for i := range c.predicates {
		p := &c.predicates[i]
		all := meets(p.labels, facts.Labels()) && meets(p.claims, facts.Claims())
		for _, e := range p.expressions {
			if !all && !every {
				break
			}
			is, known := e.Afford(facts, budget)
			if !known {
				return false, false
			}
			all = all && is
		}
		if match = match || all; match && !every {
			break
		}
	}
	return match, true
}

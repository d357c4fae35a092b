package filter

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint/expression"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// predicate is one of a placement's alternative predicates; all of its parts must hold.
type predicate struct {
	labels, claims []api.SelectorRequirement
	expressions    []*expression.Expression
}

func compilePredicates(list []api.Predicate) ([]predicate, error) {
	out := make([]predicate, len(list))
	for i, p := range list {
		out[i].labels, out[i].claims = p.LabelSelector.Requirements(), p.ClaimSelector.Requirements()
		for j, text := range p.CEL {
			e, err := expression.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("spec.predicates[%d].cel[%d]: %w", i, j, err)
			}
			out[i].expressions = append(out[i].expressions, e)
		}
	}
	return out, nil
}

// parts returns the parts as text: `label cloud In (Amazon)`.
func (p *predicate) parts() []string {
	var out []string
	for i := range p.labels {
		out = append(out, "label "+requirementText(&p.labels[i]))
	}
	for i := range p.claims {
		out = append(out, "claim "+requirementText(&p.claims[i]))
	}
	for _, e := range p.expressions {
		out = append(out, e.String())
	}
	return out
}

// String returns the predicate for messages.
func (p *predicate) String() string {
	if parts := p.parts(); len(parts) > 0 {
		return strings.Join(parts, " and ")
	}
	return "every cluster"
}

// requirementText returns a requirement as text: `cloud In (Amazon, Azure)`.
func requirementText(r *api.SelectorRequirement) string { return r.Key + " " + wantedText(r) }

func wantedText(r *api.SelectorRequirement) string {
	if len(r.Values) == 0 {
		return string(r.Operator)
	}
	return string(r.Operator) + " (" + strings.Join(r.Values, ", ") + ")"
}

// key writes the parts that determine which clusters match.
func (p *predicate) key(k key.Writer) {
	requirementsKey(k, "labels", p.labels)
	requirementsKey(k, "claims", p.claims)
	k.Each("cel", len(p.expressions), func(k key.Writer, i int) { k.Text("expression", p.expressions[i].String()) })
}

// requirementsKey writes requirements as a set.
func requirementsKey(k key.Writer, part string, list []api.SelectorRequirement) {
	k.Each(part, len(list), func(k key.Writer, i int) {
		k.Text(part+" key", list[i].Key)
		k.Text(part+" operator", string(list[i].Operator))
		k.Set(part+" values", list[i].Values)
	})
}

// reads returns the aspects of a cluster that determine whether it matches.
func (p *predicate) reads() columns.Aspects {
	reads := columns.Aspects(0)
	if len(p.labels) > 0 {
		reads |= columns.Labels
	}
	if len(p.claims) > 0 {
		reads |= columns.Claims
	}
	for _, e := range p.expressions {
		if _, _, only := e.Keys(); !only {
			reads |= expressionFacts
		} else {
			reads |= columns.Labels | columns.Claims
		}
		if e.UsesMetrics() {
			reads |= columns.MetricValues | columns.Failing
		}
		if e.UsesScores() {
			reads |= columns.ScoreValues
		}
	}
	return reads
}

// selectInto removes the clusters that do not match from b. It overwrites scratch, and moves c from
// row to row.
func (p *predicate) selectInto(c *clusterFacts, b, scratch columns.Bitmap) {
	c.fleet.Labels().SelectInto(p.labels, b, scratch)
	c.fleet.Claims().SelectInto(p.claims, b, scratch)
	for _, e := range p.expressions {
		c.evaluate(e, b)
	}
}

// evaluate removes the clusters for which an expression is false from b. An expression that reads
// only labels and claims is evaluated once for all clusters with the same values.
func (c *clusterFacts) evaluate(e *expression.Expression, b columns.Bitmap) {
	if _, _, only := e.Keys(); !only {
		b.Each(func(row int) {
			c.row = row
			b.Assign(row, e.Match(c))
		})
		return
	}
	known := map[string]bool{}
	var key []byte
	b.Each(func(row int) {
		c.row = row
		key = e.AppendKey(key[:0], c)
		match, ok := known[string(key)]
		if !ok {
			match = e.Match(c)
			known[string(key)] = match
		}
		b.Assign(row, match)
	})
}

func meets(requirements []api.SelectorRequirement, values map[string]string) bool {
	for i := range requirements {
		value, present := values[requirements[i].Key]
		if !requirements[i].Matches(value, present) {
			return false
		}
	}
	return true
}

func (p *predicate) match(c *clusterFacts) bool {
	if !meets(p.labels, c.Labels()) || !meets(p.claims, c.Claims()) {
		return false
	}
	for _, e := range p.expressions {
		if !e.Match(c) {
			return false
		}
	}
	return true
}

// unread returns a metric that cannot be read and without which it is not known whether a cluster
// matches, or nil: everything else matches.
func (p *predicate) unread(c *clusterFacts) (needed *columns.MetricState) {
	if !meets(p.labels, c.Labels()) || !meets(p.claims, c.Claims()) {
		return nil
	}
	for _, e := range p.expressions {
		c.unread = nil
		if e.Match(c) {
			continue
		}
		if c.unread == nil || e.Explain(c) == isFalse {
			return nil
		}
		needed = c.unread
	}
	return needed
}

// isFalse is how an expression without an error explains that it does not match.
const isFalse = "is false"

// failing describes the parts that a cluster does not meet.
func (p *predicate) failing(c *clusterFacts) []string {
	var out []string
	check := func(kind string, requirements []api.SelectorRequirement, values map[string]string) {
		for i := range requirements {
			r := &requirements[i]
			switch value, present := values[r.Key]; {
			case r.Matches(value, present):
			case present:
				out = append(out, fmt.Sprintf("%s %q is %q, wanted %s", kind, r.Key, value, wantedText(r)))
			default:
				out = append(out, fmt.Sprintf("%s %q is absent, wanted %s", kind, r.Key, wantedText(r)))
			}
		}
	}
	check("label", p.labels, c.Labels())
	check("claim", p.claims, c.Claims())
	for _, e := range p.expressions {
		switch why := e.Explain(c); why {
		case "":
		case isFalse:
			out = append(out, e.String()+" is false")
		default:
			out = append(out, e.String()+": "+why)
		}
	}
	return out
}

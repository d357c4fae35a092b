package engine

import (
	"math"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// prioritizers is the strategy of Open Cluster Management: the sum of scores of
// -100 ... 100, each times its weight of -10 ... 10.
//
// Example: balance 1 and steady 1 by default, and an add-on score of weight 2
// that is 30: a cluster of the present decision that no other placement uses has
// 1·100 + 1·100 + 2·30 = 260.
type prioritizers struct{}

// steadyScore is what steady gives a cluster of the present decision.
const steadyScore = 100

// Own implements Scorer. What is left of resources counts without regard to the
// reservations of other placements here, and a negative weight of steady does
// not: with it, a decision would leave its clusters as soon as it is made.
func (prioritizers) Own(p *Pass, row int, current bool) float64 {
	score := p.base(row)
	if current {
		score += max(p.query.policy.steady, 0) * steadyScore
	}
	return score
}

func (s prioritizers) Score(p *Pass, row int, current bool) float64 {
	score := s.Own(p, row, current)
	if current && !p.settled {
		score += min(p.query.policy.steady, 0) * steadyScore
	}
	if weight := p.query.policy.balance; weight != 0 {
		score += weight * balance(p.seen.at(row), p.seen.high)
	}
	for i := range p.left {
		if t := &p.query.policy.terms[i]; t.free() != "" {
			score += t.weight * (p.left[i].rate(p.leftOf(i, row)) - p.rate(i, row))
		}
	}
	return score
}

func (prioritizers) Parts(p *Pass, row int, current bool) []api.ScorePart {
	policy := p.query.policy
	parts := make([]api.ScorePart, 0, len(policy.terms)+2)
	add := func(name string, value, weight float64, from observation) {
		if weight != 0 {
			parts = append(parts, api.ScorePart{
				Name: name, Raw: from.raw, Value: value, Weight: weight, Share: value * weight,
				ExpiredAt: from.expiredAt, Reason: from.reason, Tells: from.metric,
			})
		}
	}
	count := float64(p.seen.at(row))
	add(api.PrioritizerBalance, balance(p.seen.at(row), p.seen.high), policy.balance, observation{raw: &count})
	steady := 0.0
	if current {
		steady = steadyScore
	}
	add(api.PrioritizerSteady, steady, policy.steady, observation{})
	p.resolve()
	for i := range policy.terms {
		t := &policy.terms[i]
		value, from := p.rate(i, row), t.observe(p.fleet, &p.figures[i], row)
		if share, ok := t.prioritizer.(resourceShare); ok && share.free && p.left != nil {
			value, from = p.left[i].rate(p.leftOf(i, row)), share.observed(p.leftOf(i, row))
		}
		add(t.Name(), value, t.weight, from)
	}
	return parts
}

// resolve finds the figures of the query's terms, once per pass.
func (p *Pass) resolve() {
	if p.figures != nil || p.query.policy == nil {
		return
	}
	terms := p.query.policy.terms
	p.figures = make([]figures, len(terms))
	for i := range terms {
		p.figures[i] = terms[i].figures(p.fleet)
	}
}

// leftOf is what reservations leave of an available amount. What the placement
// itself has reserved is available to it.
func (p *Pass) leftOf(i, row int) int64 {
	amount := p.figures[i].amount(row)
	if amount == unreported {
		return unreported
	}
	resource := p.query.policy.terms[i].free()
	amount -= at(p.reserved.column(resource), row)
	if p.mine != nil && p.mine.Has(row) {
		if h, ok := p.reserved.held(p.query.Key, p.fleet.name(row)); ok {
			own := h.of(resource)
			amount = min(amount, math.MaxInt64-own) + own
		}
	}
	return max(amount, 0)
}

// rate is the score of a term for a row, -100 ... 100. resolve has run.
func (p *Pass) rate(i, row int) float64 {
	var scale *span
	if p.spans != nil {
		scale = &p.spans[i]
	}
	return p.query.policy.terms[i].rate(p.fleet, &p.figures[i], scale, row)
}

// base is what the terms say of a row, each times its weight.
func (p *Pass) base(row int) float64 {
	if r := p.ranking; r != nil && row < len(r.score) && p.ranked(row) {
		return r.score[row]
	}
	p.resolve()
	sum := 0.0
	for i := range p.query.policy.terms {
		// Converted, so that no machine fuses the multiplication with the sum.
		sum += float64(p.query.policy.terms[i].weight * p.rate(i, row))
	}
	return sum
}

// ranked reports that the ranking has the row's score. That of a relative policy
// has only candidates; another has every cluster.
func (p *Pass) ranked(row int) bool { return p.candidates == nil || p.candidates.Has(row) }

// measure finds the spans of the relative terms over the clusters of a mask.
func (p *Pass) measure(mask Bitmap) []span {
	p.resolve()
	spans := make([]span, len(p.query.policy.terms))
	for i := range p.query.policy.terms {
		if p.query.policy.terms[i].relative() {
			mask.each(func(row int) { spans[i].cover(p.figures[i].amount(row)) })
		}
	}
	return spans
}

// measureLeft finds the spans of what reservations leave of the available
// amounts, over the clusters of a mask and the present ones.
func (p *Pass) measureLeft(mask Bitmap, present []int) []span {
	p.resolve()
	spans := make([]span, len(p.query.policy.terms))
	for i := range p.query.policy.terms {
		if p.query.policy.terms[i].free() != "" {
			mask.each(func(row int) { spans[i].cover(p.leftOf(i, row)) })
			for _, row := range present {
				spans[i].cover(p.leftOf(i, row))
			}
		}
	}
	return spans
}

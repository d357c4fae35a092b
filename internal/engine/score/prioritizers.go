package score

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// prioritizers is the strategy of Open Cluster Management: the sum of scores from -100 to 100, each
// times its weight from -10 to 10.
//
// Example: with balance 1 and steady 1 by default, and an add-on score of 30 with weight 2, a
// cluster of the current decision that no other placement uses has 1·100 + 1·100 + 2·30 = 260.
type prioritizers struct {
	// decided are the terms that only look at decisions, terms those that look at clusters.
	// Prioritizers get their index in terms.
	decided, terms []term
	// stay is added to the score of clusters of the current decision. away is not positive; it is
	// what a negative steady weight subtracts from them.
	stay, away float64
	mindful    bool // some terms depend on the decisions of others
	traits     Traits
}

// term is a prioritizer with its weight in a policy. Its interfaces are looked up once, because
// they are called for every cluster.
type term struct {
	prioritizer
	weight float64
	rates  rater          // nil if it only looks at decisions
	minds  crossPlacement // nil if it does not depend on the decisions of others
}

// additive is the policy without configurations, which most placements have.
var additive = newScoring(api.StrategyPrioritizers, compilePolicy("", &api.PrioritizerPolicy{}))

// newPrioritizers compiles the prioritizer policy of a placement in a namespace.
func newPrioritizers(namespace string, spec *api.PlacementSpec) *Scoring {
	policy := spec.PrioritizerPolicy
	if policy == nil || policy.Mode != api.ModeExact && len(policy.Configurations) == 0 {
		return additive
	}
	return newScoring(api.StrategyPrioritizers, compilePolicy(namespace, policy))
}

// compilePolicy collects the terms of a policy. If a built-in prioritizer is listed twice, the last
// weight counts; scores and metrics add up.
func compilePolicy(namespace string, policy *api.PrioritizerPolicy) *prioritizers {
	s := &prioritizers{traits: Traits{Words: &ocmWords}}
	weights := map[string]float64{}
	var order []string
	weigh := func(name string, weight float64) {
		if _, ok := weights[name]; !ok {
			order = append(order, name)
		}
		weights[name] = weight
	}
	if policy.Mode != api.ModeExact {
		weigh(api.PrioritizerBalance, 1)
		weigh(api.PrioritizerSteady, 1)
	}
	for i := range policy.Configurations {
		c := &policy.Configurations[i]
		weight := 1.0
		if c.Weight != nil {
			weight = float64(*c.Weight)
		}
		if compile, ok := configured[c.Type]; ok {
			s.add(compile(namespace, c), weight)
		} else {
			weigh(c.Name, weight)
		}
	}
	for _, b := range builtins {
		if _, ok := b.(rater); !ok {
			s.add(b, weights[b.Name()])
		}
	}
	for _, name := range order {
		if at := slices.IndexFunc(builtins, func(b prioritizer) bool { return b.Name() == name }); at >= 0 {
			if _, ok := builtins[at].(rater); ok {
				s.add(builtins[at], weights[name])
			}
		}
	}
	s.traits.flat = len(s.terms) == 0
	if s.traits.spans > 0 {
		s.traits.spans = len(s.terms)
	}
	return s
}

// add adds a term and updates the properties of the policy.
func (s *prioritizers) add(p prioritizer, weight float64) {
	if weight == 0 {
		return
	}
	t := term{prioritizer: p, weight: weight}
	t.rates, _ = p.(rater)
	t.minds, _ = p.(crossPlacement)
	to, traits := &s.terms, &s.traits
	if t.rates == nil {
		to = &s.decided
	}
	*to = append(*to, t)
	traits.Reads |= p.Reads()
	if p, ok := p.(sticking); ok {
		s.stay += max(weight, 0) * p.Stay()
		s.away += min(weight, 0) * p.Stay()
	}
	traits.Away = s.away < 0
	traits.Minds = traits.Minds || traits.Away || t.minds != nil
	traits.Herds = traits.Herds || t.minds != nil && weight < 0
	s.mindful = s.mindful || t.rates != nil && t.minds != nil
	if _, ok := p.(comparing); ok {
		traits.spans++
	}
	if _, ok := p.(spreading); ok {
		traits.Evenness += weight
	}
	if p, ok := p.(naming); ok {
		traits.Metrics = append(traits.Metrics, p.Metric())
	}
}

// Traits implements scorer.
func (s *prioritizers) Traits() Traits { return s.traits }

// Key implements scorer.
func (s *prioritizers) Key(k key.Writer) {
	writeTerms(k, "decided", s.decided)
	s.RankKey(k)
}

// RankKey implements ranker. Terms that only look at decisions do not affect the order.
func (s *prioritizers) RankKey(k key.Writer) { writeTerms(k, "terms", s.terms) }

// writeTerms writes terms in order, because sums of floats depend on it.
func writeTerms(k key.Writer, part string, terms []term) {
	k.Sequence(part, len(terms), func(k key.Writer, i int) {
		terms[i].Key(k)
		k.Text("weight", fmt.Sprintf("%g", terms[i].weight))
	})
}

// Own implements scorer. Reservations of other placements are ignored here, and so is a negative
// steady weight, with which a decision would leave its clusters as soon as it is made.
func (s *prioritizers) Own(r *Rating, row int, current bool) float64 {
	score := r.base(row)
	if current {
		score += s.stay
	}
	return score
}

// Score implements scorer.
func (s *prioritizers) Score(r *Rating, row int, current bool) float64 {
	score := s.Own(r, row, current)
	if current && !r.Settled {
		score += s.away
	}
	return s.Others(r, row, score)
}

// Others implements minder.
func (s *prioritizers) Others(r *Rating, row int, score float64) float64 {
	for i := range s.decided {
		if t := &s.decided[i]; t.minds != nil {
			score += float64(t.weight * t.minds.Mind(r, -1, row))
		}
	}
	if !s.mindful {
		return score
	}
	s.resolve(r)
	for i := range s.terms {
		if t := &s.terms[i]; t.minds != nil {
			score += float64(t.weight * t.minds.Mind(r, i, row))
		}
	}
	return score
}

// OfCount implements minder. With several terms, the sum must be computed one by one, as Others
// does.
func (s *prioritizers) OfCount(r *Rating, count int32) (add float64, ok bool) {
	n := 0
	for t := range s.all {
		if t.minds == nil {
			continue
		}
		c, ok := t.prioritizer.(counting)
		if n++; !ok || n > 1 {
			return 0, false
		}
		add = t.weight * c.OfCount(count, r.Seen.High)
	}
	return add, true
}

// Most implements minder.
func (s *prioritizers) Most(r *Rating) float64 {
	sum := 0.0
	for t := range s.all {
		if t.minds != nil {
			least, most := t.minds.Bounds(r)
			sum += max(t.weight*least, t.weight*most)
		}
	}
	return sum
}

// AtMost implements minder.
func (s *prioritizers) AtMost(r *Rating, row int, score float64) (most float64, ok bool) {
	for t := range s.all {
		if t.minds == nil {
			continue
		}
		most, ok := t.minds.Most(r, row)
		if !ok || t.weight < 0 {
			return 0, false
		}
		score += float64(t.weight * most)
	}
	return score, true
}

// Base implements ranker: the weighted sum of the terms.
func (s *prioritizers) Base(r *Rating, row int) float64 {
	s.resolve(r)
	sum := 0.0
	for i := range s.terms {
		// The conversion prevents fused multiply-add.
		sum += float64(s.terms[i].weight * s.terms[i].rates.Rate(r, i, row))
	}
	return sum
}

// Cover implements ranker.
func (s *prioritizers) Cover(r *Rating, spans []span, row int) {
	s.resolve(r)
	for i := range s.terms {
		if c, ok := s.terms[i].prioritizer.(comparing); ok {
			spans[i].cover(c.Amount(r, i, row))
		}
	}
}

// CoverLeft implements minder.
func (s *prioritizers) CoverLeft(r *Rating, spans []span, row int) {
	s.resolve(r)
	for i := range s.terms {
		if c, ok := s.terms[i].prioritizer.(sharing); ok {
			spans[i].cover(c.Left(r, i, row))
		}
	}
}

// Expired implements perishable.
func (s *prioritizers) Expired(f *columns.Fleet, has func(*columns.RowSet) bool) string {
	for t := range s.all {
		if p, ok := t.prioritizer.(perishing); ok {
			if what, on := p.Expired(f); has(on) {
				return what
			}
		}
	}
	return ""
}

// Until implements perishable.
func (s *prioritizers) Until(f *columns.Fleet, row int) time.Time {
	var first time.Time
	for t := range s.all {
		if p, ok := t.prioritizer.(perishing); ok {
			first = filter.Sooner(first, p.Until(f, row))
		}
	}
	return first
}

// Parts implements scorer.
func (s *prioritizers) Parts(r *Rating, row int, current bool) []api.ScorePart {
	s.resolve(r)
	parts := make([]api.ScorePart, 0, len(s.decided)+len(s.terms))
	add := func(t *term, i int) {
		if p, ok := t.prioritizer.(observable); ok {
			value, from := p.Observe(r, i, row, current)
			parts = append(parts, api.ScorePart{
				Name: t.Name(), Raw: from.raw, Value: value, Weight: t.weight, Share: value * t.weight,
				ExpiredAt: from.expiredAt, Reason: from.reason, Tells: from.metric,
			})
		}
	}
	for i := range s.decided {
		add(&s.decided[i], -1)
	}
	for i := range s.terms {
		add(&s.terms[i], i)
	}
	return parts
}

// all yields the terms, first those that only look at decisions.
func (s *prioritizers) all(yield func(*term) bool) {
	for _, list := range [2][]term{s.decided, s.terms} {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// resolve looks up the columns of the terms, once for every Rating.
func (s *prioritizers) resolve(r *Rating) {
	if r.lookups != nil || len(s.terms) == 0 {
		return
	}
	r.lookups = make([]lookup, len(s.terms))
	for i := range s.terms {
		if p, ok := s.terms[i].prioritizer.(columnar); ok {
			r.lookups[i] = p.Lookup(r.Fleet)
		}
	}
}

// ocmWords is the wording of Open Cluster Management.
var ocmWords = Words{
	Satisfied:  satisfiedAsOCM,
	Scheduled:  true,
	WellReason: api.ReasonSucceedConfigured, WellMessage: "Placement configurations check pass",
}

// satisfiedAsOCM returns the condition with the reasons and messages of Open Cluster Management;
// the first that applies is used.
func satisfiedAsOCM(t Tally) api.Condition {
	c := api.Condition{Type: api.ConditionSatisfied, Status: api.ConditionFalse}
	sets, usable, members := t.sets()
	switch {
	case len(sets) > 0 && len(usable) == 0:
		c.Reason = api.ReasonNoIntersection
		c.Message = fmt.Sprintf("None of ManagedClusterSets [%s] is bound to placement namespace", strings.Join(sets, ","))
	case len(sets) > 0 && members == 0:
		c.Reason = api.ReasonAllClusterSetsEmpty
		c.Message = fmt.Sprintf("All ManagedClusterSets [%s] have no member ManagedCluster", strings.Join(usable, ","))
	case t.Chosen == 0:
		c.Reason = api.ReasonNoManagedClusterMatched
		c.Message = "No ManagedCluster matches any of the cluster predicate"
	case t.Missing() > 0:
		c.Reason = api.ReasonNotAllDecisionsScheduled
		c.Message = fmt.Sprintf("%d cluster decisions unscheduled", t.Missing())
	default:
		c.Status, c.Reason, c.Message = api.ConditionTrue, api.ReasonAllDecisionsScheduled, "All cluster decisions scheduled"
	}
	return c
}

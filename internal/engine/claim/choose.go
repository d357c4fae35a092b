package claim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Choose returns the policy that a workload follows, or nil, and the reason. held is the path of
// the policy that has claimed it, or "".
func (c *Rules) Choose(w *api.Workload, held string) (policy *api.PropagationPolicy, reason string) {
	if w.Spec.Allocation != nil {
		return nil, "it is placed by spec.allocation, not by a policy"
	}
	s := subjectOf(w)
	var gone string
	if held != "" {
		holder := c.holder(s, held)
		if holder != nil {
			taker := c.taker(s, holder)
			if taker == nil {
				return holder.policy, fmt.Sprintf("policy %q holds the claim", held)
			}
			return taker.policy, whyTaken(taker, holder)
		}
		gone = fmt.Sprintf("policy %q, which held the claim, no longer selects it: ", held)
		if _, ok := c.rules[policyKey(held)]; !ok {
			gone = fmt.Sprintf("policy %q, which held the claim, was deleted: ", held)
		}
	}
	var space [8]*rule
	found := c.matching(s, space[:0])
	if len(found) == 0 {
		return nil, fmt.Sprintf("%sno policy selects %s %s %s", gone, w.Spec.APIVersion, w.Spec.Kind, s.key.Path())
	}
	slices.SortFunc(found, inOrder)
	return found[0].policy, gone + whyFirst(found)
}

// policyKey returns the key of a policy from its path.
func policyKey(path string) api.Key {
	namespace, name, ok := strings.Cut(path, "/")
	if !ok {
		namespace, name = "", path
	}
	return api.Key{Kind: api.KindPropagationPolicy, Namespace: namespace, Name: name}
}

// holder returns the most specific rule by which the policy that claimed a workload selects it, or
// nil if the policy is gone or no longer selects it.
func (c *Rules) holder(s *subject, held string) *rule {
	var best *rule
	for _, r := range c.rules[policyKey(held)] {
		if r.matches(s) && (best == nil || inOrder(r, best) < 0) {
			best = r
		}
	}
	return best
}

// taker returns the rule by which another policy takes over a claimed workload, or nil.
func (c *Rules) taker(s *subject, holder *rule) *rule {
	own := c.first(s, false, true)
	if !holder.global() {
		if own != nil && own.priority() > holder.priority() {
			return own
		}
		return nil
	}
	if own != nil {
		return own
	}
	if other := c.first(s, true, true); other != nil && other.priority() > holder.priority() {
		return other
	}
	return nil
}

// first returns the first rule in order of precedence that matches.
func (c *Rules) first(s *subject, global, preempting bool) *rule {
	var best *rule
	for rules := range c.lists(s, global, preempting) {
		for _, r := range rules {
			if best != nil && inOrder(best, r) <= 0 {
				break
			}
			if r.matches(s) {
				best = r
				break
			}
		}
	}
	return best
}

// manyMatches limits how many rules of one list are compared to explain why one takes precedence.
const manyMatches = 100

// matching appends the rules that match a workload: all that may be first or second, and the others
// up to a limit.
func (c *Rules) matching(s *subject, found []*rule) []*rule {
	for _, global := range [...]bool{false, true} {
		for rules := range c.lists(s, global, false) {
			n := 0
			for _, r := range rules {
				if r.matches(s) {
					found = append(found, r)
					if n++; n == manyMatches {
						break
					}
				}
			}
		}
	}
	return found
}

// whyFirst says why the first of some ordered rules takes precedence.
func whyFirst(found []*rule) string {
	first := found[0]
	var second *rule
	policies := map[string]struct{}{}
	for _, r := range found {
		policies[r.path] = struct{}{}
		if second == nil && r.path != first.path {
			second = r
		}
	}
	if second == nil {
		return fmt.Sprintf("policy %q is the only one that selects it", first.path)
	}
	of := fmt.Sprintf("of %d policies that select it, %q", len(policies), first.path)
	if len(policies) >= manyMatches {
		of = fmt.Sprintf("of %d or more policies that select it, %q", manyMatches, first.path)
	}
	switch {
	case first.global() != second.global():
		return fmt.Sprintf("%s is of its namespace: such policies come before global ones", of)
	case first.priority() != second.priority():
		return fmt.Sprintf("%s has the highest priority, %d", of, first.priority())
	case first.by != second.by:
		return fmt.Sprintf("%s selects it most precisely of those with the highest priority, %d: %s", of, first.priority(), first.by)
	}
	return fmt.Sprintf("%s is the first by name of those that have the highest priority, %d, and select it %s", of, first.priority(), first.by)
}

// whyTaken says why a policy takes over a workload that another has claimed.
func whyTaken(taker, holder *rule) string {
	if taker.global() != holder.global() {
		return fmt.Sprintf("policy %q preempts %q: it is of the workload's namespace, and the other global", taker.path, holder.path)
	}
	return fmt.Sprintf("policy %q (priority %d) preempts %q (priority %d)", taker.path, taker.priority(), holder.path, holder.priority())
}

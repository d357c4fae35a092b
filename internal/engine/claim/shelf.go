package claim

import (
	"iter"
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Rules are the selectors of all policies.
type Rules struct {
	rules map[api.Key][]*rule // by policy
	// shelves hold the rules that can match a workload of one type and namespace, by one term that
	// such a workload must have. Each list is in order of precedence.
	shelves map[shelf]map[term][]*rule
}

// put replaces the rules of a policy.
func (c *Rules) put(key api.Key, rules []*rule) {
	c.remove(key)
	for _, r := range rules {
		c.file(r)
	}
	c.rules[key] = rules
}

// remove removes the rules of a policy.
func (c *Rules) remove(key api.Key) {
	for _, r := range c.rules[key] {
		c.unfile(r)
	}
	delete(c.rules, key)
}

// clone returns a copy that can be modified. The lists in it are replaced, not modified.
func (c *Rules) clone() *Rules {
	own := &Rules{rules: maps.Clone(c.rules), shelves: maps.Clone(c.shelves)}
	for at, filed := range own.shelves {
		own.shelves[at] = maps.Clone(filed)
	}
	return own
}

// shelf identifies a group of rules by the workloads and policies that they belong to.
type shelf struct {
	resourceType
	global     bool // rules of global policies
	preempting bool // rules of policies that take over claimed workloads; these are on both shelves
}

// term is what a workload must have for the rules filed under it: a name or a label value. The zero
// term requires nothing.
type term struct {
	by precision
	label
}

func (r *rule) shelf(preempting bool) shelf {
	return shelf{resourceType{r.namespace, r.apiVersion, r.kind}, r.global(), preempting}
}

// file files a rule under the terms of the workloads that it matches.
func (c *Rules) file(r *rule) {
	all := r.shelf(false)
	r.filed = r.terms(c.shelves[all])
	c.fileOn(all, r)
	if r.preempting() {
		c.fileOn(r.shelf(true), r)
	}
}

func (c *Rules) fileOn(at shelf, r *rule) {
	if c.shelves[at] == nil {
		c.shelves[at] = map[term][]*rule{}
	}
	for _, t := range r.filed {
		rules := c.shelves[at][t]
		i, _ := slices.BinarySearchFunc(rules, r, inOrder)
		c.shelves[at][t] = slices.Insert(slices.Clip(rules), i, r)
	}
}

func (c *Rules) unfile(r *rule) {
	c.unfileFrom(r.shelf(false), r)
	if r.preempting() {
		c.unfileFrom(r.shelf(true), r)
	}
}

func (c *Rules) unfileFrom(at shelf, r *rule) {
	for _, t := range r.filed {
		rules := c.shelves[at][t]
		i, _ := slices.BinarySearchFunc(rules, r, inOrder)
		for rules[i] != r { // a policy may have equal selectors
			i++
		}
		if rules = slices.Concat(rules[:i], rules[i+1:]); len(rules) > 0 {
			c.shelves[at][t] = rules
		} else if delete(c.shelves[at], t); len(c.shelves[at]) == 0 {
			delete(c.shelves, at)
		}
	}
}

// terms returns terms of which a matching workload has one. Of several labels with given values,
// the one with the fewest rules is chosen: if many policies share one label, the other label
// distinguishes them.
func (r *rule) terms(shelf map[term][]*rule) []term {
	if r.by == byName {
		return []term{{byName, label{"", r.name}}}
	}
	var best []term
	fewest := 0
	for _, l := range r.given() {
		var terms []term
		filed := 0
		for _, value := range l.Values {
			if t := (term{byLabels, label{l.Key, value}}); !slices.Contains(terms, t) {
				terms = append(terms, t)
				filed += len(shelf[t])
			}
		}
		if best == nil || filed < fewest {
			best, fewest = terms, filed
		}
	}
	if best == nil {
		return []term{{}}
	}
	return best
}

// lists yields the lists of rules that may match a workload.
func (c *Rules) lists(s *subject, global, preempting bool) iter.Seq[[]*rule] {
	return func(yield func([]*rule) bool) {
		for _, namespace := range [...]string{s.key.Namespace, ""} {
			filed := c.shelves[shelf{resourceType{namespace, s.apiVersion, s.kind}, global, preempting}]
			if len(filed) == 0 {
				continue
			}
			if !yield(filed[term{byName, label{"", s.key.Name}}]) || !yield(filed[term{}]) {
				return
			}
			for key, value := range s.labels {
				if !yield(filed[term{byLabels, label{key, value}}]) {
					return
				}
			}
		}
	}
}

// Package claim determines which propagation policy a workload follows.
package claim

import (
	"iter"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Index tracks which propagation policies select which workloads, and determines which policy a
// workload follows. Policies and workloads are indexed by what selectors require, so that no
// operation has to scan all of either.
type Index struct {
	*Rules
	frozen bool // the rules are shared

	workloads subjects
	// unread yields the workloads that have not been read yet.
	unread iter.Seq[*api.Workload]
}

// New returns an empty index.
func New() *Index {
	return &Index{Rules: &Rules{rules: map[api.Key][]*rule{}, shelves: map[shelf]map[term][]*rule{}}, workloads: newSubjects()}
}

// Freeze returns an immutable snapshot of the rules. The copy is made only at the first change
// after it.
func (c *Index) Freeze() *Rules {
	c.frozen = true
	return c.Rules
}

// Thaw returns an independent index that starts from frozen rules. workloads yields the current
// workloads when it is called.
func (r *Rules) Thaw(workloads iter.Seq[*api.Workload]) *Index {
	c := New()
	c.Rules, c.frozen, c.unread = r, true, workloads
	return c
}

// read reads the workloads of a thawed index. Only changes of policies need them.
func (c *Index) read() {
	if c.unread == nil {
		return
	}
	workloads := c.unread
	c.unread = nil
	for w := range workloads {
		c.PutWorkload(w)
	}
}

// own makes the rules modifiable.
func (c *Index) own() {
	if c.frozen {
		c.Rules, c.frozen = c.clone(), false
	}
}

// PutPolicy adds or replaces a policy. It returns the workloads that may follow another policy now:
// those that it selects or selected.
func (c *Index) PutPolicy(p *api.PropagationPolicy) (affected []api.Key) {
	c.own()
	c.read()
	key, rules := api.KeyOf(p), rulesOf(p)
	affected = c.selected(rules, c.selected(c.rules[key], nil))
	c.put(key, rules)
	return sortedKeys(affected)
}

// RemovePolicy removes a policy. It returns the workloads that it selected.
func (c *Index) RemovePolicy(key api.Key) (affected []api.Key) {
	c.own()
	c.read()
	affected = c.selected(c.rules[key], nil)
	c.remove(key)
	return sortedKeys(affected)
}

// selected appends the workloads that rules match.
func (c *Index) selected(rules []*rule, keys []api.Key) []api.Key {
	for _, r := range rules {
		keys = c.workloads.selected(r, keys)
	}
	return keys
}

func sortedKeys(keys []api.Key) []api.Key {
	slices.SortFunc(keys, api.Key.Compare)
	return slices.Compact(keys)
}

// PutWorkload adds or replaces a workload. Policies do not select workloads with their own
// placement (spec.allocation).
func (c *Index) PutWorkload(w *api.Workload) {
	switch {
	case c.unread != nil:
	case w.Spec.Allocation != nil:
		c.workloads.remove(api.KeyOf(w))
	default:
		c.workloads.put(subjectOf(w))
	}
}

// RemoveWorkload removes a workload.
func (c *Index) RemoveWorkload(key api.Key) { c.workloads.remove(key) }

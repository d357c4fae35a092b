// Package claim determines which propagation policy a workload follows.
package claim

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Index tracks which propagation policies select which workloads, and determines which policy a
// workload follows. Policies and workloads are indexed by what selectors require, so that no
// operation has to scan all of either.
type Index struct {
	*Rules
	frozen bool // the rules are shared
	// unread yields the workloads that have not been read yet.
	unread iter.Seq[*api.Workload]

	subjects map[api.Key]*subject
	byType   map[resourceType]subjectSet // an empty namespace means all
	byName   map[string]subjectSet
	byLabel  map[label]subjectSet
}

// Rules are the selectors of all policies.
type Rules struct {
	rules map[api.Key][]*rule // by policy
	// shelves hold the rules that can match a workload of one type and namespace, by one term that
	// such a workload must have. Each list is in order of precedence.
	shelves map[shelf]map[term][]*rule
}

// rule is one selector of a policy.
type rule struct {
	policy     *api.PropagationPolicy
	path       string // path of the policy
	namespace  string // "" = all
	apiVersion string
	kind       string
	name       string
	labels     []api.SelectorRequirement
	by         precision
	filed      []term // terms under which it is filed
}

// precision is how specific a selector is.
type precision int

const (
	byKind precision = iota
	byLabels
	byName
)

func (p precision) String() string {
	return [...]string{"by kind", "by labels", "by name"}[p]
}

// shelf identifies a group of rules by the workloads and policies that they belong to.
type shelf struct {
	resourceType
	global     bool // rules of global policies
	preempting bool // rules of policies that take over claimed workloads; these are on both shelves
}

type resourceType struct{ namespace, apiVersion, kind string }

type label struct{ key, value string }

// term is what a workload must have for the rules filed under it: a name or a label value. The zero
// term requires nothing.
type term struct {
	by precision
	label
}

// subject is the part of a workload that selectors match.
type subject struct {
	key        api.Key
	apiVersion string
	kind       string
	labels     map[string]string
}

type subjectSet map[*subject]struct{}

// New returns an empty index.
func New() *Index {
	return &Index{
		Rules:    &Rules{rules: map[api.Key][]*rule{}, shelves: map[shelf]map[term][]*rule{}},
		subjects: map[api.Key]*subject{},
		byType:   map[resourceType]subjectSet{},
		byName:   map[string]subjectSet{},
		byLabel:  map[label]subjectSet{},
	}
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

// own makes the rules modifiable. The lists in them are replaced, not modified.
func (c *Index) own() {
	if !c.frozen {
		return
	}
	c.frozen = false
	c.Rules = &Rules{rules: maps.Clone(c.rules), shelves: maps.Clone(c.shelves)}
	for at, filed := range c.shelves {
		c.shelves[at] = maps.Clone(filed)
	}
}

// PutPolicy adds or replaces a policy. It returns the workloads that may follow another policy now:
// those that it selects or selected.
func (c *Index) PutPolicy(p *api.PropagationPolicy) (affected []api.Key) {
	c.own()
	c.read()
	key := api.KeyOf(p)
	affected = c.takeOut(key, nil)
	rules := rulesOf(p)
	for _, r := range rules {
		c.file(r)
		affected = c.selected(r, affected)
	}
	c.rules[key] = rules
	return sortedKeys(affected)
}

// RemovePolicy removes a policy. It returns the workloads that it selected.
func (c *Index) RemovePolicy(key api.Key) (affected []api.Key) {
	c.own()
	c.read()
	return sortedKeys(c.takeOut(key, nil))
}

func (c *Index) takeOut(key api.Key, affected []api.Key) []api.Key {
	for _, r := range c.rules[key] {
		c.unfile(r)
		affected = c.selected(r, affected)
	}
	delete(c.rules, key)
	return affected
}

func sortedKeys(keys []api.Key) []api.Key {
	slices.SortFunc(keys, api.Key.Compare)
	return slices.Compact(keys)
}

// PutWorkload adds or replaces a workload. Policies do not select workloads with their own
// placement (spec.allocation).
func (c *Index) PutWorkload(w *api.Workload) {
	if c.unread != nil {
		return
	}
	if w.Spec.Allocation != nil {
		c.RemoveWorkload(api.KeyOf(w))
		return
	}
	s := subjectOf(w)
	if known, ok := c.subjects[s.key]; ok {
		if known.apiVersion == s.apiVersion && known.kind == s.kind && maps.Equal(known.labels, s.labels) {
			return
		}
		c.RemoveWorkload(s.key)
	}
	c.subjects[s.key] = s
	for _, t := range s.types() {
		add(c.byType, t, s)
	}
	add(c.byName, s.key.Name, s)
	for key, value := range s.labels {
		add(c.byLabel, label{key, value}, s)
	}
}

// RemoveWorkload removes a workload.
func (c *Index) RemoveWorkload(key api.Key) {
	s, ok := c.subjects[key]
	if !ok {
		return
	}
	delete(c.subjects, key)
	for _, t := range s.types() {
		drop(c.byType, t, s)
	}
	drop(c.byName, s.key.Name, s)
	for key, value := range s.labels {
		drop(c.byLabel, label{key, value}, s)
	}
}

// add adds a workload to one set of an index.
func add[K comparable](index map[K]subjectSet, at K, s *subject) {
	if index[at] == nil {
		index[at] = subjectSet{}
	}
	index[at][s] = struct{}{}
}

// drop removes a workload from one set of an index.
func drop[K comparable](index map[K]subjectSet, at K, s *subject) {
	delete(index[at], s)
	if len(index[at]) == 0 {
		delete(index, at)
	}
}

func subjectOf(w *api.Workload) *subject {
	return &subject{key: api.KeyOf(w), apiVersion: w.Spec.APIVersion, kind: w.Spec.Kind, labels: w.Metadata.Labels}
}

// types returns the entries of byType that the workload belongs to.
func (s *subject) types() [2]resourceType {
	return [...]resourceType{{s.key.Namespace, s.apiVersion, s.kind}, {"", s.apiVersion, s.kind}}
}

// rulesOf returns the selectors of a policy. A namespaced policy selects nothing in other
// namespaces.
func rulesOf(p *api.PropagationPolicy) []*rule {
	var rules []*rule
	own, path := p.Metadata.Namespace, api.KeyOf(p).Path()
	for _, s := range p.Spec.ResourceSelectors {
		r := &rule{
			policy: p, path: path, namespace: cmp.Or(s.Namespace, own),
			apiVersion: s.APIVersion, kind: s.Kind, name: s.Name,
		}
		if own != "" && r.namespace != own {
			continue
		}
		switch {
		case s.Name != "":
			r.by = byName
		case s.LabelSelector != nil:
			r.by, r.labels = byLabels, s.LabelSelector.Requirements()
		}
		rules = append(rules, r)
	}
	return rules
}

func (r *rule) global() bool     { return r.policy.Metadata.Namespace == "" }
func (r *rule) preempting() bool { return r.policy.Spec.Preemption == api.PreemptAlways }
func (r *rule) priority() int64  { return r.policy.Spec.Priority }

func (r *rule) matches(s *subject) bool {
	if r.apiVersion != s.apiVersion || r.kind != s.kind || r.namespace != "" && r.namespace != s.key.Namespace {
		return false
	}
	if r.by == byName {
		return r.name == s.key.Name
	}
	for i := range r.labels {
		value, present := s.labels[r.labels[i].Key]
		if !r.labels[i].Matches(value, present) {
			return false
		}
	}
	return true
}

// inOrder compares rules that match one workload: the one that takes precedence comes first.
func inOrder(a, b *rule) int {
	if a.global() != b.global() {
		if a.global() {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(b.priority(), a.priority()),
		cmp.Compare(b.by, a.by),
		strings.Compare(a.path, b.path),
	)
}

func (r *rule) shelf(preempting bool) shelf {
	return shelf{resourceType{r.namespace, r.apiVersion, r.kind}, r.global(), preempting}
}

// file files a rule under the terms of the workloads that it matches.
func (c *Index) file(r *rule) {
	all := r.shelf(false)
	r.filed = r.terms(c.shelves[all])
	c.fileOn(all, r)
	if r.preempting() {
		c.fileOn(r.shelf(true), r)
	}
}

func (c *Index) fileOn(at shelf, r *rule) {
	if c.shelves[at] == nil {
		c.shelves[at] = map[term][]*rule{}
	}
	for _, t := range r.filed {
		rules := c.shelves[at][t]
		i, _ := slices.BinarySearchFunc(rules, r, inOrder)
		c.shelves[at][t] = slices.Insert(slices.Clip(rules), i, r)
	}
}

func (c *Index) unfile(r *rule) {
	c.unfileFrom(r.shelf(false), r)
	if r.preempting() {
		c.unfileFrom(r.shelf(true), r)
	}
}

func (c *Index) unfileFrom(at shelf, r *rule) {
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

// given returns the requirements that give the values of a label.
func (r *rule) given() []api.SelectorRequirement {
	var out []api.SelectorRequirement
	for _, l := range r.labels {
		if l.Operator == api.SelectorIn {
			out = append(out, l)
		}
	}
	return out
}

// selected appends the workloads that a rule matches.
func (c *Index) selected(r *rule, keys []api.Key) []api.Key {
	for _, set := range c.sets(r) {
		for s := range set {
			if r.matches(s) {
				keys = append(keys, s.key)
			}
		}
	}
	return keys
}

// sets returns the smallest available sets that contain every workload that a rule matches.
func (c *Index) sets(r *rule) []subjectSet {
	best := []subjectSet{c.byType[resourceType{r.namespace, r.apiVersion, r.kind}]}
	size := len(best[0])
	if r.by == byName {
		if named := c.byName[r.name]; len(named) < size {
			best = []subjectSet{named}
		}
		return best
	}
	for _, l := range r.given() {
		var sets []subjectSet
		n := 0
		for _, value := range l.Values {
			set := c.byLabel[label{l.Key, value}]
			sets = append(sets, set)
			n += len(set)
		}
		if n < size {
			best, size = sets, n
		}
	}
	return best
}

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

// lists yields the lists of rules that may match a workload.
func (c *Rules) lists(s *subject, global, preempting bool) func(yield func([]*rule) bool) {
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

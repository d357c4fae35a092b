package claim

import (
	"cmp"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

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

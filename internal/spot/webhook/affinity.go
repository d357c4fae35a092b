package webhook

import "strconv"

// preferenceWeight is how much running on a spot node counts for the scheduler,
// beside what the user prefers.
const preferenceWeight = 10

// affinity is what is read of a pod's affinity.
type affinity struct {
	NodeAffinity *nodeAffinity `json:"nodeAffinity"`
}

type nodeAffinity struct {
	Required  *nodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	Preferred []struct{}    `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// nodeSelector takes the nodes that one of its terms takes.
type nodeSelector struct {
	Terms []nodeSelectorTerm `json:"nodeSelectorTerms"`
}

// nodeSelectorTerm takes the nodes that all of its rules take, and none where it has
// no rules.
type nodeSelectorTerm struct {
	Expressions []requirement `json:"matchExpressions,omitempty"`
	Fields      []struct{}    `json:"matchFields,omitempty"`
}

// requirement is a rule about one label of a node.
type requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

type preference struct {
	Weight     int              `json:"weight"`
	Preference nodeSelectorTerm `json:"preference"`
}

// The places in a pod.
const (
	pathAffinity     = "/spec/affinity"
	pathNodeAffinity = pathAffinity + "/nodeAffinity"
	pathRequired     = pathNodeAffinity + "/requiredDuringSchedulingIgnoredDuringExecution"
	pathPreferred    = pathNodeAffinity + "/preferredDuringSchedulingIgnoredDuringExecution"
	pathTolerations  = "/spec/tolerations"
)

// empty reports whether the term takes no node.
func (t *nodeSelectorTerm) empty() bool { return len(t.Expressions) == 0 && len(t.Fields) == 0 }

func (s *podSpec) nodeAffinity() *nodeAffinity {
	if s.Affinity == nil {
		return nil
	}
	return s.Affinity.NodeAffinity
}

// required are the terms of which a node has to fulfil one; ok is false where the pod
// asks for nothing.
func (s *podSpec) required() (terms []nodeSelectorTerm, ok bool) {
	if n := s.nodeAffinity(); n != nil && n.Required != nil {
		return n.Required.Terms, true
	}
	return nil, false
}

// makeNodeAffinity makes sure that there is a node affinity to add to.
func (s *podSpec) makeNodeAffinity(out *patch) {
	switch {
	case s.Affinity == nil:
		out.add(pathAffinity, map[string]any{"nodeAffinity": struct{}{}})
	case s.Affinity.NodeAffinity == nil:
		out.add(pathNodeAffinity, struct{}{})
	}
}

// require adds a rule that every node has to follow. Terms are alternatives, so it
// goes into each of them: a term of its own would be one more way out.
func (s *podSpec) require(out *patch, rule requirement) {
	terms, ok := s.required()
	if !ok {
		s.makeNodeAffinity(out)
		out.add(pathRequired, nodeSelector{Terms: []nodeSelectorTerm{{Expressions: []requirement{rule}}}})
		return
	}
	for i := range terms {
		if terms[i].empty() {
			continue // takes no node, and would take some with a rule in it
		}
		path := pathRequired + "/nodeSelectorTerms/" + strconv.Itoa(i) + "/matchExpressions"
		out.addElement(path, len(terms[i].Expressions) > 0, rule)
	}
}

// prefer adds a rule that nodes should follow, where there are such.
func (s *podSpec) prefer(out *patch, rule requirement) {
	s.makeNodeAffinity(out)
	n := s.nodeAffinity()
	out.addElement(pathPreferred, n != nil && len(n.Preferred) > 0, preference{
		Weight: preferenceWeight, Preference: nodeSelectorTerm{Expressions: []requirement{rule}},
	})
}

package webhook

import "strconv"

// preferenceWeight is the weight of running on a spot node, next to the user's preferences.
const preferenceWeight = 10

// affinity is the part of a pod's affinity that is read.
type affinity struct {
	NodeAffinity *nodeAffinity `json:"nodeAffinity"`
}

type nodeAffinity struct {
	Required  *nodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	Preferred []struct{}    `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// nodeSelector matches the nodes that one of its terms matches.
type nodeSelector struct {
	Terms []nodeSelectorTerm `json:"nodeSelectorTerms"`
}

// nodeSelectorTerm matches the nodes that meet all of its requirements, and none if it is empty.
type nodeSelectorTerm struct {
	Expressions []requirement `json:"matchExpressions,omitempty"`
	Fields      []struct{}    `json:"matchFields,omitempty"`
}

// requirement is a requirement on one label of a node.
type requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

type preference struct {
	Weight     int              `json:"weight"`
	Preference nodeSelectorTerm `json:"preference"`
}

// Paths in a pod.
const (
	pathAffinity     = "/spec/affinity"
	pathNodeAffinity = pathAffinity + "/nodeAffinity"
	pathRequired     = pathNodeAffinity + "/requiredDuringSchedulingIgnoredDuringExecution"
	pathPreferred    = pathNodeAffinity + "/preferredDuringSchedulingIgnoredDuringExecution"
	pathTolerations  = "/spec/tolerations"
)

// empty reports whether the term matches no node.
func (t *nodeSelectorTerm) empty() bool { return len(t.Expressions) == 0 && len(t.Fields) == 0 }

func (s *podSpec) nodeAffinity() *nodeAffinity {
	if s.Affinity == nil {
		return nil
	}
	return s.Affinity.NodeAffinity
}

// required returns the terms of which a node must meet one; ok is false if the pod requires
// nothing.
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

// require adds a requirement for every node. Terms are alternatives, so it is added to each of
// them: a separate term would be a further alternative.
func (s *podSpec) require(out *patch, rule requirement) {
	terms, ok := s.required()
	if !ok {
		s.makeNodeAffinity(out)
		out.add(pathRequired, nodeSelector{Terms: []nodeSelectorTerm{{Expressions: []requirement{rule}}}})
		return
	}
	for i := range terms {
		if terms[i].empty() {
			continue // matches no node, but would match some with a requirement in it
		}
		path := pathRequired + "/nodeSelectorTerms/" + strconv.Itoa(i) + "/matchExpressions"
		out.addElement(path, len(terms[i].Expressions) > 0, rule)
	}
}

// prefer adds a preference for nodes.
func (s *podSpec) prefer(out *patch, rule requirement) {
	s.makeNodeAffinity(out)
	n := s.nodeAffinity()
	out.addElement(pathPreferred, n != nil && len(n.Preferred) > 0, preference{
		Weight: preferenceWeight, Preference: nodeSelectorTerm{Expressions: []requirement{rule}},
	})
}

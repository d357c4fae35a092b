package webhook

import (
	"slices"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// pinned is the one type of nodes that the pod's own rules allow, and Unset where
// they allow both or none.
func (s *podSpec) pinned(label spot.Label) split.NodeType {
	onDemand, spots := s.allows(label)
	switch {
	case onDemand && !spots:
		return split.OnDemand
	case spots && !onDemand:
		return split.Spot
	}
	return split.Unset
}

// maxValues is how many values of a label are tried: more than any pod names, and
// few enough for one that is made to take long.
const maxValues = 32

// allows reports which types of nodes the pod's own rules leave to it, as far as
// they are about the label that tells the types apart.
func (s *podSpec) allows(label spot.Label) (onDemand, spots bool) {
	try := func(value string, has bool) {
		var labels map[string]string
		if has {
			labels = map[string]string{label.Key: value}
		}
		switch t := label.TypeOf(labels); {
		case t == split.OnDemand && !onDemand:
			onDemand = s.takes(label.Key, value, has)
		case t == split.Spot && !spots:
			spots = s.takes(label.Key, value, has)
		}
	}
	try("", false)
	for _, value := range s.values(label) {
		try(value, true)
	}
	return onDemand, spots
}

// values are those that the label may have on a node: the ones that it is known
// for, and those that the pod names.
func (s *podSpec) values(label spot.Label) []string {
	values := slices.Concat(label.Requirement(split.OnDemand).Values, label.Requirement(split.Spot).Values)
	if value, ok := s.NodeSelector[label.Key]; ok {
		values = append(values, value)
	}
	terms, _ := s.required()
	for i := range terms {
		for _, rule := range terms[i].Expressions {
			if rule.Key != label.Key {
				continue
			}
			for _, value := range rule.Values {
				if len(values) < maxValues && !slices.Contains(values, value) {
					values = append(values, value)
				}
			}
		}
	}
	return values
}

// takes reports whether a node whose label has a value may take the pod.
func (s *podSpec) takes(key, value string, has bool) bool {
	if wanted, selects := s.NodeSelector[key]; selects && (!has || wanted != value) {
		return false
	}
	terms, limited := s.required()
	return !limited || slices.ContainsFunc(terms, func(t nodeSelectorTerm) bool { return t.takes(key, value, has) })
}

// takes reports whether a node whose label has a value may be taken by the term: what
// the term says about other labels is taken to be fulfilled.
func (t *nodeSelectorTerm) takes(key, value string, has bool) bool {
	if t.empty() {
		return false
	}
	for i := range t.Expressions {
		if t.Expressions[i].Key == key && !t.Expressions[i].takes(value, has) {
			return false
		}
	}
	return true
}

func (r *requirement) takes(value string, has bool) bool {
	switch r.Operator {
	case "In":
		return has && slices.Contains(r.Values, value)
	case "NotIn":
		return !has || !slices.Contains(r.Values, value)
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	case "Gt", "Lt":
		if !has || len(r.Values) != 1 {
			return false
		}
		have, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return false
		}
		limit, err := strconv.ParseInt(r.Values[0], 10, 64)
		return err == nil && (r.Operator == "Gt" && have > limit || r.Operator == "Lt" && have < limit)
	}
	return true // the API server is going to refuse it
}

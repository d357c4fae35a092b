package webhook

import (
	"slices"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// pinned returns the only node type that the pod's own rules allow, or Unset if they allow both or
// none.
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

// maxValues is the number of label values that are tried: more than real pods name, but few enough
// for one that is crafted to be slow.
const maxValues = 32

// allows reports which node types the pod's own rules allow, as far as they concern the label for
// types.
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

// values returns the values that the label may have on a node: the known ones, and those that the
// pod names.
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

// takes reports whether a node with a label value may run the pod.
func (s *podSpec) takes(key, value string, has bool) bool {
	if wanted, selects := s.NodeSelector[key]; selects && (!has || wanted != value) {
		return false
	}
	terms, limited := s.required()
	return !limited || slices.ContainsFunc(terms, func(t nodeSelectorTerm) bool { return t.takes(key, value, has) })
}

// takes reports whether a node with a label value may match the term, assuming that requirements on
// other labels are met.
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
	return true // the API server will reject it
}

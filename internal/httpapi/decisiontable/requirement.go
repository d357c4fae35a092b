package decisiontable

import "k8s.io/apimachinery/pkg/labels"

// requirement is one of a label selector.
type requirement struct {
	*answers // about the labels that a table knows
	// absent is the answer for objects without the label that the requirement is about.
	absent answer
}

// requirementsOf returns the requirements of a selector, all of which must hold; ok is false if it selects nothing.
func (t *Table) requirementsOf(selector labels.Selector) (all []requirement, ok bool) {
	if selector == nil {
		return nil, true
	}
	requirements, selectable := selector.Requirements()
	for _, r := range requirements {
		about := answersTo(len(t.knownLabels), func(n int) answer {
			if t.knownLabels[n].key != r.Key() {
				return notConcerned
			}
			return answerOf(r.Matches(t.knownLabels[n]))
		})
		all = append(all, requirement{about, answerOf(r.Matches(labels.Set{}))})
	}
	return all, selectable
}

// holds reports whether the requirement holds for an object with these labels.
func (q *requirement) holds(of []uint32) bool {
	for _, number := range of {
		if a := q.of(number); a != notConcerned {
			return a == yes
		}
	}
	return q.absent == yes
}

// Has implements labels.Labels.
func (l label) Has(key string) bool { return key == l.key }

// Get implements labels.Labels.
func (l label) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// Lookup implements labels.Labels.
func (l label) Lookup(key string) (string, bool) {
	if key != l.key {
		return "", false
	}
	return l.value, true
}

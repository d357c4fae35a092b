package decisiontable

import "k8s.io/apimachinery/pkg/labels"

// requirement is one of a label selector. It is asked once for each label.
type requirement struct {
	labels.Requirement
	table *Table
	// absent is what it says of objects without the label.
	absent bool
	known  []opinion // by the numbers of labels
}

// opinion is what a requirement says of objects with a label.
type opinion uint8

const (
	notAsked opinion = iota
	concernsAnother
	rejects
	accepts
)

// requirementsOf returns the requirements of a selector, all of which must hold; ok is false if it selects nothing.
func (t *Table) requirementsOf(selector labels.Selector) (all []requirement, ok bool) {
	if selector == nil {
		return nil, true
	}
	requirements, selectable := selector.Requirements()
	for _, r := range requirements {
		all = append(all, requirement{Requirement: r, table: t, absent: r.Matches(labels.Set{}), known: make([]opinion, len(t.knownLabels))})
	}
	return all, selectable
}

// holds reports whether the requirement holds for an object with these labels.
func (q *requirement) holds(of []uint32) bool {
	for _, number := range of {
		if q.known[number] == notAsked {
			q.known[number] = q.opinion(q.table.knownLabels[number])
		}
		switch q.known[number] {
		case accepts:
			return true
		case rejects:
			return false
		default: // the label is another one
		}
	}
	return q.absent
}

func (q *requirement) opinion(l label) opinion {
	switch {
	case l.key != q.Key():
		return concernsAnother
	case q.Matches(l):
		return accepts
	}
	return rejects
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

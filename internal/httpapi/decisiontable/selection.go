package decisiontable

import (
	"bytes"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// Query says which decisions to select. Fields that are empty select all.
type Query struct {
	Kinds     []api.Kind
	Namespace string
	// Search is part of namespace/name.
	Search string
	// Cluster is one that was chosen, or that replicas are leaving.
	Cluster   string
	Satisfied api.ConditionStatus
	Labels    labels.Selector
	// Readable reports whether objects of a kind in a namespace may be read.
	Readable func(kind api.Kind, namespace string) bool
}

// Selection is the decisions of a table that a query selects.
type Selection struct {
	table *Table
	rows  []int32 // their numbers in the table, ascending
	// Unsatisfied is the number of decisions that are not satisfied.
	Unsatisfied int
}

// Total returns the number of decisions.
func (s *Selection) Total() int { return len(s.rows) }

// Select selects decisions.
func (t *Table) Select(q Query) *Selection {
	s := &Selection{table: t}
	namespace := slices.Index(t.namespaces, q.Namespace)
	if q.Namespace != "" && namespace < 0 {
		return s
	}
	hasKind := make([]bool, len(api.HistoryKinds))
	for i, kind := range api.HistoryKinds {
		hasKind[i] = len(q.Kinds) == 0 || slices.Contains(q.Kinds, kind)
	}
	requirements, selectable := t.requirementsOf(q.Labels)
	if !selectable {
		return s
	}
	isOn := answersTo(len(t.clusters), func(n int) answer {
		return answerOf(slices.Contains(t.clusters[n].chosen, q.Cluster) || slices.Contains(t.clusters[n].leaving, q.Cluster))
	})
	kinds := len(api.HistoryKinds)
	readable := answersTo(kinds*len(t.namespaces), func(n int) answer { return answerOf(q.Readable(api.HistoryKinds[n%kinds], t.namespaces[n/kinds])) })
	search := []byte(q.Search)
	isDamaged := len(t.snapshot.AllDamaged()) > 0
	for i := range t.rows {
		r := &t.rows[i]
		switch {
		case !hasKind[r.kind], q.Namespace != "" && int(r.namespace) != namespace:
		case q.Satisfied != "" && r.satisfied != satisfactionOf(q.Satisfied):
		case q.Cluster != "" && isOn.of(r.clusters) != yes, !bytes.Contains(t.paths[r.path.from:r.path.to], search):
		case !t.hold(requirements, r):
		case readable.of(r.namespace*uint32(kinds)+r.kind) != yes:
		case isDamaged && t.snapshot.Damaged(r.entry.Key()) != nil:
		default:
			s.rows = append(s.rows, int32(i))
			if r.satisfied == unsatisfied {
				s.Unsatisfied++
			}
		}
	}
	return s
}

// hold reports whether requirements hold for a row.
func (t *Table) hold(requirements []requirement, r *row) bool {
	for i := range requirements {
		if !requirements[i].holds(t.labels[r.labels.from:r.labels.to]) {
			return false
		}
	}
	return true
}

// Part returns the decisions [from:to] in an order: name, scheduled_at, clusters or satisfied, with '-' in front the
// reverse. Equal ones are by namespace, name and kind.
func (s *Selection) Part(order string, from, to int) []*fleet.Entry {
	rows := s.table.rows
	part := make([]*fleet.Entry, to-from)
	for i, at := range s.sorted(order, from, to) {
		part[i] = rows[at].entry
	}
	return part
}

// Package decisiontable filters, sorts and counts the decisions of placements and workloads, for tables that people scroll.
//
// What that needs of each decision is kept in rows beside each other: read from the objects, it would be several cache misses for
// each of them. What many decisions have in common, such as clusters and labels, is kept once, and asked once.
package decisiontable

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// kept is how long a table is kept that nobody asks for: it keeps objects in memory that have been replaced since.
const kept = 5 * time.Minute

// Index has the table of the newest snapshot of a fleet. It is safe for concurrent use.
type Index struct {
	fleet *fleet.Fleet

	mu      sync.Mutex
	last    *Table // nil: it has to be made anew
	changes *fleet.Subscription
	// replaced is the number of rows of earlier tables that last has no longer.
	replaced int
	forget   *time.Timer

	namespaces, clusters numbers[string]
	labels               numbers[label]
}

// New returns an index of the decisions of a fleet.
func New(f *fleet.Fleet) *Index { return &Index{fleet: f} }

// Table is what the decisions of a snapshot are filtered, sorted and counted by. It is immutable: what later tables add to
// its slices is behind their ends.
type Table struct {
	snapshot *fleet.Snapshot
	rows     []row // by namespace, name and kind
	// What the spans in the rows are of.
	paths  []byte   // namespace/name
	labels []uint32 // numbers of knownLabels
	// What the numbers in the rows stand for.
	namespaces  []string
	clusters    []where
	knownLabels []label
}

// row is one decision.
type row struct {
	entry        *fleet.Entry
	scheduledAt  int64 // nanoseconds since 1970; 0: never
	path, labels span
	// Numbers of Table.namespaces, Table.clusters and api.HistoryKinds.
	namespace, clusters, kind uint32
	satisfied                 satisfaction
}

// span is a part of a slice.
type span struct{ from, to uint32 }

// label is a label of an object.
type label struct{ key, value string }

// where is where decisions are.
type where struct {
	chosen []string
	// leaving are clusters that replicas still run on.
	leaving []string
}

// satisfaction is the status of the condition that says whether a decision is satisfied, in the order in which they are sorted.
type satisfaction uint8

const (
	unsatisfied satisfaction = iota
	undecided
	satisfied
)

func satisfactionOf(status api.ConditionStatus) satisfaction {
	switch status {
	case api.ConditionTrue:
		return satisfied
	case api.ConditionFalse:
		return unsatisfied
	case api.ConditionUnknown:
	}
	return undecided
}

// Table returns the table of the newest snapshot.
func (x *Index) Table() *Table {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.last != nil {
		x.update()
	}
	if x.last == nil || x.replaced > len(x.last.rows)+100 {
		x.rebuild()
	}
	if x.forget == nil {
		x.forget = time.AfterFunc(kept, x.drop)
	}
	x.forget.Reset(kept)
	return x.last
}

func (x *Index) drop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last, x.changes = nil, nil
}

// rebuild makes the table anew.
func (x *Index) rebuild() {
	x.namespaces, x.clusters, x.labels = numbers[string]{}, numbers[string]{}, numbers[label]{}
	x.replaced = 0
	x.changes = x.fleet.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	t := &Table{snapshot: x.changes.Snapshot()}
	var entries []*fleet.Entry
	for _, kind := range api.HistoryKinds {
		of := make([]*fleet.Entry, 0, t.snapshot.Len(kind))
		entries = merged(entries, slices.AppendSeq(of, t.snapshot.All(kind, "")))
	}
	t.rows = make([]row, len(entries))
	for i, entry := range entries {
		t.rows[i] = x.row(t, entry)
	}
	x.last = t
}

// update makes the table of the newest snapshot from the last one.
func (x *Index) update() {
	changed := map[api.Key]*fleet.Entry{} // nil: deleted
	for {
		batch, more, _ := x.changes.Pending() // an unbounded subscription has no errors
		if !more {
			break
		}
		for _, change := range batch.Changes {
			if slices.Contains(api.HistoryKinds, change.Key.Kind) {
				changed[change.Key] = change.New
			}
		}
	}
	next := *x.last
	next.snapshot = x.changes.Snapshot()
	if len(changed) > 0 {
		keys := make([]api.Key, 0, len(changed))
		for key := range changed {
			keys = append(keys, key)
		}
		slices.SortFunc(keys, compare)
		next.rows = make([]row, 0, len(x.last.rows)+len(keys))
		rest := x.last.rows
		for _, key := range keys {
			at, known := slices.BinarySearchFunc(rest, key, func(r row, key api.Key) int { return compare(r.entry.Key(), key) })
			next.rows = append(next.rows, rest[:at]...)
			if rest = rest[at:]; known {
				rest = rest[1:]
				x.replaced++
			}
			if entry := changed[key]; entry != nil {
				next.rows = append(next.rows, x.row(&next, entry))
			}
		}
		next.rows = append(next.rows, rest...)
	}
	x.last = &next
}

// row makes the row of an object, and adds to a table what it refers to.
func (x *Index) row(t *Table, entry *fleet.Entry) row {
	key := entry.Key()
	at, scheduledAt := decisionOf(entry.Object)
	r := row{
		entry: entry, path: span{from: uint32(len(t.paths))}, labels: span{from: uint32(len(t.labels))},
		kind: uint32(slices.Index(api.HistoryKinds, key.Kind)), satisfied: undecided,
	}
	t.paths = append(append(append(t.paths, key.Namespace...), '/'), key.Name...)
	r.path.to = uint32(len(t.paths))
	for name, value := range entry.Object.Meta().Labels {
		number, isNew := x.labels.of(label{name, value})
		if isNew {
			t.knownLabels = append(t.knownLabels, label{name, value})
		}
		t.labels = append(t.labels, number)
	}
	r.labels.to = uint32(len(t.labels))
	if scheduledAt != nil {
		r.scheduledAt = scheduledAt.UnixNano()
	}
	if c := api.Satisfaction(entry.Object); c != nil {
		r.satisfied = satisfactionOf(c.Status)
	}
	var isNew bool
	if r.namespace, isNew = x.namespaces.of(key.Namespace); isNew {
		t.namespaces = append(t.namespaces, key.Namespace)
	}
	names := strings.Join(at.chosen, ",")
	if len(at.leaving) > 0 {
		names += ";" + strings.Join(at.leaving, ",")
	}
	if r.clusters, isNew = x.clusters.of(names); isNew {
		t.clusters = append(t.clusters, at)
	}
	return r
}

// decisionOf returns where a decision is, and when it last changed; nil: it has never been made.
func decisionOf(object api.Object) (at where, scheduledAt *time.Time) {
	switch o := object.(type) {
	case *api.Placement:
		return where{chosen: o.Status.Clusters}, o.Status.ScheduledAt
	case *api.Workload:
		for _, eviction := range o.Status.Evictions {
			at.leaving = append(at.leaving, eviction.Cluster)
		}
		at.chosen = o.Status.Names()
		return at, o.Status.ScheduledAt
	}
	return at, nil
}

// Revision returns the store revision that the table shows.
func (t *Table) Revision() int64 { return t.snapshot.Revision() }

// numbers gives the same number to equal values, from 0 on.
type numbers[T comparable] map[T]uint32

func (n numbers[T]) of(value T) (number uint32, isNew bool) {
	if number, ok := n[value]; ok {
		return number, false
	}
	number = uint32(len(n))
	n[value] = number
	return number, true
}

// compare orders objects by namespace, name and kind.
func compare(a, b api.Key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(string(a.Kind), string(b.Kind)))
}

// merged merges objects of two kinds, each in that order.
func merged(a, b []*fleet.Entry) []*fleet.Entry {
	if len(a) == 0 {
		return b
	}
	all := make([]*fleet.Entry, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0].Key(), b[0].Key()) < 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

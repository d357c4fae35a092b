package columns

import (
	"maps"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ValueIndex finds rows by the values of keys: labels or claims.
type ValueIndex struct {
	fleet *Fleet
	table *keyTable // nil in an empty fleet
}

// KeySets are the rows by their value for one key. Immutable.
type KeySets struct {
	Rows   *RowSet            // rows that have the key
	Values map[string]*RowSet // by value
}

// noRows are the sets of a key that no cluster has.
var noRows KeySets

// Of returns the rows by their value for a key.
func (x ValueIndex) Of(key string) *KeySets {
	if x.table == nil {
		return &noRows
	}
	return x.table.of(key, x.fleet.rows)
}

// SelectInto removes the rows that do not meet every requirement from b. Rows without the label are
// treated as in api.SelectorRequirement. It overwrites scratch.
func (x ValueIndex) SelectInto(requirements []api.SelectorRequirement, b, scratch Bitmap) {
	for i := range requirements {
		r := &requirements[i]
		sets := x.Of(r.Key)
		switch r.Operator {
		case api.SelectorIn:
			if len(r.Values) == 1 {
				sets.Values[r.Values[0]].AndInto(b, scratch)
				continue
			}
			clear(scratch)
			for _, value := range r.Values {
				sets.Values[value].OrInto(scratch)
			}
			b.And(scratch)
		case api.SelectorNotIn:
			for _, value := range r.Values {
				sets.Values[value].AndNotInto(b)
			}
		case api.SelectorExists:
			sets.Rows.AndInto(b, scratch)
		case api.SelectorDoesNotExist:
			sets.Rows.AndNotInto(b)
		default:
			clear(b)
		}
	}
}

// keyTable holds the sets of the keys that were asked for. Most keys of clusters are never asked
// for, so the sets of a key are built from the rows on first use; later versions of the fleet apply
// the changes. Versions whose rows have the same values share a table.
type keyTable struct {
	mu   sync.Mutex // guards the fields below, to which entries are only ever added
	sets map[string]*KeySets
	// all says that sets contains every key of every cluster. It is set once somebody asks for a
	// key that no cluster has, so that the rows are not scanned for each such key.
	all bool

	valuesOf func(c *api.Cluster) map[string]string
}

func newKeyTable(valuesOf func(c *api.Cluster) map[string]string) *keyTable {
	return &keyTable{sets: map[string]*KeySets{}, valuesOf: valuesOf}
}

func labelsOf(c *api.Cluster) map[string]string { return c.Metadata.Labels }

func claimsOf(c *api.Cluster) map[string]string { return c.Spec.Claims }

func (t *keyTable) of(key string, rows []*Row) *KeySets {
	t.mu.Lock()
	defer t.mu.Unlock()
	if sets := t.sets[key]; sets != nil {
		return sets
	}
	if !t.all {
		if sets := t.read(key, rows); sets.Rows.Len() > 0 {
			t.sets[key] = sets
			return sets
		}
		t.readAll(rows)
	}
	return &noRows
}

// read builds the sets of a key. They have version 0, so no version modifies them in place.
func (t *keyTable) read(key string, rows []*Row) *KeySets {
	w, k := writer{slots: len(rows)}, keyEdit{}
	for at, r := range rows {
		if r == nil {
			continue
		}
		if value, ok := t.valuesOf(r.cluster)[key]; ok {
			k.put(&w, value, at)
		}
	}
	return k.done()
}

// readAll builds the sets of every key.
func (t *keyTable) readAll(rows []*Row) {
	w, edit := writer{slots: len(rows)}, valueEdit{begun: true, all: true}
	for at, r := range rows {
		if r != nil {
			edit.replace(&w, at, nil, t.valuesOf(r.cluster))
		}
	}
	for key, k := range edit.keys {
		t.sets[key] = k.done()
	}
	t.all = true
}

// valueEdit is a keyTable that is being modified.
type valueEdit struct {
	table *keyTable
	begun bool
	sets  map[string]*KeySets // sets that the table had when the edit began
	all   bool
	keys  map[string]*keyEdit // modified keys
}

// begin records that the table will differ from that of the previous version.
func (e *valueEdit) begin() {
	if e.begun {
		return
	}
	e.begun = true
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	e.sets, e.all = maps.Clone(e.table.sets), e.table.all
}

// keyEdit holds the sets of one key that are being modified.
type keyEdit struct {
	rows   *RowSet
	values setTable[string]
}

func (k *keyEdit) put(w *writer, value string, at int) {
	k.values.put(w, value, at)
	k.rows = w.writable(k.rows)
	w.put(k.rows, at)
}

func (k *keyEdit) done() *KeySets { return &KeySets{k.rows, k.values.sets} }

// of returns the sets of a key for modification, or nil if nobody has asked for the key.
func (e *valueEdit) of(key string) *keyEdit {
	if k := e.keys[key]; k != nil {
		return k
	}
	sets := e.sets[key]
	if sets == nil {
		if !e.all {
			return nil
		}
		sets = &noRows
	}
	if e.keys == nil {
		e.keys = map[string]*keyEdit{}
	}
	k := &keyEdit{sets.Rows, setTable[string]{sets: sets.Values}}
	e.keys[key] = k
	return k
}

// replace replaces the values of a row, and reports whether they changed.
func (e *valueEdit) replace(w *writer, at int, was, is map[string]string) (changed bool) {
	if maps.Equal(was, is) {
		return false
	}
	e.begin()
	if len(e.sets) == 0 && !e.all {
		return true
	}
	for key, value := range was {
		now, kept := is[key]
		if kept && now == value {
			continue
		}
		if k := e.of(key); k != nil {
			k.values.take(w, value, at)
			if !kept {
				k.rows = w.writable(k.rows)
				w.take(k.rows, at)
			}
		}
	}
	for key, value := range is {
		if before, known := was[key]; known && before == value {
			continue
		}
		if k := e.of(key); k != nil {
			k.put(w, value, at)
		}
	}
	return true
}

// done returns the finished table.
func (e *valueEdit) done() *keyTable {
	if !e.begun {
		return e.table
	}
	sets := e.sets
	if sets == nil {
		sets = map[string]*KeySets{}
	}
	for key, k := range e.keys {
		if k.rows.Len() == 0 {
			delete(sets, key)
		} else {
			sets[key] = k.done()
		}
	}
	return &keyTable{valuesOf: e.table.valuesOf, sets: sets, all: e.all}
}

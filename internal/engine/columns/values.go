package columns

import (
	"maps"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ValueIndex finds rows by the values that clusters have for keys: their labels,
// or their claims.
type ValueIndex struct {
	fleet *Fleet
	table *keyTable // nil in an empty fleet
}

// KeySets are the rows by what they have for one key. Immutable.
type KeySets struct {
	Rows   *RowSet            // that have the key at all
	Values map[string]*RowSet // by value
}

// noRows are the sets of a key that no cluster has.
var noRows KeySets

// Of are the rows by what they have for a key.
func (x ValueIndex) Of(key string) *KeySets {
	if x.table == nil {
		return &noRows
	}
	return x.table.of(key, x.fleet.rows)
}

// SelectInto keeps in b only the rows that meet every requirement, and those
// without a label count as api.SelectorRequirement says; scratch is overwritten.
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

// keyTable has the sets of the keys that were asked for. Nobody ever asks for most
// of the keys that clusters have, so those of a key are made from the rows at its
// first use; later versions of the fleet follow the changes. Versions in which the
// same rows have the same values share a table.
type keyTable struct {
	mu   sync.Mutex // guards what follows, of which only more is ever added
	sets map[string]*KeySets
	// all says that sets has every key that any cluster has. That is so once somebody
	// has asked for a key that none has, so that this need not be found out each time.
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

// read makes the sets of a key. They are of version 0, and thus nobody's to write.
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

// readAll makes the sets of every key.
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

// valueEdit is a keyTable that is being written.
type valueEdit struct {
	table *keyTable
	begun bool
	sets  map[string]*KeySets // those that the table had then
	all   bool
	keys  map[string]*keyEdit // those that were written
}

// begin notes that a table is needed that is not the one of the version before.
func (e *valueEdit) begin() {
	if e.begun {
		return
	}
	e.begun = true
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	e.sets, e.all = maps.Clone(e.table.sets), e.table.all
}

// keyEdit are the sets of one key that are being written.
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

// of are the sets of a key to be written; nil where nobody has asked for it.
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

// replace gives a row other values than before, and reports whether it has any.
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

// done is the table as it was written.
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

package columns

import (
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ValueIndex finds rows by the values that clusters have for keys: their labels,
// or their claims. Immutable.
type ValueIndex struct {
	Values map[string]map[string]*RowSet // by key and value
	Keys   map[string]*RowSet            // rows that have the key at all
}

// SelectInto keeps in b only the rows that meet every requirement, and those
// without a label count as api.SelectorRequirement says; scratch is overwritten.
func (x *ValueIndex) SelectInto(requirements []api.SelectorRequirement, b, scratch Bitmap) {
	for i := range requirements {
		r := &requirements[i]
		values := x.Values[r.Key]
		switch r.Operator {
		case api.SelectorIn:
			if len(r.Values) == 1 {
				values[r.Values[0]].AndInto(b, scratch)
				continue
			}
			clear(scratch)
			for _, value := range r.Values {
				values[value].OrInto(scratch)
			}
			b.And(scratch)
		case api.SelectorNotIn:
			for _, value := range r.Values {
				values[value].AndNotInto(b)
			}
		case api.SelectorExists:
			x.Keys[r.Key].AndInto(b, scratch)
		case api.SelectorDoesNotExist:
			x.Keys[r.Key].AndNotInto(b)
		default:
			clear(b)
		}
	}
}

// valueEdit is a ValueIndex that is being written.
type valueEdit struct {
	index *ValueIndex
	keys  map[string]*keyEdit // those that were written
}

// keyEdit are the sets of one key.
type keyEdit struct {
	rows   *RowSet // that have the key at all
	values setTable[string]
}

func (e *valueEdit) of(w *writer, key string) *keyEdit {
	k, ok := e.keys[key]
	if !ok {
		if e.keys == nil {
			e.keys = map[string]*keyEdit{}
		}
		k = &keyEdit{w.writable(e.index.Keys[key]), setTable[string]{sets: e.index.Values[key]}}
		e.keys[key] = k
	}
	return k
}

// replace gives a row other values than before, and reports whether it has any.
func (e *valueEdit) replace(w *writer, at int, was, is map[string]string) (changed bool) {
	for key, value := range was {
		now, kept := is[key]
		if kept && now == value {
			continue
		}
		k := e.of(w, key)
		k.values.take(w, value, at)
		if !kept {
			w.take(k.rows, at)
		}
		changed = true
	}
	for key, value := range is {
		known := false
		if len(was) > 0 {
			var before string
			if before, known = was[key]; known && before == value {
				continue
			}
		}
		k := e.of(w, key)
		k.values.put(w, value, at)
		if !known {
			w.put(k.rows, at)
		}
		changed = true
	}
	return changed
}

// done is the index as it was written.
func (e *valueEdit) done() ValueIndex {
	if len(e.keys) == 0 {
		return *e.index
	}
	values, keys := maps.Clone(e.index.Values), maps.Clone(e.index.Keys)
	if values == nil {
		values, keys = map[string]map[string]*RowSet{}, map[string]*RowSet{}
	}
	for key, k := range e.keys {
		if k.rows.n == 0 {
			delete(values, key)
			delete(keys, key)
		} else {
			values[key], keys[key] = k.values.sets, k.rows
		}
	}
	return ValueIndex{values, keys}
}

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

// valueEdit collects changes of a ValueIndex, by key.
type valueEdit map[string]*keyEdit

// keyEdit collects changes to the sets of one key.
type keyEdit struct {
	key    rowSetEdit // of the rows that have the key at all
	values map[string]*rowSetEdit
}

func (e valueEdit) of(key string) *keyEdit {
	k, ok := e[key]
	if !ok {
		k = &keyEdit{values: map[string]*rowSetEdit{}}
		e[key] = k
	}
	return k
}

// replace notes that a row has other values than before, and reports whether it
// has.
func (e valueEdit) replace(at int, was, is map[string]string) (changed bool) {
	for key, value := range was {
		now, kept := is[key]
		if kept && now == value {
			continue
		}
		k := e.of(key)
		editOf(k.values, value).take(at)
		if !kept {
			k.key.take(at)
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
		k := e.of(key)
		editOf(k.values, value).put(at)
		if !known {
			k.key.put(at)
		}
		changed = true
	}
	return changed
}

// with returns the index after changes.
func (x *ValueIndex) with(edit valueEdit, slots int) ValueIndex {
	if len(edit) == 0 {
		return *x
	}
	values, keys := maps.Clone(x.Values), maps.Clone(x.Keys)
	if values == nil {
		values, keys = map[string]map[string]*RowSet{}, map[string]*RowSet{}
	}
	for key, e := range edit {
		values[key] = applyEdits(values[key], e.values, slots)
		if len(values[key]) == 0 {
			delete(values, key)
			delete(keys, key)
			continue
		}
		keys[key] = e.key.apply(keys[key], slots)
	}
	return ValueIndex{values, keys}
}

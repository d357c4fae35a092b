package engine

import (
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// valueIndex finds rows by the values that clusters have for keys: their labels,
// or their claims. Immutable.
type valueIndex struct {
	values map[string]map[string]*rowSet // by key and value
	keys   map[string]*rowSet            // rows that have the key at all
}

// selectInto keeps in b only the rows that meet every requirement, and those
// without a label count as api.SelectorRequirement says; scratch is overwritten.
func (x *valueIndex) selectInto(requirements []api.SelectorRequirement, b, scratch Bitmap) {
	for i := range requirements {
		r := &requirements[i]
		values := x.values[r.Key]
		switch r.Operator {
		case api.SelectorIn:
			if len(r.Values) == 1 {
				values[r.Values[0]].andInto(b, scratch)
				continue
			}
			clear(scratch)
			for _, value := range r.Values {
				values[value].orInto(scratch)
			}
			b.and(scratch)
		case api.SelectorNotIn:
			for _, value := range r.Values {
				values[value].andNotInto(b)
			}
		case api.SelectorExists:
			x.keys[r.Key].andInto(b, scratch)
		case api.SelectorDoesNotExist:
			x.keys[r.Key].andNotInto(b)
		default:
			clear(b)
		}
	}
}

// valueEdit collects changes of a valueIndex, by key.
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
func (x *valueIndex) with(edit valueEdit, slots int) valueIndex {
	if len(edit) == 0 {
		return *x
	}
	values, keys := maps.Clone(x.values), maps.Clone(x.keys)
	if values == nil {
		values, keys = map[string]map[string]*rowSet{}, map[string]*rowSet{}
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
	return valueIndex{values, keys}
}

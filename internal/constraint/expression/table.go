package expression

import (
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// stringMap is a map of strings, such as labels, as a CEL value. It needs no conversion. Its keys
// are sorted, so that an expression that iterates over it has the same result on every server.
type stringMap map[string]string

// Find implements traits.Mapper.
func (m stringMap) Find(key ref.Val) (ref.Val, bool) {
	k, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	v, ok := m[string(k)]
	if !ok {
		return nil, false
	}
	return types.String(v), true
}

// Get implements traits.Indexer.
func (m stringMap) Get(key ref.Val) ref.Val { return get(m, key) }

// Contains implements traits.Container.
func (m stringMap) Contains(key ref.Val) ref.Val { return contains(m, key) }

// Size implements traits.Sizer.
func (m stringMap) Size() ref.Val { return types.Int(len(m)) }

// Iterator implements traits.Iterable.
func (m stringMap) Iterator() traits.Iterator { return iterate(slices.Sorted(maps.Keys(m))) }

// ConvertToNative implements ref.Val.
func (m stringMap) ConvertToNative(t reflect.Type) (any, error) {
	return types.NewStringStringMap(types.DefaultTypeAdapter, m).ConvertToNative(t)
}

// ConvertToType implements ref.Val.
func (m stringMap) ConvertToType(t ref.Type) ref.Val { return convert(m, t) }

// Equal implements ref.Val.
func (m stringMap) Equal(other ref.Val) ref.Val { return equal(m, other) }

// Type implements ref.Val.
func (m stringMap) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (m stringMap) Value() any { return map[string]string(m) }

// table is a map of strings to any values. Its keys are sorted too.
type table struct {
	keys   []string
	values []ref.Val
}

func newTable(entries map[string]ref.Val) *table {
	t := &table{keys: slices.Sorted(maps.Keys(entries)), values: make([]ref.Val, 0, len(entries))}
	for _, k := range t.keys {
		t.values = append(t.values, entries[k])
	}
	return t
}

// Find implements traits.Mapper.
func (t *table) Find(key ref.Val) (ref.Val, bool) {
	k, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	i, found := slices.BinarySearch(t.keys, string(k))
	if !found {
		return nil, false
	}
	return t.values[i], true
}

// Get implements traits.Indexer.
func (t *table) Get(key ref.Val) ref.Val { return get(t, key) }

// Contains implements traits.Container.
func (t *table) Contains(key ref.Val) ref.Val { return contains(t, key) }

// Size implements traits.Sizer.
func (t *table) Size() ref.Val { return types.Int(len(t.keys)) }

// Iterator implements traits.Iterable.
func (t *table) Iterator() traits.Iterator { return iterate(t.keys) }

// ConvertToNative implements ref.Val.
func (t *table) ConvertToNative(typ reflect.Type) (any, error) {
	return types.NewRefValMap(types.DefaultTypeAdapter, t.native()).ConvertToNative(typ)
}

// ConvertToType implements ref.Val.
func (t *table) ConvertToType(typ ref.Type) ref.Val { return convert(t, typ) }

// Equal implements ref.Val.
func (t *table) Equal(other ref.Val) ref.Val { return equal(t, other) }

// Type implements ref.Val.
func (t *table) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (t *table) Value() any { return t.native() }

func (t *table) native() map[ref.Val]ref.Val {
	m := make(map[ref.Val]ref.Val, len(t.keys))
	for i, k := range t.keys {
		m[types.String(k)] = t.values[i]
	}
	return m
}

// The following functions are shared by all map types in this package.

func get(m traits.Mapper, key ref.Val) ref.Val {
	v, ok := m.Find(key)
	if !ok {
		return types.ValOrErr(key, "no such key: %v", key)
	}
	return v
}

func contains(m traits.Mapper, key ref.Val) ref.Val {
	_, ok := m.Find(key)
	return types.Bool(ok)
}

func convert(m ref.Val, t ref.Type) ref.Val {
	switch t {
	case types.TypeType:
		if own, ok := m.Type().(ref.Val); ok {
			return own
		}
	case types.MapType:
		return m
	}
	return types.NewErr("type conversion error from '%s' to '%s'", m.Type(), t)
}

func equal(m traits.Mapper, other ref.Val) ref.Val {
	o, ok := other.(traits.Mapper)
	if !ok || m.Size() != o.Size() {
		return types.False
	}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		theirs, found := o.Find(key)
		if !found || types.Equal(m.Get(key), theirs) != types.True {
			return types.False
		}
	}
	return types.True
}

func iterate(keys []string) traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, keys).Iterator()
}

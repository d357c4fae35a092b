package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Variant is a document that differs from another in one thing.
type Variant struct {
	// Path is where it differs, and Change is how.
	Path, Change string
	// Zero says that only the zero value of its type is missing.
	Zero     bool
	Document json.RawMessage
}

// The changes of a variant.
const (
	// Other means another value.
	Other = "another value"
	// Less means one entry of a list or map less.
	Less = "without it"
	// More means one entry more.
	More = "one more"
	// Reordered means that two neighbors in a list are swapped.
	Reordered = "another order"
)

// extra is the additional entry of a document.
const extra = "nobody"

// Variants returns all documents that differ from one in one thing.
func Variants(document json.RawMessage) ([]Variant, error) {
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		return nil, fmt.Errorf("read a document: %w", err)
	}
	var out []Variant
	var err error
	vary("", value, func(path, change string, was, changed any) {
		raw, failed := json.Marshal(changed)
		if failed != nil {
			err = failed
		}
		out = append(out, Variant{path, change, change == Less && zero(was), raw})
	})
	return out, err
}

// vary calls yield with every variant of a value.
func vary(path string, value any, yield func(path, change string, was, changed any)) {
	switch v := value.(type) {
	case nil:
		yield(path, Other, value, extra)
	case bool:
		yield(path, Other, value, !v)
	case float64:
		yield(path, Other, value, v+1)
	case string:
		yield(path, Other, value, v+"~")
	case []any:
		for i := range v {
			within := func(path, change string, was, changed any) {
				other := slices.Clone(v)
				other[i] = changed
				yield(path, change, was, other)
			}
			at := fmt.Sprintf("%s/%d", path, i)
			vary(at, v[i], within)
			yield(at, Less, true, slices.Delete(slices.Clone(v), i, i+1))
			if i > 0 && !equal(v[i-1], v[i]) {
				other := slices.Clone(v)
				other[i-1], other[i] = v[i], v[i-1]
				yield(at, Reordered, nil, other)
			}
		}
		yield(path, More, nil, append(slices.Clone(v), like(v)))
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			with := func(changed any) map[string]any {
				other := maps.Clone(v)
				other[key] = changed
				return other
			}
			at := path + "/" + key
			vary(at, v[key], func(path, change string, was, changed any) { yield(path, change, was, with(changed)) })
			other := maps.Clone(v)
			delete(other, key)
			yield(at, Less, v[key], other)
		}
		other := maps.Clone(v)
		other[extra] = like(slices.Collect(maps.Values(v)))
		yield(path, More, nil, other)
	}
}

// like returns a new entry of the same kind as the existing ones.
func like(entries []any) any {
	if len(entries) == 0 {
		return extra
	}
	switch v := entries[0].(type) {
	case string:
		return extra
	case float64:
		return v + 1
	default:
		return v
	}
}

func equal(a, b any) bool {
	one, failed := json.Marshal(a)
	other, err := json.Marshal(b)
	return failed == nil && err == nil && string(one) == string(other)
}

func zero(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == nil || value == false || value == 0.0 || value == ""
}

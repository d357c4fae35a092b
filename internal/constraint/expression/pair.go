package expression

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// pair is an object with a name and a value: a claim, or a score.
type pair struct {
	name string
	typ  ref.Type
	// text is the value of a claim, number that of a score.
	text   string
	number int64
	score  bool
}

func pairList(pairs []pair) ref.Val {
	values := make([]ref.Val, len(pairs))
	for i := range pairs {
		values[i] = &pairs[i]
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

func (p *pair) value() ref.Val {
	if p.score {
		return types.Int(p.number)
	}
	return types.String(p.text)
}

// Find implements traits.Mapper.
func (p *pair) Find(key ref.Val) (ref.Val, bool) {
	switch key {
	case types.String("name"):
		return types.String(p.name), true
	case types.String("value"):
		return p.value(), true
	}
	return nil, false
}

// Get implements traits.Indexer.
func (p *pair) Get(key ref.Val) ref.Val { return get(p, key) }

// Contains implements traits.Container.
func (p *pair) Contains(key ref.Val) ref.Val { return contains(p, key) }

// Size implements traits.Sizer.
func (p *pair) Size() ref.Val { return types.Int(2) }

// Iterator implements traits.Iterable.
func (p *pair) Iterator() traits.Iterator { return iterate([]string{"name", "value"}) }

// ConvertToNative implements ref.Val.
func (p *pair) ConvertToNative(t reflect.Type) (any, error) {
	return newTable(map[string]ref.Val{"name": types.String(p.name), "value": p.value()}).ConvertToNative(t)
}

// ConvertToType implements ref.Val.
func (p *pair) ConvertToType(t ref.Type) ref.Val { return convert(p, t) }

// Equal implements ref.Val.
func (p *pair) Equal(other ref.Val) ref.Val { return equal(p, other) }

// Type implements ref.Val.
func (p *pair) Type() ref.Type { return p.typ }

// Value implements ref.Val.
func (p *pair) Value() any { return p }

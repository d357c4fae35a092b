package expression

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// keepOrder gives maps created by an expression a fixed order, so that an expression that iterates
// over one has the same result on every server.
func keepOrder(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	c, ok := step.(interpreter.InterpretableConstructor)
	if !ok || c.Type() != types.MapType {
		return step, nil
	}
	return &orderedMap{c}, nil
}

type orderedMap struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (c *orderedMap) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := c.InterpretableConstructor.Exec(frame)
	m, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	entries := make(map[string]ref.Val, int(length(m)))
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return types.NewErr("maps that an expression makes have strings as keys, not %s", article(key.Type().TypeName()))
		}
		entries[string(name)] = m.Get(key)
	}
	return newTable(entries)
}

// Eval implements interpreter.Interpretable.
func (c *orderedMap) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

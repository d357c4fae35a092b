package expression

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// The cost of an operation is known when it is done. So that no single one takes
// the server's memory or a minute, values are kept small as they are made.
const (
	// maxElements is the size of a list or map, and the length of a text, that
	// an expression may make.
	maxElements = 1 << 16
	// maxNested is how many values a list within a list may hold in all: lists
	// of the same list double in size with each step.
	maxNested = 1 << 10
)

func tooLarge() ref.Val {
	return types.NewErr("makes a value that is too large: at most %d elements or characters are allowed, and %d within a list", maxElements, maxNested)
}

// growingFunctions take the place of CEL's own that may give back much more than
// they are given.
func growingFunctions() cel.EnvOption {
	replace := func(text, old, replacement types.String, n int) ref.Val {
		count := strings.Count(string(text), string(old))
		if n >= 0 {
			count = min(count, n)
		}
		if len(text)+count*len(replacement) > maxElements {
			return tooLarge()
		}
		return types.String(strings.Replace(string(text), string(old), string(replacement), n))
	}
	join := func(l traits.Lister, separator types.String) ref.Val {
		var b strings.Builder
		for i := types.IntZero; i < length(l); i++ {
			text, ok := l.Get(i).(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(l.Get(i))
			}
			if i > 0 {
				b.WriteString(string(separator))
			}
			b.WriteString(string(text))
			if b.Len() > maxElements {
				return tooLarge()
			}
		}
		return types.String(b.String())
	}
	three := []*cel.Type{cel.StringType, cel.StringType, cel.StringType}
	return several(
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", three, cel.StringType,
				cel.FunctionBinding(func(args ...ref.Val) ref.Val {
					return ofOne(args[0], func(text types.String) ref.Val {
						return ofTwo(args[1], args[2], func(old, replacement types.String) ref.Val { return replace(text, old, replacement, -1) })
					})
				})),
			cel.MemberOverload("string_replace_string_string_int", append(three[:3:3], cel.IntType), cel.StringType,
				cel.FunctionBinding(func(args ...ref.Val) ref.Val {
					return ofTwo(args[0], args[3], func(text types.String, n types.Int) ref.Val {
						return ofTwo(args[1], args[2], func(old, replacement types.String) ref.Val {
							return replace(text, old, replacement, int(max(-1, min(n, maxElements))))
						})
					})
				}))),
		cel.Function("join",
			cel.MemberOverload("list_join", []*cel.Type{stringsType}, cel.StringType,
				cel.UnaryBinding(func(l ref.Val) ref.Val {
					return ofOne(l, func(l traits.Lister) ref.Val { return join(l, "") })
				})),
			cel.MemberOverload("list_join_string", []*cel.Type{stringsType, cel.StringType}, cel.StringType,
				cel.BinaryBinding(func(l, separator ref.Val) ref.Val { return ofTwo(l, separator, join) }))),
	)
}

// keepSmall wraps the steps of a program that may make a large value.
func keepSmall(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch s := step.(type) {
	case interpreter.InterpretableConstructor:
		for _, part := range s.InitVals() {
			if _, constant := part.(interpreter.InterpretableConst); !constant {
				return &smallConstructor{s}, nil
			}
		}
	case interpreter.InterpretableCall:
		switch s.Function() {
		case operators.Add, "format", "strings.quote", "flatten", "split", "findAll":
			return &smallCall{s}, nil
		}
	}
	return step, nil
}

type smallCall struct {
	interpreter.InterpretableCall
}

// Exec implements interpreter.InterpretableV2.
func (c *smallCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := c.InterpretableCall.Exec(frame)
	if s, ok := v.(traits.Sizer); ok && length(s) > maxElements {
		return tooLarge()
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (c *smallCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

type smallConstructor struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (c *smallConstructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := c.InterpretableConstructor.Exec(frame)
	room := maxNested
	if it, ok := v.(traits.Iterable); ok && !nestedFits(v, it, &room) {
		return tooLarge()
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (c *smallConstructor) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// nestedFits reports whether the lists and maps within a value hold few values.
func nestedFits(v ref.Val, holder traits.Iterable, room *int) bool {
	m, isMap := v.(traits.Mapper)
	for it := holder.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		if isMap {
			element = m.Get(element)
		}
		if inner, ok := element.(traits.Iterable); ok {
			if s, sized := element.(traits.Sizer); sized {
				*room -= int(length(s))
			}
			if *room < 0 || !nestedFits(element, inner, room) {
				return false
			}
		}
	}
	return true
}

// keepOrder gives maps that an expression makes a fixed order: an expression
// that goes through one has the same result on every server.
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

// costs are those of the functions that CEL counts as a single step, although
// they go through what they are given.
type costs struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	var total uint64
	switch function {
	case operators.Equals, operators.NotEquals, operators.In, "isSorted", "sum", "min", "max", "indexOf", "lastIndexOf", "flatten", "distinct", "sort":
		for _, a := range args {
			total += weight(a)
		}
	case "sets.contains", "sets.equivalent", "sets.intersects":
		total = 1
		for _, a := range args {
			total *= weight(a)
		}
	case "parseJSON", "quantity", "isQuantity", "semver", "isSemver", "format", "strings.quote":
		total = weight(args[0])
	case "find", "findAll":
		total = weight(args[0]) * weight(args[1])
	default:
		return nil
	}
	total++
	return &total
}

// weight is how many steps it takes to go through a value.
func weight(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return 1 + uint64(len(v))/10
	case *object, *pair:
		return 8
	case traits.Lister:
		total := uint64(1)
		for i := types.IntZero; i < length(v); i++ {
			total += weight(v.Get(i))
		}
		return total
	case traits.Mapper:
		total := uint64(1)
		for it := v.Iterator(); it.HasNext() == types.True; {
			total += 1 + weight(v.Get(it.Next()))
		}
		return total
	}
	return 1
}

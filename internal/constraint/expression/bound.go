package expression

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// The cost of an operation is known only after it has been executed. Values are limited as they are
// created, so that no single operation can exhaust memory or run for a minute.
const (
	// maxLength is the maximum length in bytes of text created by an expression.
	maxLength = 1 << 14
	// maxElements is the maximum size of a list or map created by an expression, and maxNested the
	// maximum total number of values nested in it: lists of the same list double in size with each
	// step.
	maxElements = 1 << 11
	maxNested   = 1 << 10
)

func tooLarge() ref.Val {
	return types.NewErr("makes a value that is too large: at most %d bytes, or %d elements, are allowed, and %d within them", maxLength, maxElements, maxNested)
}

// isLarge reports whether a value exceeds these limits.
func isLarge(v ref.Val) bool {
	switch v := v.(type) {
	case types.String:
		return len(v) > maxLength
	case types.Bytes:
		return len(v) > maxLength
	case traits.Sizer:
		return length(v) > maxElements
	}
	return false
}

// growingFunctions replace CEL functions whose results may be much larger than their arguments.
func growingFunctions() cel.EnvOption {
	replace := func(text, old, replacement types.String, n int) ref.Val {
		count := strings.Count(string(text), string(old))
		if n >= 0 {
			count = min(count, n)
		}
		if len(text)+count*len(replacement) > maxLength {
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
			if b.Len() > maxLength {
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
							return replace(text, old, replacement, int(max(-1, min(n, maxLength))))
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

// nestedFits reports whether the lists and maps within a value hold few enough values.
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

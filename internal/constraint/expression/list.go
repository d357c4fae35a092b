package expression

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// listFunctions declares the list functions of Kubernetes that CEL lacks.
func listFunctions() cel.EnvOption {
	element := cel.TypeParamType("T")
	list := cel.ListType(element)
	read := func(name string, result *cel.Type, answer func(l traits.Lister) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("list_"+name, []*cel.Type{list}, result,
			cel.UnaryBinding(func(l ref.Val) ref.Val { return ofOne(l, answer) })))
	}
	find := func(name string, answer func(l traits.Lister, wanted ref.Val) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("list_"+name, []*cel.Type{list, element}, cel.IntType,
			cel.BinaryBinding(func(l, wanted ref.Val) ref.Val {
				return ofOne(l, func(l traits.Lister) ref.Val { return answer(l, wanted) })
			})))
	}
	return several(
		read("isSorted", cel.BoolType, func(l traits.Lister) ref.Val {
			return reduce(l, types.True, func(sorted, previous, v ref.Val) ref.Val {
				return compareValues(previous, v, func(order types.Int) ref.Val { return types.Bool(sorted == types.True && order <= 0) })
			})
		}),
		read("sum", element, func(l traits.Lister) ref.Val {
			return reduce(l, nil, func(total, _, v ref.Val) ref.Val {
				adder, ok := total.(traits.Adder)
				if !ok {
					return types.MaybeNoSuchOverloadErr(total)
				}
				return adder.Add(v)
			})
		}),
		read("min", element, func(l traits.Lister) ref.Val { return extreme(l, "min", -1) }),
		read("max", element, func(l traits.Lister) ref.Val { return extreme(l, "max", 1) }),
		find("indexOf", func(l traits.Lister, wanted ref.Val) ref.Val {
			for i := types.IntZero; i < length(l); i++ {
				if types.Equal(l.Get(i), wanted) == types.True {
					return i
				}
			}
			return types.IntNegOne
		}),
		find("lastIndexOf", func(l traits.Lister, wanted ref.Val) ref.Val {
			for i := length(l) - 1; i >= 0; i-- {
				if types.Equal(l.Get(i), wanted) == types.True {
					return i
				}
			}
			return types.IntNegOne
		}),
	)
}

func length(s traits.Sizer) types.Int {
	n, _ := s.Size().(types.Int)
	return n
}

// reduce folds a list, passing the result so far and the previous element. Without an initial
// value, the first element is used, and an empty list gives 0. It stops at the first error.
func reduce(l traits.Lister, result ref.Val, step func(result, previous, v ref.Val) ref.Val) ref.Val {
	n := length(l)
	if n == 0 {
		if result == nil {
			return types.IntZero
		}
		return result
	}
	previous := l.Get(types.IntZero)
	if result == nil {
		result = previous
	}
	for i := types.Int(1); i < n; i++ {
		v := l.Get(i)
		result = step(result, previous, v)
		if types.IsUnknownOrError(result) {
			return result
		}
		previous = v
	}
	return result
}

// extreme returns the smallest (sign -1) or largest (sign 1) element.
func extreme(l traits.Lister, name string, sign types.Int) ref.Val {
	if length(l) == 0 {
		return types.NewErr("%s of an empty list", name)
	}
	return reduce(l, nil, func(best, _, v ref.Val) ref.Val {
		return compareValues(v, best, func(order types.Int) ref.Val {
			if order == sign {
				return v
			}
			return best
		})
	})
}

func compareValues(a, b ref.Val, answer func(order types.Int) ref.Val) ref.Val {
	first, ok := a.(traits.Comparer)
	if !ok {
		return types.MaybeNoSuchOverloadErr(a)
	}
	order := first.Compare(b)
	if n, ok := order.(types.Int); ok {
		return answer(n)
	}
	return order
}

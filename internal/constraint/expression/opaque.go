package expression

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// ofOne applies a function to a value of its type.
func ofOne[A ref.Val](a ref.Val, apply func(A) ref.Val) ref.Val {
	v, ok := a.(A)
	if !ok {
		return types.MaybeNoSuchOverloadErr(a)
	}
	return apply(v)
}

// ofTwo applies a function to two values of its types.
func ofTwo[A, B ref.Val](a, b ref.Val, apply func(A, B) ref.Val) ref.Val {
	first, ok := a.(A)
	if !ok {
		return types.MaybeNoSuchOverloadErr(a)
	}
	second, ok := b.(B)
	if !ok {
		return types.MaybeNoSuchOverloadErr(b)
	}
	return apply(first, second)
}

// noConversion returns the error for a value that cannot be converted to Go.
func noConversion(v ref.Val, t reflect.Type) error {
	return fmt.Errorf("a %s cannot become a %s", v.Type().TypeName(), t)
}

// convertOpaque only converts to the value's own type.
func convertOpaque(v ref.Val, t ref.Type) ref.Val {
	own, ok := v.Type().(ref.Val)
	switch {
	case ok && t == types.TypeType:
		return own
	case t == v.Type():
		return v
	}
	return types.NewErr("type conversion error from '%s' to '%s'", v.Type(), t)
}

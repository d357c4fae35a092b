package expression

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
)

var quantityType = cel.OpaqueType("kubernetes.Quantity")

func parseQuantity(text string) (resource.Quantity, error) {
	if _, err := amount.Parse(text); err != nil {
		return resource.Quantity{}, fmt.Errorf("%s is %w", quote(text), err)
	}
	return resource.ParseQuantity(text)
}

// quantityFunctions declares Kubernetes' functions for resource quantities.
func quantityFunctions() cel.EnvOption {
	compare := func(name string, result *cel.Type, answer func(order int) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("quantity_"+name, []*cel.Type{quantityType, quantityType}, result,
			cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				return ofTwo(a, b, func(a, b quantity) ref.Val { return answer(a.Cmp(b.Quantity)) })
			})))
	}
	// sum accepts a quantity or an integer number of units.
	sum := func(name string, apply func(a *resource.Quantity, b resource.Quantity)) cel.EnvOption {
		return cel.Function(name,
			cel.MemberOverload("quantity_"+name, []*cel.Type{quantityType, quantityType}, quantityType,
				cel.BinaryBinding(func(a, b ref.Val) ref.Val {
					return ofTwo(a, b, func(a, b quantity) ref.Val {
						total := a.DeepCopy()
						apply(&total, b.Quantity)
						return quantity{total}
					})
				})),
			cel.MemberOverload("quantity_"+name+"_int", []*cel.Type{quantityType, cel.IntType}, quantityType,
				cel.BinaryBinding(func(a, b ref.Val) ref.Val {
					return ofTwo(a, b, func(a quantity, b types.Int) ref.Val {
						total := a.DeepCopy()
						apply(&total, *resource.NewQuantity(int64(b), resource.DecimalSI))
						return quantity{total}
					})
				})))
	}
	read := func(name string, result *cel.Type, answer func(q quantity) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("quantity_"+name, []*cel.Type{quantityType}, result,
			cel.UnaryBinding(func(q ref.Val) ref.Val { return ofOne(q, answer) })))
	}
	return several(
		cel.Function("quantity", cel.Overload("string_to_quantity", []*cel.Type{cel.StringType}, quantityType,
			cel.UnaryBinding(func(text ref.Val) ref.Val {
				return ofOne(text, func(text types.String) ref.Val {
					q, err := parseQuantity(string(text))
					if err != nil {
						return types.WrapErr(err)
					}
					return quantity{q}
				})
			}))),
		cel.Function("isQuantity", cel.Overload("is_quantity_string", []*cel.Type{cel.StringType}, cel.BoolType,
			cel.UnaryBinding(func(text ref.Val) ref.Val {
				return ofOne(text, func(text types.String) ref.Val {
					_, err := parseQuantity(string(text))
					return types.Bool(err == nil)
				})
			}))),
		compare("isLessThan", cel.BoolType, func(order int) ref.Val { return types.Bool(order < 0) }),
		compare("isGreaterThan", cel.BoolType, func(order int) ref.Val { return types.Bool(order > 0) }),
		compare("compareTo", cel.IntType, func(order int) ref.Val { return types.Int(order) }),
		sum("add", (*resource.Quantity).Add),
		sum("sub", (*resource.Quantity).Sub),
		read("sign", cel.IntType, func(q quantity) ref.Val { return types.Int(q.Sign()) }),
		read("isInteger", cel.BoolType, func(q quantity) ref.Val {
			_, ok := q.AsInt64()
			return types.Bool(ok)
		}),
		read("asInteger", cel.IntType, func(q quantity) ref.Val {
			v, ok := q.AsInt64()
			if !ok {
				return types.NewErr("%s is not an integer", q.String())
			}
			return types.Int(v)
		}),
		read("asApproximateFloat", cel.DoubleType, func(q quantity) ref.Val { return types.Double(q.AsApproximateFloat64()) }),
	)
}

// quantity is a resource quantity as a CEL value.
type quantity struct {
	resource.Quantity
}

// ConvertToNative implements ref.Val.
func (q quantity) ConvertToNative(t reflect.Type) (any, error) { return nil, noConversion(q, t) }

// ConvertToType implements ref.Val.
func (q quantity) ConvertToType(t ref.Type) ref.Val { return convertOpaque(q, t) }

// Equal implements ref.Val.
func (q quantity) Equal(other ref.Val) ref.Val {
	o, ok := other.(quantity)
	return types.Bool(ok && q.Cmp(o.Quantity) == 0)
}

// Type implements ref.Val.
func (q quantity) Type() ref.Type { return quantityType }

// Value implements ref.Val.
func (q quantity) Value() any { return q.Quantity }

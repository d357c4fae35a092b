package expression

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// maxPattern is the maximum size of a regular expression, in instructions of package regexp:
// [a-z]{1,1000} nested once would have a million.
const maxPattern = 2000

// patternFunctions declares Kubernetes' functions for regular expressions.
func patternFunctions() cel.EnvOption {
	findAll := func(text, pattern types.String, n types.Int) ref.Val {
		re, err := types.CompileRegexWithLimit(string(pattern), maxPattern)
		if err != nil {
			return types.WrapErr(err)
		}
		return all(re, text, n)
	}
	two := []*cel.Type{cel.StringType, cel.StringType}
	return several(
		cel.Function("find", cel.MemberOverload("string_find_string", two, cel.StringType,
			cel.BinaryBinding(func(text, pattern ref.Val) ref.Val {
				return ofTwo(text, pattern, func(text, pattern types.String) ref.Val {
					re, err := types.CompileRegexWithLimit(string(pattern), maxPattern)
					if err != nil {
						return types.WrapErr(err)
					}
					return types.String(re.FindString(string(text)))
				})
			}))),
		cel.Function("findAll",
			cel.MemberOverload("string_find_all_string", two, stringsType,
				cel.BinaryBinding(func(text, pattern ref.Val) ref.Val {
					return ofTwo(text, pattern, func(text, pattern types.String) ref.Val { return findAll(text, pattern, -1) })
				})),
			cel.MemberOverload("string_find_all_string_int", append(two[:2:2], cel.IntType), stringsType,
				cel.FunctionBinding(func(args ...ref.Val) ref.Val {
					return ofOne(args[2], func(n types.Int) ref.Val {
						return ofTwo(args[0], args[1], func(text, pattern types.String) ref.Val {
							return findAll(text, pattern, n)
						})
					})
				}))),
	)
}

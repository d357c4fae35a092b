package expression

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

var versionType = cel.OpaqueType("kubernetes.Semver")

// parseVersion parses a semantic version. With normalize, it may start with "v", have fewer than
// three numbers, and numbers with leading zeros.
func parseVersion(text string, normalize bool) (semver.Version, error) {
	full := text
	if normalize {
		full = normalizeVersion(text)
	}
	v, err := semver.Parse(full)
	switch {
	case err == nil:
		return v, nil
	case normalize:
		return v, fmt.Errorf("%s is not a version such as \"v1.30.0\" or \"1.30\"", quote(text))
	}
	return v, fmt.Errorf("%s is not a semantic version such as \"1.30.0\"; semver(..., true) also reads \"v1.30\"", quote(text))
}

func normalizeVersion(text string) string {
	text = strings.TrimPrefix(text, "v")
	numbers, rest := text, ""
	if i := strings.IndexAny(text, "-+"); i >= 0 {
		numbers, rest = text[:i], text[i:]
	}
	parts := strings.SplitN(numbers, ".", 3)
	for i, p := range parts {
		if trimmed := strings.TrimLeft(p, "0"); trimmed != p {
			if trimmed == "" || trimmed[0] < '0' || trimmed[0] > '9' {
				trimmed = "0" + trimmed
			}
			parts[i] = trimmed
		}
	}
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	return strings.Join(parts, ".") + rest
}

// versionFunctions declares Kubernetes' functions for semantic versions.
func versionFunctions() cel.EnvOption {
	// read declares a function of a string, and of a string and whether to normalize.
	read := func(name, id string, result *cel.Type, answer func(v semver.Version, err error) ref.Val) cel.EnvOption {
		return cel.Function(name,
			cel.Overload(id, []*cel.Type{cel.StringType}, result,
				cel.UnaryBinding(func(text ref.Val) ref.Val {
					return ofOne(text, func(text types.String) ref.Val { return answer(parseVersion(string(text), false)) })
				})),
			cel.Overload(id+"_bool", []*cel.Type{cel.StringType, cel.BoolType}, result,
				cel.BinaryBinding(func(text, normalize ref.Val) ref.Val {
					return ofTwo(text, normalize, func(text types.String, normalize types.Bool) ref.Val {
						return answer(parseVersion(string(text), bool(normalize)))
					})
				})))
	}
	compare := func(name string, result *cel.Type, answer func(order int) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("semver_"+name, []*cel.Type{versionType, versionType}, result,
			cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				return ofTwo(a, b, func(a, b version) ref.Val { return answer(a.Compare(b.Version)) })
			})))
	}
	number := func(name string, answer func(v version) uint64) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("semver_"+name, []*cel.Type{versionType}, cel.IntType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				return ofOne(v, func(v version) ref.Val { return types.Int(answer(v)) })
			})))
	}
	return several(
		read("semver", "string_to_semver", versionType, func(v semver.Version, err error) ref.Val {
			if err != nil {
				return types.WrapErr(err)
			}
			return version{v}
		}),
		read("isSemver", "is_semver_string", cel.BoolType, func(_ semver.Version, err error) ref.Val {
			return types.Bool(err == nil)
		}),
		compare("isLessThan", cel.BoolType, func(order int) ref.Val { return types.Bool(order < 0) }),
		compare("isGreaterThan", cel.BoolType, func(order int) ref.Val { return types.Bool(order > 0) }),
		compare("compareTo", cel.IntType, func(order int) ref.Val { return types.Int(order) }),
		number("major", func(v version) uint64 { return v.Major }),
		number("minor", func(v version) uint64 { return v.Minor }),
		number("patch", func(v version) uint64 { return v.Patch }),
	)
}

// version is a semantic version as a CEL value.
type version struct {
	semver.Version
}

// ConvertToNative implements ref.Val.
func (v version) ConvertToNative(t reflect.Type) (any, error) { return nil, noConversion(v, t) }

// ConvertToType implements ref.Val.
func (v version) ConvertToType(t ref.Type) ref.Val { return convertOpaque(v, t) }

// Equal implements ref.Val.
func (v version) Equal(other ref.Val) ref.Val {
	o, ok := other.(version)
	return types.Bool(ok && v.Compare(o.Version) == 0)
}

// Type implements ref.Val.
func (v version) Type() ref.Type { return versionType }

// Value implements ref.Val.
func (v version) Value() any { return v.Version }

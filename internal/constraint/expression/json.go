package expression

import (
	"encoding/json"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// jsonFunctions declares Open Cluster Management's function that parses JSON, for labels and claims
// that contain some. It is a function and a method.
func jsonFunctions() cel.EnvOption {
	parse := func(text ref.Val) ref.Val {
		return ofOne(text, func(text types.String) ref.Val {
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return types.NewErr("%s is not JSON: %v", quote(string(text)), err)
			}
			return jsonValue(v)
		})
	}
	return cel.Function("parseJSON",
		cel.Overload("parse_json_string", []*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(parse)),
		cel.MemberOverload("string_parse_json", []*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(parse)),
	)
}

// jsonValue returns a decoded document as a CEL value. Numbers are doubles, which can be compared
// with integers.
func jsonValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		entries := make(map[string]ref.Val, len(v))
		for name, value := range v {
			entries[name] = jsonValue(value)
		}
		return newTable(entries)
	case []any:
		values := make([]ref.Val, len(v))
		for i := range v {
			values[i] = jsonValue(v[i])
		}
		return types.NewRefValList(types.DefaultTypeAdapter, values)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

package expression

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
)

// environment holds the variables and functions of expressions. It is created when the first
// expression is compiled, so that programs without expressions pay nothing.
var environment = sync.OnceValues(newEnvironment)

func newEnvironment() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(
		cel.CustomTypeAdapter(registry),
		cel.CustomTypeProvider(&typeProvider{Registry: registry}),
		cel.Variable(clusterVariable, clusterType),
		cel.Variable(managedClusterVariable, managedClusterType),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		cel.ParserRecursionLimit(maxDepth),
		cel.RegexProgramSizeLimit(maxPattern),
		ext.Strings(),
		ext.Sets(),
		ext.Math(),
		ext.Lists(ext.ListsMaxRangeSize(maxElements)),
		ext.Network(),
		clusterFunctions(),
		addressFunctions(),
		quantityFunctions(),
		formatFunctions(),
		versionFunctions(),
		patternFunctions(),
		listFunctions(),
		jsonFunctions(),
		growingFunctions(),
	)
}

// programOptions returns how an expression is executed. An expression without loops and growing
// text is limited by its length, so its cost is not tracked.
func programOptions(r *reads) []cel.ProgramOption {
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(foldConversions), cel.CustomDecoratorV2(keepOrder)}
	if !r.bounded {
		options = append(options, cel.CustomDecoratorV2(countCost))
	}
	return options
}

// typeProvider adds the types of `cluster` to those of CEL.
type typeProvider struct {
	*types.Registry
}

// FindStructType implements types.Provider.
func (p *typeProvider) FindStructType(name string) (*types.Type, bool) {
	if t, ok := objectTypes[name]; ok {
		return types.NewTypeTypeWithParam(t), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p *typeProvider) FindStructFieldNames(name string) ([]string, bool) {
	if _, ok := objectTypes[name]; ok {
		return fieldNames(name), true
	}
	return p.Registry.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (p *typeProvider) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	if name == scoreType.TypeName() {
		return scoreField(fieldName)
	}
	if s := typedShape(name); s != nil {
		if f := s.field(fieldName); f != nil {
			return f.fieldType(), true
		}
		return nil, false
	}
	return p.Registry.FindStructFieldType(name, fieldName)
}

// NewValue implements types.Provider: expressions cannot create clusters.
func (p *typeProvider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := objectTypes[name]; ok {
		return types.NewErr("a %s cannot be made by an expression", name)
	}
	return p.Registry.NewValue(name, fields)
}

var objectTypes = map[string]*types.Type{
	clusterType.TypeName():         clusterType,
	clusterMetadataType.TypeName(): clusterMetadataType,
	clusterSpecType.TypeName():     clusterSpecType,
	scoreType.TypeName():           scoreType,
}

func typedShape(name string) *shape {
	for i := range shapes {
		if t := shapes[i].typ; t != types.MapType && t.TypeName() == name {
			return &shapes[i]
		}
	}
	return nil
}

func fieldNames(name string) []string {
	s := typedShape(name)
	if s == nil {
		return []string{"name", "value"}
	}
	names := make([]string, len(s.fields))
	for i := range s.fields {
		names[i] = s.fields[i].name
	}
	return names
}

// fieldType returns the field for CEL's checker and interpreter. Every field of `cluster` has a
// value; an empty one counts as not set.
func (f *field) fieldType() *types.FieldType {
	read := func(target any) ref.Val {
		o, ok := target.(*object)
		if !ok {
			return types.NewErr("%s is not a field of %T", f.name, target)
		}
		return f.get(o.subject)
	}
	return &types.FieldType{
		Type: f.typ,
		IsSet: func(target any) bool {
			switch v := read(target).(type) {
			case types.String:
				return v != ""
			case interface{ Size() ref.Val }:
				return v.Size() != types.IntZero
			case *types.Err:
				return false
			}
			return true
		},
		GetFrom: func(target any) (any, error) {
			v := read(target)
			if err, failed := v.(*types.Err); failed {
				return nil, err
			}
			return v, nil
		},
	}
}

func scoreField(name string) (*types.FieldType, bool) {
	typ, ok := map[string]*types.Type{"name": cel.StringType, "value": cel.IntType}[name]
	if !ok {
		return nil, false
	}
	return &types.FieldType{
		Type:  typ,
		IsSet: func(any) bool { return true },
		GetFrom: func(target any) (any, error) {
			p, ok := target.(*pair)
			if !ok {
				return nil, fmt.Errorf("%s is not a field of %T", name, target)
			}
			return p.Get(types.String(name)), nil
		},
	}, true
}

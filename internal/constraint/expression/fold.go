package expression

import (
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// foldConversions converts constants once, when the program is created, as CEL's own optimizer
// does. That one runs after all decorators, sees calls whose cost is tracked although nothing is
// evaluated yet, and rejects a whole expression because of a failing conversion in a part that may
// never be evaluated.
func foldConversions(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := step.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 1 || isVariable(call.Args()[0]) || !overloads.IsTypeConversionFunction(call.Function()) {
		return step, nil
	}
	v := call.Eval(interpreter.EmptyActivation())
	if types.IsError(v) {
		return failingConversion{call}, nil
	}
	return interpreter.NewConstValue(call.ID(), v), nil
}

// failingConversion fails when it is evaluated. It is not a call, so that the optimizer ignores it.
type failingConversion struct {
	interpreter.InterpretableV2
}

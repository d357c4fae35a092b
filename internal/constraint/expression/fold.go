package expression

import (
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// foldConversions converts constants once, when the program is made, as CEL's own
// optimizer does. That one comes after all decorators, meets calls whose cost is
// counted although nothing is evaluated yet, and refuses a whole expression for a
// conversion that fails in a part that may never be reached.
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

// failingConversion fails when it is evaluated. It is no call, so that the
// optimizer leaves it alone.
type failingConversion struct {
	interpreter.InterpretableV2
}

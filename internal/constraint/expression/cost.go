package expression

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// An evaluation tracks its own cost, in the same way as CEL's cost tracker, which keeps every value
// of a loop and searches all of them at every step.

// costVariable is the variable that holds the cost of the evaluation. No expression can name it.
const costVariable = "#cost"

// heavyCost is added for functions with quadratic cost, or that compile or match a pattern.
const heavyCost = 1000

var heavyFunctions = []string{
	"validate", "distinct", "flatten", "sort", "@sortByAssociatedKeys", "lists.range",
	"sets.contains", "sets.equivalent", "sets.intersects",
}

func tooLong() ref.Val { return types.NewErr("%s", errTooLong.Error()) }

// charge adds to the cost of the evaluation, and reports whether it may continue.
func charge(vars cel.Activation, cost int) bool {
	v, _ := vars.ResolveName(costVariable)
	s, ok := v.(*subject)
	if !ok {
		return false
	}
	s.cost += cost
	return s.cost <= maxCost
}

// countCost wraps the steps of a program that take time. Logical operators cost no more than their
// operands, and the accumulator of a loop is not read again in each iteration.
func countCost(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch s := step.(type) {
	case *costlyAttribute, *costlyCall, *patternCall, *costlyConstructor, *costlyStep, interpreter.InterpretableConst:
		return step, nil
	case interpreter.InterpretableAttribute:
		if named, ok := s.Attr().(interpreter.NamespacedAttribute); ok && slices.ContainsFunc(named.CandidateVariableNames(), isAccumulator) {
			return step, nil
		}
		return &costlyAttribute{s}, nil
	case interpreter.InterpretableConstructor:
		if !slices.ContainsFunc(s.InitVals(), isVariable) {
			// A constant list is created once, with the program.
			return step, nil
		}
		return &costlyConstructor{s}, nil
	case interpreter.InterpretableCall:
		if takesPattern(s) {
			return newPatternCall(s)
		}
		c := &costlyCall{InterpretableCall: s, cost: 1}
		for _, arg := range s.Args() {
			// A constant is not read like a variable, but its elements are still visited.
			if constant, ok := arg.(interpreter.InterpretableConst); ok {
				c.cost += weight(constant.Value()) - 1
			}
		}
		if slices.Contains(heavyFunctions, s.Function()) {
			c.cost += heavyCost
		}
		return c, nil
	}
	return &costlyStep{step}, nil
}

func isVariable(step interpreter.InterpretableV2) bool {
	_, constant := step.(interpreter.InterpretableConst)
	return !constant
}

// isAccumulator reports whether a variable is the accumulator of a loop.
func isAccumulator(name string) bool { return name == "@result" || name == "__result__" }

// costlyAttribute is a variable with its field selections. Its cost is its size, because most
// operations visit all of it.
type costlyAttribute struct {
	interpreter.InterpretableAttribute
}

// Exec implements interpreter.InterpretableV2.
func (a *costlyAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	if !charge(frame, 0) {
		return tooLong()
	}
	v := a.InterpretableAttribute.Exec(frame)
	if !charge(frame, weight(v)) {
		return tooLong()
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (a *costlyAttribute) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// costlyCall is a call of a function or operator.
type costlyCall struct {
	interpreter.InterpretableCall
	cost int
}

// Exec implements interpreter.InterpretableV2.
func (c *costlyCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	if !charge(frame, c.cost) {
		return tooLong()
	}
	v := c.InterpretableCall.Exec(frame)
	if isLarge(v) {
		return tooLarge()
	}
	// The accumulator of a loop is appended to, not copied.
	if text, ok := v.(types.String); ok && !charge(frame, len(text)/10) {
		return tooLong()
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (c *costlyCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// costlyConstructor creates a list or map.
type costlyConstructor struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (c *costlyConstructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	if !charge(frame, 1+len(c.InitVals())) {
		return tooLong()
	}
	v := c.InterpretableConstructor.Exec(frame)
	room := maxNested
	if it, ok := v.(traits.Iterable); ok && !nestedFits(v, it, &room) {
		return tooLarge()
	}
	if !charge(frame, maxNested-room) {
		return tooLong()
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (c *costlyConstructor) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// costlyStep is any other step: a loop, a condition.
type costlyStep struct {
	interpreter.InterpretableV2
}

// Exec implements interpreter.InterpretableV2.
func (c *costlyStep) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	if !charge(frame, 1) {
		return tooLong()
	}
	return c.InterpretableV2.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (c *costlyStep) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// weight returns how many steps it takes to visit a value.
func weight(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return 1 + len(v)/10
	case *object, *pair:
		return 1
	case stringMap:
		return 1 + len(v)
	case traits.Lister:
		total := 1
		for i := types.IntZero; i < length(v); i++ {
			total += weight(v.Get(i))
		}
		return total
	case traits.Mapper:
		total := 1
		for it := v.Iterator(); it.HasNext() == types.True; {
			total += 1 + weight(v.Get(it.Next()))
		}
		return total
	}
	return 1
}

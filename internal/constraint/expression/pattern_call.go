package expression

import (
	"regexp"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// patternFunctionNames are the functions that take a text and a pattern.
var patternFunctionNames = []string{"matches", "find", "findAll"}

// patternCall is a call of one of them. Its cost depends on its arguments: as in CEL, it is
// proportional to the length of the text times that of the pattern.
type patternCall struct {
	interpreter.InterpretableV2
	function string
	args     []interpreter.InterpretableV2
	constant *regexp.Regexp // if the pattern is a constant
}

func takesPattern(call interpreter.InterpretableCall) bool {
	return slices.Contains(patternFunctionNames, call.Function()) && len(call.Args()) >= 2
}

func newPatternCall(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	c := &patternCall{InterpretableV2: call, function: call.Function(), args: call.Args()}
	if constant, ok := c.args[1].(interpreter.InterpretableConst); ok {
		if pattern, ok := constant.Value().(types.String); ok {
			var err error
			if c.constant, err = types.CompileRegexWithLimit(string(pattern), maxPattern); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// Exec implements interpreter.InterpretableV2.
func (c *patternCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	values := make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		if values[i] = arg.Exec(frame); types.IsUnknownOrError(values[i]) {
			return values[i]
		}
	}
	return types.LabelErrNode(c.ID(), ofTwo(values[0], values[1], func(text, pattern types.String) ref.Val {
		cost := (1 + len(text)/10) * (1 + len(pattern)/4)
		if c.constant == nil {
			cost += heavyCost
		}
		if !charge(frame, cost) {
			return tooLong()
		}
		re := c.constant
		if re == nil {
			var err error
			if re, err = types.CompileRegexWithLimit(string(pattern), maxPattern); err != nil {
				return types.WrapErr(err)
			}
		}
		switch {
		case c.function == "matches":
			return types.Bool(re.MatchString(string(text)))
		case c.function == "find":
			return types.String(re.FindString(string(text)))
		case len(values) == 2:
			return all(re, text, -1)
		}
		return ofOne(values[2], func(n types.Int) ref.Val { return all(re, text, n) })
	}))
}

// all returns the first n matches in a text, or all.
func all(re *regexp.Regexp, text types.String, n types.Int) ref.Val {
	found := re.FindAllString(string(text), int(max(-1, min(n, maxElements+1))))
	if len(found) > maxElements {
		return tooLarge()
	}
	return stringList(found)
}

// Eval implements interpreter.Interpretable.
func (c *patternCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

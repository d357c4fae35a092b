package expression

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// syntaxError says where the text is wrong and what would be right. Only the
// first fault is told: the others often follow from it. parsed is nil where the
// text cannot be parsed.
func syntaxError(parsed *ast.AST, issues *cel.Issues) error {
	found := issues.Errors()
	if len(found) == 0 {
		return fmt.Errorf("the CEL expression is not valid: %w", issues.Err())
	}
	first := found[0]
	for _, e := range found[1:] {
		if l := e.Location; l.Line() < first.Location.Line() || l.Line() == first.Location.Line() && l.Column() < first.Location.Column() {
			first = e
		}
	}
	function := ""
	if parsed != nil {
		function = functionAt(parsed, first.ExprID)
	}
	message := plain(first.Message, function)
	if l := first.Location; l.Line() > 0 {
		return fmt.Errorf("the CEL expression is not valid at %s: %s", place(l), message)
	}
	return fmt.Errorf("the CEL expression is not valid: %s", message)
}

// place is a position in the text of an expression, counted from 1.
func place(at common.Location) string {
	return fmt.Sprintf("line %d, column %d", at.Line(), max(1, at.Column()+1))
}

// functionAt is the function, or the operator in CEL's own name, that a part of an expression calls, ""
// where it calls none.
func functionAt(a *ast.AST, id int64) string {
	name := ""
	ast.PostOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() == id && e.Kind() == ast.CallKind {
			name = e.AsCall().FunctionName()
		}
	}))
	return name
}

// symbols are the operators that are written around their operands.
var symbols = map[string]string{operators.Index: "[]", operators.OptIndex: "[?]", operators.Conditional: "?:"}

// symbol is the name of a function as it is written.
func symbol(function string) string {
	if s, ok := symbols[function]; ok {
		return s
	}
	if s, ok := operators.FindReverse(function); ok && s != "" {
		return s
	}
	return function
}

// plain puts a message of CEL's checker into the words a user of expressions
// knows. function is what is called where the fault is, if anything.
func plain(message, function string) string {
	if name, ok := between(message, "undeclared reference to '", "' (in container '')"); ok {
		if name == function {
			return fmt.Sprintf("there is no function %q", name)
		}
		return fmt.Sprintf("%q is not known: the variables are %s and %s; text is put in quotes", name, clusterVariable, managedClusterVariable)
	}
	if call, ok := between(message, "found no matching overload for '", "'"); ok {
		name, types, _ := strings.Cut(call, "' applied to '")
		return fmt.Sprintf("%q cannot be applied to %s: the types do not fit", symbol(name), types)
	}
	if name, ok := between(message, "undefined field '", "'"); ok {
		return fmt.Sprintf("there is no field %q; %s has metadata (name, labels) and spec (%s)",
			name, clusterVariable, strings.Join(fieldNames(clusterSpecType.TypeName()), ", "))
	}
	// What would fit is a list of every operator.
	message, _, _ = strings.Cut(strings.TrimPrefix(message, "Syntax error: "), " expecting {")
	return strings.ReplaceAll(message, "<EOF>", "the end")
}

// between returns the part of a message between what it begins and ends with.
func between(message, prefix, suffix string) (string, bool) {
	rest, begins := strings.CutPrefix(message, prefix)
	rest, ends := strings.CutSuffix(rest, suffix)
	return rest, begins && ends
}

// article puts a type into a sentence.
func article(typeName string) string {
	if strings.ContainsRune("aeiou", rune(typeName[0])) {
		return "an " + typeName
	}
	return "a " + typeName
}

// quote puts a piece of the cluster's text into a message.
func quote(s string) string {
	const limit = 40
	if utf8.RuneCountInString(s) > limit {
		s = string([]rune(s)[:limit]) + "…"
	}
	return strconv.Quote(s)
}

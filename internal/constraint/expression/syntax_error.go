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

// syntaxError says where the text is wrong and what would be right. Only the first error is
// reported, because others often follow from it. parsed is nil if the text cannot be parsed.
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

// place returns a position in the text of an expression, starting at 1.
func place(at common.Location) string {
	return fmt.Sprintf("line %d, column %d", at.Line(), max(1, at.Column()+1))
}

// functionAt returns the function, or CEL's name of the operator, that a part of an expression
// calls, or "".
func functionAt(a *ast.AST, id int64) string {
	name := ""
	ast.PostOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() == id && e.Kind() == ast.CallKind {
			name = e.AsCall().FunctionName()
		}
	}))
	return name
}

// symbols are the operators that surround their operands.
var symbols = map[string]string{operators.Index: "[]", operators.OptIndex: "[?]", operators.Conditional: "?:"}

// symbol returns the name of a function as users write it.
func symbol(function string) string {
	if s, ok := symbols[function]; ok {
		return s
	}
	if s, ok := operators.FindReverse(function); ok && s != "" {
		return s
	}
	return function
}

// plain rewrites a message of CEL's checker in terms that users know. function is the function
// called at the fault, if any.
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
	// The list of expected tokens contains every operator.
	message, _, _ = strings.Cut(strings.TrimPrefix(message, "Syntax error: "), " expecting {")
	return strings.ReplaceAll(message, "<EOF>", "the end")
}

// between returns the part of a message between prefix and suffix.
func between(message, prefix, suffix string) (string, bool) {
	rest, begins := strings.CutPrefix(message, prefix)
	rest, ends := strings.CutSuffix(rest, suffix)
	return rest, begins && ends
}

// article adds an article to a type name.
func article(typeName string) string {
	if strings.ContainsRune("aeiou", rune(typeName[0])) {
		return "an " + typeName
	}
	return "a " + typeName
}

// quote quotes text of the cluster for a message.
func quote(s string) string {
	const limit = 40
	if utf8.RuneCountInString(s) > limit {
		s = string([]rune(s)[:limit]) + "…"
	}
	return strconv.Quote(s)
}

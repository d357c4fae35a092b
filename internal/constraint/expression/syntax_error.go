package expression

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
)

// syntaxError says where the text is wrong and what would be right. Only the
// first fault is told: the others often follow from it.
func syntaxError(issues *cel.Issues) error {
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
	message := plain(first.Message)
	if l := first.Location; l.Line() > 0 {
		return fmt.Errorf("the CEL expression is not valid at line %d, column %d: %s", l.Line(), max(1, l.Column()+1), message)
	}
	return fmt.Errorf("the CEL expression is not valid: %s", message)
}

// symbols are the operators that are written around their operands.
var symbols = map[string]string{operators.Index: "[]", operators.OptIndex: "[?]", operators.Conditional: "?:"}

// plain puts a message of CEL's checker into the words a user of expressions
// knows.
func plain(message string) string {
	if name, ok := between(message, "undeclared reference to '", "' (in container '')"); ok {
		return fmt.Sprintf("%q is not known: the variables are %s and %s; text is put in quotes", name, clusterVariable, managedClusterVariable)
	}
	if call, ok := between(message, "found no matching overload for '", "'"); ok {
		name, types, _ := strings.Cut(call, "' applied to '")
		if symbol, ok := symbols[name]; ok {
			name = symbol
		} else if symbol, ok := operators.FindReverse(name); ok && symbol != "" {
			name = symbol
		}
		return fmt.Sprintf("%q cannot be applied to %s: the types do not fit", name, types)
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

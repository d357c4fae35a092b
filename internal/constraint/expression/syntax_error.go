package expression

import (
	"fmt"
	"regexp"
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

var (
	undeclared  = regexp.MustCompile(`^undeclared reference to '(.*)' \(in container ''\)$`)
	noOverload  = regexp.MustCompile(`^found no matching overload for '(.*)' applied to '(.*)'$`)
	noField     = regexp.MustCompile(`^undefined field '(.*)'$`)
	expectation = regexp.MustCompile(` expecting \{.*\}$`)
)

// symbols are the operators that are written around their operands.
var symbols = map[string]string{operators.Index: "[]", operators.OptIndex: "[?]", operators.Conditional: "?:"}

// plain puts a message of CEL's checker into the words a user of expressions
// knows.
func plain(message string) string {
	if m := undeclared.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("%q is not known: the variables are %s and %s; text is put in quotes", m[1], clusterVariable, managedClusterVariable)
	}
	if m := noOverload.FindStringSubmatch(message); m != nil {
		name := m[1]
		if symbol, ok := symbols[name]; ok {
			name = symbol
		} else if symbol, ok := operators.FindReverse(name); ok && symbol != "" {
			name = symbol
		}
		return fmt.Sprintf("%q cannot be applied to %s: the types do not fit", name, m[2])
	}
	if m := noField.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("there is no field %q; %s has metadata (name, labels) and spec (%s)",
			m[1], clusterVariable, strings.Join(fieldNames(clusterSpecType.TypeName()), ", "))
	}
	message = strings.TrimPrefix(message, "Syntax error: ")
	return strings.ReplaceAll(expectation.ReplaceAllString(message, ""), "<EOF>", "the end")
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

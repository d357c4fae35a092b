// Package constraint implements the language in which users restrict placement: constraints on
// labels ("location is DE", "tier not in (edge, lab)") and on metrics ("load >= 5", "latency less
// than 20").
//
// A constraint is parsed once and matched many times. It keeps the user's text, and has a canonical
// form, so that constraints that are only spelled differently can share computed results.
package constraint

import "strings"

// Operator is the comparison operator of a constraint in its canonical spelling.
type Operator string

// Operators. Labels support the first four, metrics the first two and the last four.
const (
	Equal          Operator = "=="
	NotEqual       Operator = "!="
	In             Operator = "in"
	NotIn          Operator = "not in"
	Greater        Operator = ">"
	GreaterOrEqual Operator = ">="
	Less           Operator = "<"
	LessOrEqual    Operator = "<="
)

// spelling is one spelling of an operator, as tokens.
type spelling struct {
	tokens   []string
	operator Operator
}

func (s spelling) String() string { return strings.Join(s.tokens, " ") }

// dialect is how the two constraint languages differ.
type dialect struct {
	// subject and operand name the two sides in errors.
	subject, operand string
	// delimiters are the characters that end a word without whitespace.
	delimiters string
	// pairs are the symbols of two characters; all others have one.
	pairs []string
	// spellings are in the order in which errors list them, at most 32.
	spellings []spelling
}

var labelDialect = dialect{
	subject:    "label key",
	operand:    "value",
	delimiters: ",()=!",
	pairs:      []string{"==", "!="},
	spellings: []spelling{
		{[]string{"is"}, Equal},
		{[]string{"="}, Equal},
		{[]string{"=="}, Equal},
		{[]string{"is", "not"}, NotEqual},
		{[]string{"!="}, NotEqual},
		{[]string{"in"}, In},
		{[]string{"not", "in"}, NotIn},
	},
}

var metricDialect = dialect{
	subject:    "metric name",
	operand:    "number",
	delimiters: ",()=!<>",
	pairs:      []string{"==", "!=", ">=", "=>", "<=", "=<"},
	spellings: []spelling{
		{[]string{"is"}, Equal},
		{[]string{"="}, Equal},
		{[]string{"=="}, Equal},
		{[]string{"is", "not"}, NotEqual},
		{[]string{"!="}, NotEqual},
		{[]string{"greater", "than"}, Greater},
		{[]string{"gt"}, Greater},
		{[]string{">"}, Greater},
		{[]string{"greater", "than", "or", "equal"}, GreaterOrEqual},
		{[]string{"gte"}, GreaterOrEqual},
		{[]string{">="}, GreaterOrEqual},
		{[]string{"=>"}, GreaterOrEqual},
		{[]string{"less", "than"}, Less},
		{[]string{"lesser", "than"}, Less},
		{[]string{"lt"}, Less},
		{[]string{"<"}, Less},
		{[]string{"less", "than", "or", "equal"}, LessOrEqual},
		{[]string{"lesser", "than", "or", "equal"}, LessOrEqual},
		{[]string{"lte"}, LessOrEqual},
		{[]string{"<="}, LessOrEqual},
		{[]string{"=<"}, LessOrEqual},
	},
}

// operators lists every spelling for errors.
func (d *dialect) operators() []string {
	all := make([]string, len(d.spellings))
	for i, s := range d.spellings {
		all[i] = s.String()
	}
	return all
}

// begins reports whether the token starts an operator other than "is".
func (d *dialect) begins(token string) bool {
	for _, s := range d.spellings {
		if s.tokens[0] == token && token != "is" {
			return true
		}
	}
	return false
}

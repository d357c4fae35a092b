package constraint

import (
	"math"
	"strconv"
)

// Metric is a constraint on the value of one metric. Create it with ParseMetric; the zero value
// matches nothing.
type Metric struct {
	text     string
	name     string
	operator Operator
	value    float64
}

// ParseMetric parses a metric constraint. The error is a *SyntaxError.
//
//	<name> is | = | == <number>
//	<name> is not | != <number>
//	<name> greater than | gt | > <number>
//	<name> greater than or equal | gte | >= | => <number>
//	<name> less than | lesser than | lt | < <number>
//	<name> less than or equal | lesser than or equal | lte | <= | =< <number>
//
// Words are separated by spaces, tabs or line breaks, which are optional around symbols. Keywords
// are lower case and not reserved. The number is decimal, finite and may have a sign: 5, -0.5,
// +1e3, .5.
func ParseMetric(text string) (Metric, error) {
	s := &scanner{dialect: &metricDialect, text: text}
	name, err := s.subject()
	if err != nil {
		return Metric{}, err
	}
	op, err := s.operator(name)
	if err != nil {
		return Metric{}, err
	}
	operand := s.next()
	if !operand.word {
		return Metric{}, s.notOperand(op.String(), operand)
	}
	value, fault := parseNumber(operand.text)
	if extra := s.next(); !extra.end() {
		if fault != "" { // in "is greater than 5", the fault is at "greater"
			return Metric{}, s.notOperand(op.String(), operand)
		}
		return Metric{}, s.fail(Grammar, extra.at, "unexpected "+quote(extra.text)+" after the end of the constraint", "the end")
	}
	if at, fault := checkKey(name.text, "metric name"); fault != "" {
		return Metric{}, s.fail(Key, name.at+at, fault)
	}
	if fault != "" {
		return Metric{}, s.fail(Value, operand.at, fault, "a number")
	}
	return Metric{text: text, name: name.text, operator: op.operator, value: value}, nil
}

// parseNumber parses a threshold; fault is empty if it is valid.
func parseNumber(text string) (float64, string) {
	if !decimal(text) {
		return 0, quote(text) + " is not a finite decimal number such as 5, -0.5 or 1e3"
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil { // the syntax is right, so it is out of range
		return 0, quote(text) + " is too large: the largest number is 1.7976931348623157e308"
	}
	if value == 0 {
		value = 0 // -0 is 0, also in the canonical form
	}
	return value, ""
}

// decimal reports whether text consists of a sign, digits with a point, and an exponent, where
// everything except the digits is optional. What strconv accepts in addition (inf, nan,
// hexadecimal, underscores) is a mistake in a threshold.
func decimal(text string) bool {
	rest := sign(text)
	whole := digits(rest)
	rest = rest[whole:]
	fraction := 0
	if rest != "" && rest[0] == '.' {
		fraction = digits(rest[1:])
		rest = rest[1+fraction:]
	}
	if whole+fraction == 0 {
		return false
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent := sign(rest[1:])
	return exponent != "" && digits(exponent) == len(exponent)
}

// sign returns text without a leading sign.
func sign(text string) string {
	if text != "" && (text[0] == '+' || text[0] == '-') {
		return text[1:]
	}
	return text
}

// digits counts the digits that text starts with.
func digits(text string) int {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}

// Name returns the name of the metric.
func (m Metric) Name() string { return m.name }

// String returns the original text.
func (m Metric) String() string { return m.text }

// Canonical returns the canonical form of the constraint: one spelling of the operator and the
// shortest form of the number. It parses to the same constraint.
func (m Metric) Canonical() string {
	if m.operator == "" {
		return ""
	}
	return m.name + " " + string(m.operator) + " " + number(m.value)
}

// Match reports whether the value satisfies the constraint. ok = false means that the metric is
// missing or failing: it then satisfies no constraint, including negated ones. Neither does a value
// that is not finite.
func (m Metric) Match(value float64, ok bool) bool {
	if !ok || math.IsNaN(value) || math.IsInf(value, 0) {
		return false
	}
	switch m.operator {
	case Equal:
		return value == m.value
	case NotEqual:
		return value != m.value
	case Greater:
		return value > m.value
	case GreaterOrEqual:
		return value >= m.value
	case Less:
		return value < m.value
	case LessOrEqual:
		return value <= m.value
	default:
		return false
	}
}

// Explain says briefly why the value does not match, or returns "".
func (m Metric) Explain(value float64, ok bool) string {
	switch {
	case m.Match(value, ok):
		return ""
	case !ok:
		return "metric " + strconv.Quote(m.name) + " has no value"
	default:
		return "metric " + strconv.Quote(m.name) + " is " + number(value) + ", wanted " + strconv.Quote(m.text)
	}
}

func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

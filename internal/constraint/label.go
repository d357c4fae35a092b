package constraint

import (
	"slices"
	"strconv"
	"strings"
)

// Label is a constraint on the value of one label. Create it with ParseLabel; the zero value
// matches nothing.
type Label struct {
	text     string
	key      string
	operator Operator
	values   []string
}

// ParseLabel parses a label constraint. The error is a *SyntaxError.
//
//	<key> is | = | == <value>
//	<key> is not | != <value>
//	<key> in (<value>, ...)
//	<key> not in (<value>, ...)
//
// Words are separated by spaces, tabs or line breaks, which are optional around symbols. Keywords
// are lower case and not reserved: "is is not" compares the label "is" with "not". A list may end
// in commas, but must not be empty.
func ParseLabel(text string) (Label, error) {
	s := &scanner{dialect: &labelDialect, text: text}
	key, err := s.subject()
	if err != nil {
		return Label{}, err
	}
	op, err := s.operator(key)
	if err != nil {
		return Label{}, explainOrder(s, key, err)
	}

	operands := make([]token, 0, 8)
	if op.operator == In || op.operator == NotIn {
		operands, err = s.list(op, operands)
	} else {
		op, operands, err = s.single(key, op, operands)
	}
	if err != nil {
		return Label{}, err
	}

	if at, fault := checkKey(key.text, "label key"); fault != "" {
		return Label{}, s.fail(Key, key.at+at, fault)
	}
	values := make([]string, len(operands))
	for i, t := range operands {
		if at, fault := checkName(t.text, "label value", maxName); fault != "" {
			return Label{}, s.fail(Value, t.at+at, fault)
		}
		values[i] = t.text
	}
	return Label{text: text, key: key.text, operator: op.operator, values: values}, nil
}

// explainOrder reports a "<" or ">", which labels do not support. It is scanned as part of a word,
// so the plain error would be misleading.
func explainOrder(s *scanner, key token, plain *SyntaxError) *SyntaxError {
	at := strings.IndexAny(s.text[key.at:s.pos], "<>")
	if at < 0 {
		return plain
	}
	return s.fail(Grammar, key.at+at, "labels can only be compared for equality, only metrics by order", plain.Expected...)
}

// single parses the single value after an equality operator, and the end.
func (s *scanner) single(key token, op spelling, operands []token) (spelling, []token, *SyntaxError) {
	t := s.next()
	if t.end() && len(op.tokens) == 2 {
		// "location is not" compares with the value "not".
		last := op.tokens[1]
		at := strings.LastIndex(s.text, last)
		return labelDialect.spellings[0], append(operands, token{text: last, at: at, word: true}), nil
	}
	if !t.word {
		return op, nil, s.notOperand(op.String(), t)
	}
	extra := s.next()
	switch {
	case extra.end():
		return op, append(operands, t), nil
	case extra.text == "(" && t.text == "in" && op.tokens[0] == "is":
		right := strings.TrimPrefix(op.String()+" in", "is ")
		after := key.at + len(key.text)
		at := after + strings.Index(s.text[after:], "is")
		return op, nil, s.fail(Grammar, at, quote("is "+right)+` is not an operator: leave out "is"`, right)
	case extra.text == ",":
		return op, nil, s.fail(Grammar, extra.at, quote(op.String())+` takes only one value: for several, write "in (a, b)" or "not in (a, b)"`, "the end")
	default:
		return op, nil, s.fail(Grammar, extra.at, "unexpected "+quote(extra.text)+" after the end of the constraint", "the end")
	}
}

// list parses the values in parentheses, and the end.
func (s *scanner) list(op spelling, operands []token) ([]token, *SyntaxError) {
	open := s.next()
	if open.text != "(" {
		return nil, s.listFault("after "+quote(op.String()), open, "(")
	}
	for commas := 1; ; { // like a comma, the opening parenthesis allows a value next
		t := s.next()
		switch {
		case t.word && commas == 1:
			operands = append(operands, t)
			commas = 0
		case len(operands) == 0:
			return nil, s.listFault("in the list", t, "a value")
		case t.text == ",":
			commas++
		case t.text == ")":
			if extra := s.next(); !extra.end() {
				return nil, s.fail(Grammar, extra.at, "unexpected "+quote(extra.text)+" after the end of the constraint", "the end")
			}
			return operands, nil
		case commas == 1:
			return nil, s.listFault("in the list", t, "a value", ",", ")")
		default:
			return nil, s.listFault("in the list", t, ",", ")")
		}
	}
}

// listFault says what is missing in a list.
func (s *scanner) listFault(where string, t token, expected ...string) *SyntaxError {
	message := alternatives(expected) + " is missing " + where
	if !t.end() {
		message += ", found " + quote(t.text)
	}
	return s.fail(Grammar, t.at, message, expected...)
}

// Key returns the key of the label.
func (l Label) Key() string { return l.key }

// Operator returns the operator.
func (l Label) Operator() Operator { return l.operator }

// Values returns the values as written, including order and duplicates. An equality has one. The
// caller must not modify them.
func (l Label) Values() []string { return l.values }

// String returns the original text.
func (l Label) String() string { return l.text }

// Canonical returns the canonical form of the constraint: one spelling of the operator, lists
// sorted and without duplicates. It parses to a constraint that matches the same labels.
func (l Label) Canonical() string {
	if l.operator == "" {
		return ""
	}
	head := l.key + " " + string(l.operator) + " "
	if l.operator == Equal || l.operator == NotEqual {
		return head + l.values[0]
	}
	values := slices.Compact(slices.Sorted(slices.Values(l.values)))
	return head + "(" + strings.Join(values, ", ") + ")"
}

// Match reports whether the labels satisfy the constraint. An absent label satisfies no constraint,
// including negated ones.
func (l Label) Match(labels map[string]string) bool {
	value, present := labels[l.key]
	if !present {
		return false
	}
	switch l.operator {
	case Equal, In:
		return slices.Contains(l.values, value)
	case NotEqual, NotIn:
		return !slices.Contains(l.values, value)
	default:
		return false
	}
}

// Explain says briefly why the labels do not match, or returns "".
func (l Label) Explain(labels map[string]string) string {
	if l.Match(labels) {
		return ""
	}
	value, present := labels[l.key]
	if !present {
		return "label " + strconv.Quote(l.key) + " is absent"
	}
	return "label " + strconv.Quote(l.key) + " is " + strconv.Quote(value) + ", wanted " + strconv.Quote(l.text)
}

package constraint

import "strings"

// token is a word or a symbol of a constraint; the empty token is the end.
type token struct {
	text string
	at   int // offset in bytes
	word bool
}

func (t token) end() bool { return t.text == "" }

// scanner splits a text into tokens. It does not distinguish keywords from names: keywords are not
// reserved, so only the position of a word determines its meaning.
type scanner struct {
	dialect *dialect
	text    string
	pos     int
}

func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func (s *scanner) next() token {
	for s.pos < len(s.text) && blank(s.text[s.pos]) {
		s.pos++
	}
	start := s.pos
	if start == len(s.text) {
		return token{at: start}
	}
	if n := s.symbol(); n > 0 {
		s.pos += n
		return token{text: s.text[start:s.pos], at: start}
	}
	for s.pos < len(s.text) && !blank(s.text[s.pos]) && !s.delimiter(s.text[s.pos]) {
		s.pos++
	}
	return token{text: s.text[start:s.pos], at: start, word: true}
}

// symbol returns the length of the longest symbol at the current position, or 0.
func (s *scanner) symbol() int {
	if !s.delimiter(s.text[s.pos]) {
		return 0
	}
	for _, pair := range s.dialect.pairs {
		if strings.HasPrefix(s.text[s.pos:], pair) {
			return len(pair)
		}
	}
	return 1
}

func (s *scanner) delimiter(c byte) bool {
	return strings.IndexByte(s.dialect.delimiters, c) >= 0
}

// subject scans the word that starts a constraint.
func (s *scanner) subject() (token, *SyntaxError) {
	t := s.next()
	if t.word {
		return t, nil
	}
	message := "a " + s.dialect.subject + " is missing"
	if !t.end() {
		message += " before " + quote(t.text)
	}
	return token{}, s.fail(Grammar, t.at, message, "a "+s.dialect.subject)
}

// operator scans the operator after the subject: the longest matching spelling. A partial spelling
// must be completed ("greater than or" needs "equal"), because what follows could not be an
// operand.
func (s *scanner) operator(subject token) (spelling, *SyntaxError) {
	d := s.dialect
	live := uint32(1)<<len(d.spellings) - 1 // spellings that match so far
	complete, after := -1, 0
	previous := subject
	for n := 0; ; n++ {
		t := s.next()
		matched := uint32(0)
		matchedWhole := -1
		for i, candidate := range d.spellings {
			if live&(1<<i) == 0 || len(candidate.tokens) <= n || candidate.tokens[n] != t.text {
				continue
			}
			matched |= 1 << i
			if len(candidate.tokens) == n+1 {
				matchedWhole = i
			}
		}
		switch {
		case matched != 0:
			live, complete, after, previous = matched, matchedWhole, s.pos, t
		case complete >= 0:
			s.pos = after
			return d.spellings[complete], nil
		case n == 0:
			return spelling{}, s.fail(Grammar, t.at, s.noOperator(subject, t), d.operators()...)
		default:
			return spelling{}, s.halfOperator(live, n, previous, t)
		}
	}
}

// noOperator says why the token after the subject is not an operator.
func (s *scanner) noOperator(subject, t token) string {
	if t.end() {
		return "an operator is missing after " + quote(subject.text)
	}
	message := quote(t.text) + " is not an operator"
	if !t.word {
		return message
	}
	lower := strings.ToLower(t.text)
	longest, apart := 0, ""
	for _, candidate := range s.dialect.spellings {
		if lower == candidate.tokens[0] {
			return message + ": operators are written in lower case"
		}
		glued := strings.Join(candidate.tokens, "")
		if len(glued) > longest && strings.HasPrefix(t.text, glued) {
			longest, apart = len(glued), candidate.String()
		}
	}
	if apart != "" {
		message += ": put spaces around " + quote(apart)
	}
	return message
}

// halfOperator says how a partial operator continues.
func (s *scanner) halfOperator(live uint32, n int, previous, t token) *SyntaxError {
	wanted := ""
	for i, candidate := range s.dialect.spellings {
		if live&(1<<i) != 0 && len(candidate.tokens) > n {
			wanted = candidate.tokens[n] // the same in all that share the prefix
		}
	}
	message := quote(wanted) + " is missing after " + quote(previous.text)
	if !t.end() {
		message += ", found " + quote(t.text)
	}
	return s.fail(Grammar, t.at, message, wanted)
}

// notOperand reports a symbol or the end in place of an operand.
func (s *scanner) notOperand(after string, t token) *SyntaxError {
	message := "a " + s.dialect.operand + " is missing after " + quote(after)
	if !t.end() {
		message += ", found " + quote(t.text)
	}
	if after == "is" && s.dialect.begins(t.text) {
		message += `: leave out "is"`
	}
	return s.fail(Grammar, t.at, message, "a "+s.dialect.operand)
}

// fail returns the error for the character at a byte offset.
func (s *scanner) fail(kind ErrorKind, at int, message string, expected ...string) *SyntaxError {
	return newSyntaxError(s.text, at, kind, message, expected)
}

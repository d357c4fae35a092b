package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// errNotJSON says that a document is not JSON.
var errNotJSON = errors.New("the document is not JSON")

// step is one step of the JSON pointers (RFC 6901) into a document, with what is there. The
// document itself is not kept: decoded values need more memory than text, and the sender determines
// their number.
type step struct {
	next    map[string]*step
	what    string // description of what is there; "" = nothing
	literal string // of a number or a string
}

// values reads the values at pointers from a document, in a single pass.
func values(document io.Reader, pointers []string) (*step, error) {
	root := &step{}
	for _, pointer := range pointers {
		at := root
		for _, name := range steps(pointer) {
			if at.next == nil {
				at.next = map[string]*step{}
			}
			if at.next[name] == nil {
				at.next[name] = &step{}
			}
			at = at.next[name]
		}
	}
	decoder := json.NewDecoder(document)
	decoder.UseNumber()
	err := root.read(decoder)
	if err == nil {
		if _, err = decoder.Token(); err == nil {
			return nil, errNotJSON // trailing data
		}
		if errors.Is(err, io.EOF) {
			return root, nil
		}
	}
	if _, syntax := errors.AsType[*json.SyntaxError](err); syntax || errors.Is(err, io.EOF) {
		return nil, errNotJSON
	}
	return nil, err
}

// steps splits a pointer.
func steps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	list := strings.Split(pointer, "/")[1:]
	for i, name := range list {
		list[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	return list
}

// read reads what is there, as deep as pointers lead.
func (s *step) read(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		return s.readInside(decoder, t)
	case json.Number:
		s.what, s.literal = "a number", t.String()
	case string:
		s.what, s.literal = "a text", t
	case bool:
		s.what = "the boolean " + strconv.FormatBool(t)
	default:
		s.what = "null"
	}
	return nil
}

func (s *step) readInside(decoder *json.Decoder, begin json.Delim) error {
	if s.what = "an object"; begin == '[' {
		s.what = "an array"
	}
	for i := 0; decoder.More(); i++ {
		name := strconv.Itoa(i)
		if begin == '{' {
			key, err := decoder.Token()
			if err != nil {
				return err
			}
			name = fmt.Sprint(key)
		}
		next := s.next[name]
		if next == nil {
			if err := decoder.Decode(&skipped{}); err != nil {
				return err
			}
			continue
		}
		next.clear() // if a name is repeated, the last one counts
		if err := next.read(decoder); err != nil {
			return err
		}
	}
	_, err := decoder.Token() // the end, or a truncated document
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *step) clear() {
	s.what, s.literal = "", ""
	for _, next := range s.next {
		next.clear()
	}
}

// skipped decodes any value and keeps nothing.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// number returns the value at a pointer. A string that contains a number is accepted, because many
// services write prices that way. Errors do not repeat text of the document.
func (s *step) number(pointer string) (float64, error) {
	at, path := s, ""
	for _, name := range steps(pointer) {
		if at.next[name].what == "" {
			return 0, fmt.Errorf("there is no value at %q: %q is %s without %q", pointer, path, at.what, name)
		}
		at = at.next[name]
		path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	if at.what != "a number" && (at.what != "a text" || !isNumber(at.literal)) {
		return 0, fmt.Errorf("the value at %q is %s; it should be a number", pointer, at.what)
	}
	value, err := strconv.ParseFloat(at.literal, 64)
	if err != nil {
		return 0, fmt.Errorf("the value at %q is too large a number", pointer)
	}
	return value, nil
}

// isNumber checks JSON syntax, which has no NaN and no infinity.
func isNumber(text string) bool {
	return text != "" && strings.ContainsRune("-0123456789", rune(text[0])) && json.Valid([]byte(text))
}

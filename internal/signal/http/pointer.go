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

// step is one step of the JSON pointers (RFC 6901) into a document, and what is there. A
// document itself is never kept: it is larger as values than as text, and whoever sends
// it says how much.
type step struct {
	next    map[string]*step
	what    string // is there, in words; "" = nothing
	literal string // of a number or a text
}

// values reads the values that pointers lead to out of a document, in one pass.
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
			return nil, errNotJSON // something comes after it
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

// steps takes a pointer apart.
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

// read takes in what is there, as deep as pointers lead.
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
		next.clear() // of several members of one name the last counts
		if err := next.read(decoder); err != nil {
			return err
		}
	}
	_, err := decoder.Token() // the end, or that the document broke off
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

// skipped takes in any value, and keeps nothing of it.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// number is the value that a pointer leads to. A text that holds a number counts: many
// services write prices that way. What the document says itself is not repeated.
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
		return 0, fmt.Errorf("the value at %q is a number that is too large to compute with", pointer)
	}
	return value, nil
}

// isNumber applies the syntax of JSON, which has no NaN and no infinity.
func isNumber(text string) bool {
	return text != "" && strings.ContainsRune("-0123456789", rune(text[0])) && json.Valid([]byte(text))
}

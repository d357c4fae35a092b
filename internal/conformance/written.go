package conformance

import (
	"encoding/json"
	"fmt"
)

// Written is what a driver's own type of case begins with, where the driver
// translates its cases into objects.
type Written struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Source string `json:"source"`
	// Raw is the whole case, as it is written.
	Raw json.RawMessage `json:"-"`
}

func (w *Written) written() *Written { return w }

// Document is a type of case that begins with Written.
type Document[C any] interface {
	*C
	written() *Written
}

// ReadCases reads the cases that a driver plays, and then those of a file of its
// own.
func ReadCases[C any, D Document[C]](driver string, own []byte) ([]C, error) {
	cases, err := Of(driver)
	if err != nil {
		return nil, err
	}
	var documents []json.RawMessage
	for i := range cases {
		documents = append(documents, cases[i].Raw)
	}
	more, err := documentsOf(own)
	if err != nil {
		return nil, err
	}
	documents = append(documents, more...)
	out := make([]C, len(documents))
	seen := map[string]bool{}
	for i, raw := range documents {
		c, err := ReadCase[C, D](raw)
		if err != nil {
			return nil, err
		}
		id := D(c).written().ID
		if seen[id] {
			return nil, fmt.Errorf("read the cases: %s is there twice", id)
		}
		seen[id] = true
		out[i] = *c
	}
	return out, nil
}

// ReadCase reads one case. A field that is not known is an error: what is not read
// is not compared.
func ReadCase[C any, D Document[C]](raw json.RawMessage) (*C, error) {
	c := new(C)
	if err := Decode(raw, c); err != nil {
		return nil, fmt.Errorf("read a case: %w", err)
	}
	D(c).written().Raw = raw
	return c, nil
}

// Unread are the fields of cases, at any depth, that may have another value and
// nothing of what is laid before whoever decides is another; laid tells all of
// that. meansTheSame names the fields of which that is true on purpose.
func Unread[C any, D Document[C]](cases []C, laid func(*C) (string, error), meansTheSame func(c *C, path string) bool) ([]string, error) {
	var out []string
	for i := range cases {
		c := &cases[i]
		written := D(c).written()
		is, err := laid(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", written.ID, err)
		}
		variants, err := Variants(written.Raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", written.ID, err)
		}
		for _, v := range variants {
			if v.Change != Other || meansTheSame(c, v.Path) {
				continue // what is there is read; what is missing may be the default
			}
			other, err := ReadCase[C, D](v.Document)
			if err != nil {
				continue // that is noticed
			}
			if was, err := laid(other); err == nil && was == is {
				out = append(out, written.ID+v.Path)
			}
		}
	}
	return out, nil
}

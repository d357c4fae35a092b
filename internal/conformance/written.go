package conformance

import (
	"encoding/json"
	"fmt"
)

// Written is embedded in a driver's own type of case, if the driver translates its cases into objects.
type Written struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Source string `json:"source"`
	// Raw is the whole case, as written.
	Raw json.RawMessage `json:"-"`
}

func (w *Written) written() *Written { return w }

// Document is a type of case that embeds Written.
type Document[C any] interface {
	*C
	written() *Written
}

// ReadCases reads the cases that a driver runs, and then those in its own file.
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

// ReadCase reads one case. An unknown field is an error, because it would not be compared.
func ReadCase[C any, D Document[C]](raw json.RawMessage) (*C, error) {
	c := new(C)
	if err := Decode(raw, c); err != nil {
		return nil, fmt.Errorf("read a case: %w", err)
	}
	D(c).written().Raw = raw
	return c, nil
}

// Unread returns the fields of cases, at any depth, whose value does not affect the translation, which laid returns.
// meansTheSame names the fields for which this is intended.
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
				continue // existing fields are read; missing ones may have the default
			}
			other, err := ReadCase[C, D](v.Document)
			if err != nil {
				continue // that is detected
			}
			if was, err := laid(other); err == nil && was == is {
				out = append(out, written.ID+v.Path)
			}
		}
	}
	return out, nil
}

package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DecodeDocument decodes any JSON: nil, bool, string, json.Number, []any or map[string]any. Numbers
// stay text, because float64 cannot represent all integers beyond 2^53. If a field is repeated, the
// last one is used. Use this function for documents whose fields are not known in advance.
func DecodeDocument(data []byte) (document any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON document")
	}
	return document, nil
}

// EachPlace calls f for every place where a document has a field: "a.*.b", where "*" is every element of
// a list or map. f gets the object that has it, its name there, and the place: a[0].b.
func EachPlace(document any, field string, f func(in map[string]any, name, at string)) {
	eachPlace(document, strings.Split(field, "."), "", f)
}

func eachPlace(in any, steps []string, at string, f func(in map[string]any, name, at string)) {
	switch in := in.(type) {
	case map[string]any:
		if steps[0] == "*" {
			for name, element := range in {
				eachPlace(element, steps[1:], fmt.Sprintf("%s[%q]", at, name), f)
			}
			return
		}
		value, has := in[steps[0]]
		at = strings.TrimPrefix(at+"."+steps[0], ".")
		switch {
		case has && len(steps) == 1:
			f(in, steps[0], at)
		case has:
			eachPlace(value, steps[1:], at, f)
		}
	case []any:
		for i, element := range in {
			eachPlace(element, steps[1:], fmt.Sprintf("%s[%d]", at, i), f)
		}
	}
}

package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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

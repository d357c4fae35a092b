package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// DecodeDocument reads JSON of any shape: nil, bool, string, json.Number, []any
// or map[string]any. Numbers keep their text: as float64, whole numbers beyond
// 2^53 would become others. Code that has to look into a document whose fields
// it does not know reads it with this function; of repeated fields the last one
// counts.
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

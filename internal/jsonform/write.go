// Package jsonform writes values in the JSON that the API and the store use: what
// encoding/json writes without escaping HTML, in less time.
package jsonform

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// form has the library write as encoding/json does. What is not valid UTF-8 is replaced by
// the same character, which is not escaped; a json.Number is a string.
var form = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false))

// Write appends the JSON of a value to a buffer.
func Write(into *bytes.Buffer, value any) error { return json.MarshalWrite(into, value, form) }

// Marshal is the JSON of a value.
func Marshal(value any) ([]byte, error) { return json.Marshal(value, form) }

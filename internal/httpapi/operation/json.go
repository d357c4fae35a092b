package operation

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/danielgtaylor/huma/v2"
)

// EncodeJSON renders an answer; what the API shows always has a JSON form.
func EncodeJSON(v any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return []byte(`{"title":"Internal Server Error","status":500}`)
	}
	return buffer.Bytes()
}

// JSONFormat streams answers the same way.
var JSONFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(v)
	},
	Unmarshal: json.Unmarshal,
}

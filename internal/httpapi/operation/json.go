package operation

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/jsonform"
)

// EncodeJSON encodes a response; everything that the API shows can be encoded.
func EncodeJSON(v any) []byte {
	text, err := jsonform.Marshal(v)
	if err != nil {
		return []byte(`{"title":"Internal Server Error","status":500}`)
	}
	return append(text, '\n')
}

// Streamed is an answer that writes its JSON itself, piece by piece.
type Streamed interface {
	WriteJSON(w io.Writer) error
}

// JSONFormat writes answers the same way.
var JSONFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		if streamed, ok := v.(Streamed); ok {
			return streamed.WriteJSON(w)
		}
		buffer := BorrowBuffer()
		defer GiveBack(buffer)
		if err := jsonform.Write(buffer, v); err != nil {
			return err
		}
		buffer.WriteByte('\n')
		_, err := w.Write(buffer.Bytes())
		return err
	},
	Unmarshal: json.Unmarshal,
}

// maxBuffer is how much memory of a buffer is kept for the next answer.
const maxBuffer = 128 << 10

// buffers hold answers, or pieces of them, until they are written.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// BorrowBuffer returns an empty buffer for an answer, or a piece of one.
func BorrowBuffer() *bytes.Buffer {
	buffer, ok := buffers.Get().(*bytes.Buffer)
	if !ok {
		return &bytes.Buffer{} // nothing else is in the pool
	}
	buffer.Reset()
	return buffer
}

// GiveBack ends the use of a buffer.
func GiveBack(buffer *bytes.Buffer) {
	if buffer.Cap() <= maxBuffer {
		buffers.Put(buffer)
	}
}

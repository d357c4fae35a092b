package operation

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/jsontext"
)

// EncodeJSON renders an answer; what the API shows always has a JSON form.
func EncodeJSON(v any) []byte {
	text, err := jsontext.Append(nil, v)
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
		defer buffer.GiveBack()
		var err error
		if buffer.Text, err = jsontext.Append(buffer.Text, v); err != nil {
			return err
		}
		buffer.Text = append(buffer.Text, '\n')
		_, err = w.Write(buffer.Text)
		return err
	},
	Unmarshal: json.Unmarshal,
}

// Buffer holds an answer, or a piece of one, until it is written.
type Buffer struct{ Text []byte }

// maxBuffer is how much memory of a buffer is kept for the next answer.
const maxBuffer = 128 << 10

var buffers = sync.Pool{New: func() any { return &Buffer{} }}

// BorrowBuffer returns an empty buffer.
func BorrowBuffer() *Buffer {
	buffer, ok := buffers.Get().(*Buffer)
	if !ok {
		buffer = &Buffer{} // nothing else is in the pool
	}
	buffer.Text = buffer.Text[:0]
	return buffer
}

// GiveBack ends the use of a buffer.
func (b *Buffer) GiveBack() {
	if cap(b.Text) <= maxBuffer {
		buffers.Put(b)
	}
}

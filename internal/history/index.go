package history

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// index describes a chunk, so that it is read only if it may have what is looked for.
type index struct {
	// Number is that of the chunk.
	Number int64 `json:"number"`
	// First and Last are the lowest and the highest revision.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Since and Until are the earliest and the latest time.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Records is how many there are; of inputs, how many values.
	Records int64 `json:"records"`
	// Bytes is what the chunk takes in the store.
	Bytes int64 `json:"bytes"`
	// Bases are the parts of complete fleets in a chunk of inputs.
	Bases []base `json:"bases,omitempty"`

	words filter
}

// saw extends the times of the chunk.
func (i *index) saw(t time.Time) {
	if t.IsZero() {
		return
	}
	if i.Since.IsZero() || t.Before(i.Since) {
		i.Since = t
	}
	if t.After(i.Until) {
		i.Until = t
	}
}

// encode returns the value of an index.
func (i *index) encode() ([]byte, error) {
	text, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("encode the index of a chunk: %w", err)
	}
	return append(append(binary.AppendUvarint(nil, uint64(len(text))), text...), i.words...), nil
}

func decodeIndex(encoded []byte) (index, error) {
	r := reader{encoded, nil}
	text := r.bytes()
	if r.err != nil {
		return index{}, fmt.Errorf("%w: this is not the index of a chunk", store.ErrDamaged)
	}
	var i index
	if err := json.Unmarshal(text, &i); err != nil {
		return index{}, fmt.Errorf("%w: the index of a chunk: %w", store.ErrDamaged, err)
	}
	i.words = r.rest
	return i, nil
}

// indexLog describes a chunk of records.
func indexLog(number int64, values []value) index {
	i := index{Number: number}
	words := map[string]struct{}{}
	for n, v := range values {
		if n == 0 {
			i.First = v.revision
		}
		i.Last = v.revision
		records, _, err := store.HistoryRecords(v.data)
		if err != nil {
			continue // read as a gap
		}
		for _, record := range records {
			i.Records++
			t, err := decodeTags(record)
			if err != nil {
				continue
			}
			i.saw(t.Time)
			for _, word := range t.words() {
				words[word] = struct{}{}
			}
		}
	}
	i.words = newFilter(words)
	return i
}

// indexInputs describes a chunk of inputs.
func indexInputs(number int64, values []value) index {
	i := index{Number: number, Records: int64(len(values))}
	for n, v := range values {
		if n == 0 {
			i.First = v.revision
		}
		i.Last = v.revision
		p, _, _, err := decodeHeader(v.data)
		if err != nil {
			continue
		}
		i.saw(p.time)
		i.Bases = addBase(i.Bases, p, v.revision)
	}
	return i
}

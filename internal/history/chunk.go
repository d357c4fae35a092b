package history

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// value is one value of a journal, hot or in a chunk. Its data is empty if it was damaged.
type value struct {
	revision int64
	data     []byte
}

// chunkForm is the first byte of a chunk, before compression.
const chunkForm = 1

// maxChunk limits the size of a decompressed chunk.
const maxChunk = 64 << 20

// Encoders and decoders have no state between calls of EncodeAll and DecodeAll. The errors would be
// those of the options.
var (
	chunkEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	chunkDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxChunk))
)

// packChunk makes a chunk of values, which are in the order of their revisions.
func packChunk(values []value) []byte {
	plain := []byte{chunkForm}
	last := int64(0)
	for _, v := range values {
		plain = binary.AppendUvarint(plain, uint64(v.revision-last))
		plain = binary.AppendUvarint(plain, uint64(len(v.data)))
		plain = append(plain, v.data...)
		last = v.revision
	}
	return chunkEncoder.EncodeAll(plain, nil)
}

var errNoChunk = fmt.Errorf("%w: this is not a chunk of the history", store.ErrDamaged)

// unpackChunk returns the values of a chunk. They share memory.
func unpackChunk(packed []byte) ([]value, error) {
	plain, err := chunkDecoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoChunk, err)
	}
	if len(plain) == 0 || plain[0] != chunkForm {
		return nil, errNoChunk
	}
	r := reader{plain[1:], nil}
	var values []value
	last := int64(0)
	for len(r.rest) > 0 {
		last += int64(r.number())
		v := value{last, r.bytes()}
		if r.err != nil || last < 0 {
			return nil, errNoChunk
		}
		values = append(values, v)
	}
	return values, nil
}

// reader reads numbers, and bytes with their length before them.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) number() uint64 {
	n, length := binary.Uvarint(r.rest)
	if length <= 0 {
		r.rest, r.err = nil, errNoChunk
		return 0
	}
	r.rest = r.rest[length:]
	return n
}

// bytes returns a part of the memory that is read.
func (r *reader) bytes() []byte {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.rest, r.err = nil, errNoChunk
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.err = errNoChunk
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Every value is stored in an envelope: a marker, the CRC-32C of key and value, and the value. A
// value that was modified on disk, or is stored under another key, is detected whenever it is read.
// A value is compressed if that makes it smaller; the marker says which.
const (
	// Neither JSON, gzip nor text starts with a marker, and a single bit error turns neither of
	// them into a marker, nor one marker into the other.
	envelopeMark   = 0x84
	compressedMark = 0x87

	envelopeHead = 1 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key []byte, value ...[]byte) uint32 {
	sum := crc32.Checksum(key, castagnoli)
	for _, part := range value {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// putValue writes a value. All values are written by putValue or enclose, except the format number, which every
// program must be able to read.
func putValue(key string, value []byte) clientv3.Op {
	if len(value) <= maxCompressed {
		scratch := scratches.Get().(*[]byte) //nolint:forcetypeassert // nothing else is in there
		defer scratches.Put(scratch)
		*scratch = slices.Grow((*scratch)[:0], envelopeHead+maxPacked(value))[:envelopeHead]
		if packed := compress(*scratch, value); packed != nil {
			packed[0] = compressedMark
			binary.BigEndian.PutUint32(packed[1:], checksum([]byte(key), packed[:1], packed[envelopeHead:]))
			return putBytes(key, slices.Clone(packed))
		}
	}
	return enclose(key, value)
}

// scratches is the room to compress in: that of a value is several times what it takes
// once it is compressed.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// enclose writes a value without compressing it: every program can read it, whatever dictionaries it
// has.
func enclose(key string, value []byte) clientv3.Op {
	packed := make([]byte, envelopeHead+len(value))
	packed[0] = envelopeMark
	binary.BigEndian.PutUint32(packed[1:], checksum([]byte(key), value))
	copy(packed[envelopeHead:], value)
	return putBytes(key, packed)
}

func putBytes(key string, value []byte) clientv3.Op {
	op := clientv3.OpPut(key, "")
	op.WithValueBytes(value)
	return op
}

var (
	errNoEnvelope    = errors.New("its checksum is missing")
	errWrongChecksum = errors.New("its checksum does not match")
)

// splitEnvelope returns the checksum in an envelope, and what it covers besides the key.
func splitEnvelope(v []byte) (sum uint32, covered [][]byte, ok bool) {
	if len(v) < envelopeHead || v[0] != envelopeMark && v[0] != compressedMark {
		return 0, nil, false
	}
	covered = [][]byte{nil, v[envelopeHead:]}
	if v[0] == compressedMark {
		covered[0] = v[:1]
	}
	return binary.BigEndian.Uint32(v[1:]), covered, true
}

// openEnvelope returns the value in an envelope.
func openEnvelope(kv *mvccpb.KeyValue) ([]byte, error) {
	v := kv.Value
	if len(v) == 0 || v[0] != envelopeMark && v[0] != compressedMark {
		return nil, errNoEnvelope
	}
	switch sum, covered, ok := splitEnvelope(v); {
	case !ok || sum != checksum(kv.Key, covered...):
		return nil, errWrongChecksum
	case v[0] == compressedMark:
		return decompress(v[envelopeHead:])
	}
	return v[envelopeHead:], nil
}

// toRecord converts a key-value pair of etcd to a record.
func toRecord(kv *mvccpb.KeyValue) (Record, error) {
	key, part, err := parseKey(kv.Key)
	if err != nil {
		return Record{}, err
	}
	record := Record{Key: key, Part: part, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision}
	if record.Value, err = openEnvelope(kv); err != nil {
		record.Damage = fmt.Errorf("%w: the %s of %s, written at revision %d: %w", ErrDamaged, part, key, kv.ModRevision, err)
		record.Value = []byte{} // neither deleted nor decodable
	}
	return record, nil
}

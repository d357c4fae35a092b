package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Every value is stored in an envelope: envelopeMark, the CRC-32C of the key and
// the value, and the value. So a value that was changed on the disk, or stands
// under another key, is found out wherever it is read. Values from before format
// 2 have none and stay as they are until they are written again.
const (
	// envelopeMark begins no JSON and no gzip, nor does any text; a single wrong
	// bit makes neither of them of it.
	envelopeMark = 0x84
	envelopeHead = 1 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// envelopes knows since which revision every value has an envelope; what is
// older may have none. noEnvelopes is for a store of format 1 that cannot be
// brought to format 2 now.
type envelopes int64

const noEnvelopes envelopes = math.MaxInt64

// put writes a value in its envelope. It is the only place that writes one, but
// for the number of the format, which older programs must be able to read.
func (e envelopes) put(key string, value []byte) clientv3.Op {
	op := clientv3.OpPut(key, "")
	if e == noEnvelopes {
		op.WithValueBytes(value)
		return op
	}
	packed := make([]byte, envelopeHead+len(value))
	packed[0] = envelopeMark
	binary.BigEndian.PutUint32(packed[1:], checksum([]byte(key), value))
	copy(packed[envelopeHead:], value)
	op.WithValueBytes(packed)
	return op
}

var (
	errNoEnvelope    = errors.New("its checksum is missing")
	errWrongChecksum = errors.New("its checksum does not match")
)

// open returns the value that was put under a key.
func (e envelopes) open(kv *mvccpb.KeyValue) ([]byte, error) {
	switch v := kv.Value; {
	case len(v) == 0 || v[0] != envelopeMark:
		if kv.ModRevision < int64(e) && len(v) > 0 {
			return v, nil
		}
		return nil, errNoEnvelope
	case len(v) < envelopeHead:
		return nil, errWrongChecksum
	case binary.BigEndian.Uint32(v[1:]) != checksum(kv.Key, v[envelopeHead:]):
		return nil, errWrongChecksum
	default:
		return v[envelopeHead:], nil
	}
}

// toRecord turns what etcd returns into a record.
func (e envelopes) toRecord(kv *mvccpb.KeyValue) (Record, error) {
	key, part, err := parseKey(kv.Key)
	if err != nil {
		return Record{}, err
	}
	record := Record{Key: key, Part: part, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision}
	if record.Value, err = e.open(kv); err != nil {
		record.Damage = fmt.Errorf("%w: the %s of %s, written at revision %d: %w", ErrDamaged, part, key, kv.ModRevision, err)
		record.Value = []byte{} // neither deleted nor anything that can be decoded
	}
	return record, nil
}

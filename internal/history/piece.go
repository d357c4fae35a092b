package history

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// piece is a hot value of the inputs: a part of a pass, or of a checkpoint. What is too large for one value
// is several pieces with the same ID; it counts once the last one is there.
type piece struct {
	// id tells the pieces of one pass or checkpoint from others.
	id     uint64
	number int
	last   bool
	// isPass says that a pass was made on it. A checkpoint is that of an earlier pass.
	isPass bool
	// whole says that it has all objects, not only those that have changed.
	whole bool
	// hasKeys says that the pieces have the keys of all objects; others are gone.
	hasKeys bool
	// revision is that of the fleet, time for which the pass decided.
	revision int64
	time     time.Time
	// from is the revision of the last piece of the pass that a checkpoint belongs to.
	from int64

	records []store.Record
	keys    []api.Key
}

// Forms of a piece, which are its first byte: what follows its header is as it is, or compressed with zstd. Pieces of
// forms 1 and 2, which no release wrote, also had the statuses that are in records.
const (
	plainPiece  = 3
	packedPiece = 4
)

// Flags of a piece.
const (
	flagLast = 1 << iota
	flagPass
	flagWhole
	flagKeys
)

const (
	// maxPiece is the size of a piece before compression, except for one with a single larger entry.
	maxPiece = 256 << 10
	// packedAbove is the size above which a piece is compressed here. Smaller ones are compressed by the store, and again,
	// better, together with others when they are sealed.
	packedAbove = 16 << 10
)

// pieceEncoder has no state between calls of EncodeAll. The error would be that of an option.
var pieceEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(2*maxPiece))

// encode returns the value of a piece with these entries, which it does not keep.
func (p *piece) encode(entries []byte) []byte {
	if len(entries) > packedAbove {
		return pieceEncoder.EncodeAll(entries, p.header(packedPiece))
	}
	return append(p.header(plainPiece), entries...)
}

// header returns the encoded piece without records and keys.
func (p *piece) header(form byte) []byte {
	flags := byte(0)
	for _, f := range []struct {
		flag byte
		set  bool
	}{{flagLast, p.last}, {flagPass, p.isPass}, {flagWhole, p.whole}, {flagKeys, p.hasKeys}} {
		if f.set {
			flags |= f.flag
		}
	}
	b := []byte{form, flags}
	for _, n := range []uint64{p.id, uint64(p.number), uint64(p.revision), uint64(p.time.UnixNano()), uint64(p.from)} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// A piece continues with entries: a byte that says which, and the key of the object.
const (
	entrySpec   = 1
	entryStatus = 2
	entryGone   = 3 // the object is deleted
	entryKey    = 4 // the object is there
)

func appendKey(b []byte, entry byte, key api.Key) []byte {
	b = append(b, entry)
	for _, text := range []string{string(key.Kind), key.Namespace, key.Name} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

// appendRecord appends one part of an object, or that the object is gone.
func appendRecord(b []byte, r store.Record) []byte {
	switch {
	case r.Value == nil && r.Part == store.Spec:
		return appendKey(b, entryGone, r.Key)
	case r.Part == store.Spec:
		b = appendKey(b, entrySpec, r.Key)
	default:
		b = appendKey(b, entryStatus, r.Key)
	}
	b = binary.AppendUvarint(b, uint64(r.CreateRevision))
	b = binary.AppendUvarint(b, uint64(r.ModRevision))
	b = binary.AppendUvarint(b, uint64(len(r.Value)))
	return append(b, r.Value...)
}

var errNoPiece = fmt.Errorf("%w: this is not a part of the inputs of a pass", store.ErrDamaged)

// ErrForm says that another program has recorded what a decision was made on.
var ErrForm = fmt.Errorf("%w: what this decision was made on was recorded by another version of the server, in a form that this one does not know", store.ErrDamaged)

// decodeHeader decodes a piece without its entries, which are what is left to read.
func decodeHeader(encoded []byte) (p piece, form byte, r reader, err error) {
	r = reader{encoded, nil}
	form, flags := r.byte(), r.byte()
	p = piece{
		last: flags&flagLast != 0, isPass: flags&flagPass != 0, whole: flags&flagWhole != 0, hasKeys: flags&flagKeys != 0,
		id: r.number(), number: int(r.number()), revision: int64(r.number()), time: time.Unix(0, int64(r.number())).UTC(), from: int64(r.number()),
	}
	switch {
	case r.err != nil:
		return piece{}, 0, r, errNoPiece
	case form != plainPiece && form != packedPiece:
		return piece{}, 0, r, ErrForm
	}
	return p, form, r, nil
}

// decodePiece decodes a piece. Its records may share memory with the encoded one.
func decodePiece(encoded []byte) (piece, error) {
	p, form, r, err := decodeHeader(encoded)
	if err != nil {
		return piece{}, err
	}
	if form == packedPiece {
		if r.rest, err = chunkDecoder.DecodeAll(r.rest, nil); err != nil {
			return piece{}, fmt.Errorf("%w: %w", errNoPiece, err)
		}
	}
	for r.err == nil && len(r.rest) > 0 {
		entry := r.byte()
		key := api.Key{Kind: api.Kind(r.bytes()), Namespace: string(r.bytes()), Name: string(r.bytes())}
		switch entry {
		case entryKey:
			p.keys = append(p.keys, key)
			continue
		case entryGone:
			p.records = append(p.records, store.Record{Key: key})
			continue
		case entrySpec, entryStatus:
		default:
			return piece{}, errNoPiece
		}
		record := store.Record{Key: key, Part: store.Spec, CreateRevision: int64(r.number()), ModRevision: int64(r.number()), Value: r.bytes()}
		if entry == entryStatus {
			record.Part = store.Status
		}
		p.records = append(p.records, record)
	}
	if r.err != nil {
		return piece{}, errNoPiece
	}
	return p, nil
}

// base is a complete fleet in the inputs, from which later ones are rebuilt: a checkpoint, or a
// pass with all objects.
type base struct {
	ID uint64 `json:"id"`
	// Revision is that of the fleet: the records after it have what was decided since.
	Revision int64 `json:"revision"`
	// From is the revision from which inputs must be read, except for this one, to rebuild what
	// comes after it.
	From int64 `json:"from"`
	// Ended is the revision of its last piece; 0 if that is in another chunk.
	Ended int64 `json:"ended,omitempty"`
}

// addBase adds what a piece tells about a base.
func addBase(bases []base, p piece, revision int64) []base {
	if !p.whole {
		return bases
	}
	n := len(bases) - 1
	for n >= 0 && bases[n].ID != p.id {
		n--
	}
	if n < 0 {
		bases = append(bases, base{ID: p.id, Revision: p.revision, From: p.from})
		n = len(bases) - 1
	}
	if p.isPass && p.number == 0 {
		bases[n].From = revision - 1
	}
	if p.last {
		bases[n].Ended = revision
	}
	return bases
}

package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The history is in the same etcd as the objects, under a prefix that neither Load nor Watch reads.
// Package history defines what the values mean; this file is how they are written: the records of
// decisions with the decisions, everything else fenced like them.
const (
	historyPrefix = "/v1/history/"
	// HistoryLog is where Derive puts the records of decisions, relative to the prefix of the history:
	// one value for each transaction, see HistoryRecords.
	HistoryLog = "log/"

	// ledKey is written whenever orderKey or epochKey is, in the same transaction, by programs that
	// record decisions. If one of these has a later revision, another program has led since.
	ledKey = historyPrefix + "led"
)

// historian writes and reads the history.
type historian struct {
	etcd       *connection
	transactor *transactor
	envelopes  *envelopes
	leadership *leadership
	reader     *reader

	// id and written make the keys of hot values unique: a term may be continued by another process.
	id      uint32
	written atomic.Uint64

	unanswered unanswered
}

func newHistorian(etcd *connection, transactor *transactor, envelopes *envelopes, leadership *leadership, reader *reader) *historian {
	return &historian{etcd: etcd, transactor: transactor, envelopes: envelopes, leadership: leadership, reader: reader, id: rand.Uint32()}
}

// HistoryKey returns a key under a prefix of the history that nobody else has. Those of one process
// and term are in the order of the calls.
func (h *historian) HistoryKey(prefix string) string {
	began := int64(0)
	if term := h.leadership.term.Load(); term != nil {
		began = term.fence.revision
	}
	return fmt.Sprintf("%s%016x/%08x%010x", prefix, began, h.id, h.written.Add(1))
}

// Leads reports whether this process leads, as far as it knows.
func (h *historian) Leads() bool { return !h.leadership.term.Load().isOver() }

// HistoryTakes is told how many bytes the history takes: they do not count against the quota.
func (h *historian) HistoryTakes(bytes int64) { h.transactor.room.history.Store(bytes) }

// HistoryValue is a value of the history at one revision.
type HistoryValue struct {
	Key      string
	Value    []byte
	Revision int64
	// Damage says why the value cannot be used; Value is then empty. It is an ErrDamaged.
	Damage error
}

// HistoryRange is the keys from From up to, but not including, To.
type HistoryRange struct{ From, To string }

// HistoryUnder is the range of all keys with a prefix.
func HistoryUnder(prefix string) HistoryRange {
	return HistoryRange{prefix, clientv3.GetPrefixRangeEnd(prefix)}
}

// ReadHistory returns up to limit values of a range at a revision, those with the lowest revisions
// first, and that revision. Zero is no limit, and the present revision.
func (h *historian) ReadHistory(ctx context.Context, keys HistoryRange, limit int, at int64) ([]HistoryValue, int64, error) {
	resp, err := h.etcd.get(ctx, h.reader.rangeTimeout(), historyPrefix+keys.From, clientv3.WithRange(historyPrefix+keys.To),
		clientv3.WithLimit(int64(limit)), clientv3.WithRev(at), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
	if err != nil {
		return nil, 0, fmt.Errorf("read the history: %w", err)
	}
	values := make([]HistoryValue, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		values[i] = HistoryValue{Key: strings.TrimPrefix(string(kv.Key), historyPrefix), Revision: kv.ModRevision}
		if values[i].Value, err = h.envelopes.open(kv); err != nil {
			values[i].Value = nil
			values[i].Damage = fmt.Errorf("%w: %s of the history, written at revision %d: %w", ErrDamaged, values[i].Key, kv.ModRevision, err)
		}
	}
	if at == 0 {
		at = resp.Header.Revision
	}
	return values, at, nil
}

// HistoryChange is a transaction that changes the history.
type HistoryChange struct {
	// Key is one whose value must still have the revision At, 0 for none. Empty compares nothing.
	Key string
	At  int64
	// Put are values by key.
	Put map[string][]byte
	// Delete are ranges in which nothing may have been written since the revision Seen.
	Delete []HistoryRange
	Seen   int64
	// Shrinks says that it deletes more than it puts, so that it is made even when little space is left.
	Shrinks bool
}

// MaxHistoryRanges is how many ranges one change can delete.
const MaxHistoryRanges = 100

// ErrHistoryChanged is returned if a comparison of a HistoryChange failed: nothing was changed.
var ErrHistoryChanged = errors.New("the history has changed in the meantime")

// ChangeHistory makes a change in the term in which this process leads, and returns its revision.
// It returns ErrFenced if another process leads. After any other error except ErrUncertain, nothing
// has changed.
func (h *historian) ChangeHistory(ctx context.Context, change HistoryChange) (int64, error) {
	term := h.leadership.term.Load()
	if term.isOver() {
		return 0, ErrFenced
	}
	at, err := term.ensureOrder(ctx, h.transactor, h.leadership.putOrder)
	if err != nil {
		if errors.Is(err, ErrFenced) {
			term.end()
		}
		return 0, fmt.Errorf("write the history: %w", err)
	}
	ifs, elses := []clientv3.Cmp{term.fence.intact()}, []clientv3.Op{term.fence.look()}
	if at != 0 {
		ifs = append(ifs, kept(at))
		elses = append(elses, clientv3.OpGet(orderKey, clientv3.WithKeysOnly()))
	}
	if change.Key != "" {
		ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(historyPrefix+change.Key), "=", change.At))
	}
	if err := h.settle(ctx, change.Delete); err != nil {
		return 0, err
	}
	var thens []clientv3.Op
	for _, keys := range change.Delete {
		from, to := historyPrefix+keys.From, historyPrefix+keys.To
		ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(from), "<", change.Seen+1).WithRange(to))
		thens = append(thens, clientv3.OpDelete(from, clientv3.WithRange(to)))
	}
	bytes := 0
	for key, value := range change.Put {
		thens = append(thens, h.envelopes.put(historyPrefix+key, value))
		bytes += len(historyPrefix) + len(key) + len(value)
	}
	resp, err := h.transactor.commit(ctx, bytes, !change.Shrinks, func(t clientv3.Txn) clientv3.Txn {
		return t.If(ifs...).Then(thens...).Else(elses...)
	})
	switch {
	case errors.Is(err, ErrUncertain):
		term.doubts(at)
		return 0, fmt.Errorf("write the history: %w", err)
	case err != nil:
		return 0, fmt.Errorf("write the history: %w", err)
	case resp.Succeeded:
		return resp.Header.Revision, nil
	case term.fence.isBroken(resp, 0):
		term.end()
		return 0, ErrFenced
	case at != 0 && found(resp, 1) != at:
		term.doubts(at)
	}
	return 0, fmt.Errorf("write the history: %w", ErrHistoryChanged)
}

// settle finds out about unanswered transactions whose records are about to be sealed: afterwards,
// their key says nothing.
func (h *historian) settle(ctx context.Context, deleted []HistoryRange) error {
	for key := range h.unanswered.unknown() {
		name := strings.TrimPrefix(key, historyPrefix)
		if !slices.ContainsFunc(deleted, func(keys HistoryRange) bool { return keys.From <= name && name < keys.To }) {
			continue
		}
		resp, err := h.etcd.get(ctx, h.etcd.options.RequestTimeout, key, clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("find out which decisions were written: %w", err)
		}
		if len(resp.Kvs) == 1 {
			h.unanswered.happened(key, resp.Kvs[0].ModRevision)
		}
	}
	return nil
}

// WatchHistory delivers the values that are put under a prefix of the history from a revision on,
// in order, until ctx is done or the watch breaks. Deletions are left out.
func (h *historian) WatchHistory(ctx context.Context, prefix string, from int64) <-chan HistoryValue {
	out := make(chan HistoryValue, watchBuffer)
	go func() {
		defer close(out)
		ctx, cancel := context.WithCancel(h.etcd.streamContext(ctx))
		defer cancel()
		defer context.AfterFunc(h.etcd.closed, cancel)() //nolint:contextcheck // the watch ends with the store too
		stream := h.etcd.client.Watch(ctx, historyPrefix+prefix, clientv3.WithPrefix(), clientv3.WithRev(from),
			clientv3.WithFilterDelete(), clientv3.WithFragment())
		for resp := range stream {
			if resp.Err() != nil || h.etcd.sameCluster(resp.Header.ClusterId) != nil {
				return
			}
			for _, event := range resp.Events {
				value := HistoryValue{Key: strings.TrimPrefix(string(event.Kv.Key), historyPrefix), Revision: event.Kv.ModRevision}
				var err error
				if value.Value, err = h.envelopes.open(event.Kv); err != nil {
					value.Value = nil
					value.Damage = fmt.Errorf("%w: %s of the history: %w", ErrDamaged, value.Key, err)
				}
				select {
				case out <- value:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

// Forms of a value under HistoryLog, which its first byte tells.
const (
	plainRecords = 1 // records, each with its length before it
	// PackedRecords is the same, compressed with zstd.
	PackedRecords = 2
	gapForm       = 3 // no records: decisions since a revision may be missing
)

// maxRecords limits the size of the records in a value.
const maxRecords = 64 * mebibyte

// packedAbove is the size above which records are compressed here: better than the envelope does it, and they take little
// memory while many values are read.
const packedAbove = 16 << 10

// zstd compresses what is larger. Encoders and decoders have no state
// between calls of EncodeAll and DecodeAll.
var (
	recordEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)) // an error would be that of an option
	recordDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRecords))    // likewise
)

// joinRecords makes the value of the records of one transaction.
func joinRecords(records [][]byte) []byte {
	size := 1
	for _, record := range records {
		size += binary.MaxVarintLen32 + len(record)
	}
	value := append(make([]byte, 0, size), plainRecords)
	for _, record := range records {
		value = binary.AppendUvarint(value, uint64(len(record)))
		value = append(value, record...)
	}
	if len(value) <= packedAbove {
		return value // the envelope compresses it
	}
	return recordEncoder.EncodeAll(value[1:], []byte{PackedRecords})
}

// HistoryGap is a value under HistoryLog that says that decisions may be missing.
type HistoryGap struct {
	// Since is the revision after which they may be missing.
	Since int64
}

// gapValue is the value of a gap.
func gapValue(since int64) []byte { return binary.AppendUvarint([]byte{gapForm}, uint64(since)) }

var errNoRecords = fmt.Errorf("%w: these are not records of the history", ErrDamaged)

// HistoryRecords returns the records in a value under HistoryLog, or the gap that it is instead. The
// records share its memory.
func HistoryRecords(value []byte) ([][]byte, *HistoryGap, error) {
	if len(value) == 0 {
		return nil, nil, errNoRecords
	}
	rest := value[1:]
	switch value[0] {
	case gapForm:
		since, n := binary.Uvarint(rest)
		if n != len(rest) || n <= 0 {
			return nil, nil, errNoRecords
		}
		return nil, &HistoryGap{int64(since)}, nil
	case PackedRecords:
		var err error
		if rest, err = recordDecoder.DecodeAll(rest, nil); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errNoRecords, err)
		}
	case plainRecords:
	default:
		return nil, nil, fmt.Errorf("%w: this program does not know their form: use a newer program", errNoRecords)
	}
	var records [][]byte
	for len(rest) > 0 {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return nil, nil, errNoRecords
		}
		records = append(records, rest[n:n+int(length):n+int(length)])
		rest = rest[n+int(length):]
	}
	return records, nil, nil
}

// Who leads without recording decisions leaves a gap. Every term begins with a write of orderKey, or of
// epochKey by a process that is alone; programs that record decisions write ledKey with it.

// begins returns what the beginning of a term adds to the history, in a transaction with the write of
// orderKey or epochKey.
func (l *leadership) begins(ctx context.Context) ([]clientv3.Op, error) {
	if !l.options.records() {
		return nil, nil
	}
	resp, err := l.etcd.client.Txn(ctx).Then(clientv3.OpGet(orderKey, clientv3.WithKeysOnly()),
		clientv3.OpGet(epochKey, clientv3.WithKeysOnly()), clientv3.OpGet(ledKey, clientv3.WithKeysOnly())).Commit()
	if err != nil {
		return nil, err
	}
	ops := []clientv3.Op{l.putLed()}
	if last, recorded := max(found(resp, 0), found(resp, 1)), found(resp, 2); last > recorded {
		ops = append(ops, enclose(fmt.Sprintf("%s%sgap/%016x", historyPrefix, HistoryLog, last), gapValue(recorded)))
	}
	return ops, nil
}

// putLed is in a form that every program can read: a term may begin before the format of the store
// is known.
func (l *leadership) putLed() clientv3.Op { return enclose(ledKey, []byte(l.id)) }

package store

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// formatVersion is the newest format that this program reads and writes. A store with a newer
// format was written by a newer program and is rejected.
const formatVersion = 3

// Formats.
const (
	// Since envelopeFormat, values are in envelopes.
	envelopeFormat = 2
	// Since compressedFormat, they are compressed.
	compressedFormat = 3

	// previousFormat is what the previous program version writes, which may have the store open at
	// the same time. Older formats are upgraded at once.
	previousFormat = formatVersion - 1
)

// noEnvelopes is the revision since which the values of a store of format 1 have envelopes.
const noEnvelopes = math.MaxInt64

// format is the stored format.
type format struct {
	number   int   // 0 if there is none yet
	revision int64 // of its key
}

// opened returns the format that a store has after this program has opened it. In an empty store
// nobody reads an older one; otherwise the upgrade must be finished first.
func (f format) opened() int {
	switch {
	case f.number == 0:
		return formatVersion
	case f.number < envelopeFormat:
		return envelopeFormat // its revision must be known before the next format starts
	}
	return max(f.number, previousFormat)
}

// written returns the format used for writing.
func (e *envelopes) written() int { return int(e.format.Load()) }

// begin records that a format is used from a revision on. Only formats that do not change where
// envelopes are may start after the store is opened.
func (e *envelopes) begin(number int, revision int64) {
	if e.since == noEnvelopes && number >= envelopeFormat {
		e.since = revision
	}
	e.format.Store(int64(number))
}

// sinceFormat returns the revision since which every value has an envelope, according to the format
// number.
func sinceFormat(kv *mvccpb.KeyValue) int64 {
	switch number, err := strconv.Atoi(string(kv.Value)); {
	case err != nil || number == envelopeFormat:
		return kv.ModRevision
	case number < envelopeFormat:
		return noEnvelopes
	default:
		return kv.CreateRevision
	}
}

// parseSince parses the value of sinceKey.
func parseSince(value []byte, otherwise int64) int64 {
	if since, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return since
	}
	return otherwise
}

// readFormat returns the format of the store. It fails for a store of a newer program.
func (e *envelopes) readFormat(ctx context.Context, etcd *connection) (format, error) {
	resp, err := etcd.client.Txn(ctx).Then(clientv3.OpGet(formatKey), clientv3.OpGet(sinceKey)).Commit()
	if err != nil {
		return format{}, fmt.Errorf("read the format of the store: %w", classify(err, false))
	}
	etcd.clusterID = resp.Header.ClusterId
	etcd.sawRevision(resp.Header.Revision)
	number, since := resp.Responses[0].GetResponseRange().GetKvs(), resp.Responses[1].GetResponseRange().GetKvs()
	e.since = noEnvelopes
	e.format.Store(0)
	if len(number) == 0 {
		return format{}, nil
	}
	known := format{revision: number[0].ModRevision}
	if known.number, err = parseFormat(string(number[0].Value)); err != nil {
		return format{}, err
	}
	e.since = sinceFormat(number[0])
	if len(since) > 0 {
		value, err := openEnvelope(since[0], nil)
		e.since = parseSince(value, number[0].ModRevision)
		if err != nil {
			etcd.options.Logger.Error("the record of when values got their checksums is damaged; older values without one are taken as they are", "error", err)
			_, _ = etcd.client.Do(ctx, enclose(sinceKey, strconv.AppendInt(nil, e.since, 10))) // otherwise the next start does it
		}
	}
	e.format.Store(int64(known.number))
	return known, nil
}

// sawFormat adopts a format that another server may have started to use. It returns an error if
// this program does not know it.
func (e *envelopes) sawFormat(kvs []*mvccpb.KeyValue) error {
	if len(kvs) == 0 {
		return nil
	}
	number, err := strconv.Atoi(string(kvs[0].Value))
	switch {
	case err != nil:
		return nil //nolint:nilerr // reported at the next start
	case number > formatVersion:
		return newerFormat(number)
	}
	e.format.Store(int64(number))
	return nil
}

// putFormat starts a format. Every program must be able to read the format number.
func (e *envelopes) putFormat(number int) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpPut(formatKey, strconv.Itoa(number))}
	if e.since < noEnvelopes {
		ops = append(ops, enclose(sinceKey, strconv.AppendInt(nil, e.since, 10)))
	}
	return ops
}

// beginFormat sets the format that the store has after opening, unless another server was faster,
// and returns the resulting one.
func (e *envelopes) beginFormat(ctx context.Context, etcd *connection, known format) (format, error) {
	_, err := etcd.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(formatKey), "=", known.revision)).
		Then(e.putFormat(known.opened())...).Commit()
	if err != nil {
		return format{}, fmt.Errorf("set the format of the store: %w", classify(err, true))
	}
	return e.readFormat(ctx, etcd)
}

// parseFormat parses the number of a format that this program knows.
func parseFormat(text string) (int, error) {
	version, err := strconv.Atoi(text)
	switch {
	case err != nil || version < 1:
		return 0, fmt.Errorf("%w: %q is not the number of a store format: %s", ErrDamaged, text, adviceRestore)
	case version > formatVersion:
		return 0, newerFormat(version)
	}
	return version, nil
}

func newerFormat(version int) error {
	return fmt.Errorf("store: the data has format %d, this program knows formats up to %d: use a newer program", version, formatVersion)
}

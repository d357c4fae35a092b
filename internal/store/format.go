package store

import (
	"context"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// formatVersion is the newest format that this program reads and writes. A store with a newer
// format was written by a newer program and is rejected.
const formatVersion = 3

// previousFormat is what the previous program version writes, which may have the store open at the
// same time. Stores with an older format are rejected. No program with another format has been
// released: this one differs from the newest by its number only.
const previousFormat = formatVersion - 1

// format is the stored format.
type format struct {
	number   int   // 0 if there is none yet
	revision int64 // of its key
}

// written returns the format used for writing.
func (s *Store) written() int { return int(s.format.Load()) }

// readFormat returns the format of the store. It fails for a store of another program.
func (s *Store) readFormat(ctx context.Context) (format, error) {
	resp, err := s.client.Get(ctx, formatKey)
	if err != nil {
		return format{}, fmt.Errorf("read the format of the store: %w", classify(err, false))
	}
	s.clusterID = resp.Header.ClusterId
	s.sawRevision(resp.Header.Revision)
	s.format.Store(0)
	if len(resp.Kvs) == 0 {
		return format{}, nil
	}
	known := format{revision: resp.Kvs[0].ModRevision}
	if known.number, err = parseFormat(string(resp.Kvs[0].Value)); err != nil {
		return format{}, err
	}
	s.format.Store(int64(known.number))
	return known, nil
}

// sawFormat adopts a format that another server may have started to use. It returns an error if
// this program does not know it.
func (s *Store) sawFormat(kvs []*mvccpb.KeyValue) error {
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
	s.format.Store(int64(number))
	return nil
}

// putFormat starts the newest format. Every program must be able to read the number.
func putFormat() clientv3.Op { return clientv3.OpPut(formatKey, strconv.Itoa(formatVersion)) }

// beginFormat gives an empty store the newest format, unless another server was faster, and returns
// the resulting one.
func (s *Store) beginFormat(ctx context.Context) (format, error) {
	_, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(formatKey), "=", 0)).Then(putFormat()).Commit()
	if err != nil {
		return format{}, fmt.Errorf("set the format of the store: %w", classify(err, true))
	}
	return s.readFormat(ctx)
}

// parseFormat parses the number of a format that this program knows.
func parseFormat(text string) (int, error) {
	version, err := strconv.Atoi(text)
	switch {
	case err != nil || version < 1:
		return 0, fmt.Errorf("%w: %q is not the number of a store format: %s", ErrDamaged, text, adviceRestore)
	case version > formatVersion:
		return 0, newerFormat(version)
	case version < previousFormat:
		return 0, fmt.Errorf("store: the data has format %d, this program knows formats from %d on: use an older program", version, previousFormat)
	}
	return version, nil
}

func newerFormat(version int) error {
	return fmt.Errorf("store: the data has format %d, this program knows formats up to %d: use a newer program", version, formatVersion)
}

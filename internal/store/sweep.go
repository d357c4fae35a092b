package store

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// sweep reads a range of keys in order, a piece at a time. With every answer
// etcd counts what is left of the range that was asked for, so a million keys
// read in pages up to the end of the range take a time that grows with the
// square of their number. A sweep bounds each question instead: by the keys that
// share a prefix with the next one, a prefix that grows where there are many keys
// and shrinks where there are few.
type sweep struct {
	from, to string // what is left of the range
	// least is the length of what all keys of the range share; width, at least
	// that, the length of the prefix of from that bounds the next question.
	least, width int
	revision     int64 // of all pieces; 0 before the first answer
}

// newSweep begins at the start of a range, where everything is still ahead.
func newSweep(from, to string, revision int64) *sweep {
	least := sharedPrefix(from, to)
	return &sweep{from: from, to: to, least: least, width: least, revision: revision}
}

// resumeSweep goes on after a key of a range.
func resumeSweep(root, after string, revision int64) *sweep {
	s := newSweep(root, clientv3.GetPrefixRangeEnd(root), revision)
	s.from, s.width = after+"\x00", len(after)
	return s
}

// sharedPrefix is the length of what two keys begin with.
func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// done reports that the range is read to its end.
func (w *sweep) done() bool { return w.from >= w.to }

// next reads the next keys, limit of them at most. It may find none although
// there are more.
func (w *sweep) next(ctx context.Context, s *Store, limit int) ([]*mvccpb.KeyValue, error) {
	bound := w.to
	if w.width > w.least {
		bound = min(w.to, clientv3.GetPrefixRangeEnd(w.from[:w.width]))
	}
	resp, err := s.getRange(ctx, w.from, bound, limit, w.revision)
	if err != nil {
		return nil, err
	}
	if w.revision == 0 {
		w.revision = resp.Header.Revision
	}
	if !resp.More {
		w.from = bound
		if len(resp.Kvs) < max(limit/4, 1) {
			w.width--
		}
		w.width = max(min(w.width, len(bound)), w.least)
		return resp.Kvs, nil
	}
	first, last := string(resp.Kvs[0].Key), string(resp.Kvs[len(resp.Kvs)-1].Key)
	w.from = last + "\x00"
	if resp.Count > 2*int64(limit) {
		w.width = min(max(w.width, sharedPrefix(first, last))+1, len(last))
	}
	return resp.Kvs, nil
}

// skipEmpty moves on to the next key that there is; after it, done says whether
// there is one.
func (w *sweep) skipEmpty(ctx context.Context, s *Store) error {
	for !w.done() {
		ahead := *w
		kvs, err := ahead.next(ctx, s, 1)
		if err != nil || len(kvs) > 0 {
			return err
		}
		*w = ahead
	}
	return nil
}

package store

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// sweep reads a range of keys in order, in pieces. With every response etcd counts the rest of the
// requested range, so reading a million keys in pages up to the end of the range takes quadratic
// time. A sweep limits each request instead to the keys that share a prefix with the next one. The
// prefix gets longer where there are many keys and shorter where there are few.
type sweep struct {
	from, to string // the rest of the range
	// least is the length of what all keys of the range share. width, at least that, is the length
	// of the prefix of from that limits the next request.
	least, width int
	revision     int64 // of all pieces; 0 before the first response
}

// newSweep starts at the beginning of a range.
func newSweep(from, to string, revision int64) *sweep {
	least := sharedPrefix(from, to)
	return &sweep{from: from, to: to, least: least, width: least, revision: revision}
}

// resumeSweep continues after a key of a range.
func resumeSweep(root, after string, revision int64) *sweep {
	s := newSweep(root, clientv3.GetPrefixRangeEnd(root), revision)
	s.from, s.width = after+"\x00", len(after)
	return s
}

// sharedPrefix returns the length of the common prefix of two keys.
func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// done reports whether the whole range has been read.
func (w *sweep) done() bool { return w.from >= w.to }

// next reads the next keys, at most limit. It may return none although there are more.
func (w *sweep) next(ctx context.Context, r *reader, limit int) ([]*mvccpb.KeyValue, error) {
	bound := w.to
	if w.width > w.least {
		bound = min(w.to, clientv3.GetPrefixRangeEnd(w.from[:w.width]))
	}
	resp, err := r.getRange(ctx, w.from, bound, limit, w.revision)
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

// skipEmpty advances to the next existing key; afterwards, done reports whether there is one.
func (w *sweep) skipEmpty(ctx context.Context, r *reader) error {
	for !w.done() {
		ahead := *w
		kvs, err := ahead.next(ctx, r, 1)
		if err != nil || len(kvs) > 0 {
			return err
		}
		*w = ahead
	}
	return nil
}

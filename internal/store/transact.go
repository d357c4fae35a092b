package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// transactor runs the write transactions of a store.
type transactor struct {
	etcd    *connection
	room    *room
	metrics *storeMetrics
}

// Writable returns nil while writes work. Otherwise it says for how long they have failed or not
// been answered, and why.
func (t *transactor) Writable() error {
	if t.etcd.replaced.Load() {
		return errReplaced
	}
	if err := t.room.full(); err != nil {
		return err
	}
	return t.etcd.health.stalled()
}

// commit runs one write transaction. If it returns an error other than ErrUncertain, nothing was
// written. While the store does not respond, it fails at once, because waiting would be pointless.
func (t *transactor) commit(ctx context.Context, bytes int, grows bool, txn func(clientv3.Txn) clientv3.Txn) (*clientv3.TxnResponse, error) {
	if err := t.etcd.health.stalled(); err != nil {
		return nil, err
	}
	size := int64(bytes + writeOverhead)
	if err := t.room.accept(size, grows); err != nil {
		return nil, err
	}
	defer t.room.answered(size)
	return t.transact(ctx, t.etcd.options.RequestTimeout, txn)
}

// transact runs one write transaction regardless of the results of earlier ones. A timeout counts
// as a failure of the store.
func (t *transactor) transact(ctx context.Context, limit time.Duration, txn func(clientv3.Txn) clientv3.Txn) (*clientv3.TxnResponse, error) {
	if t.etcd.closed.Err() != nil {
		return nil, errClosed
	}
	if t.etcd.replaced.Load() {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errReplaced)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(t.etcd.streamContext(ctx), min(limit, t.etcd.options.RequestTimeout))
	defer cancel()
	health := t.etcd.health
	asked, began := t.etcd.revision.Load(), health.clock.now()
	if err := t.etcd.awaitLeader(bounded); err != nil {
		health.attempted(ctx, began, errNoQuorum)
		return nil, err
	}
	recorded, resp, err := t.attempt(bounded, txn)
	for isDropped(err) && backoff.Wait(bounded, droppedPause) {
		recorded, resp, err = t.attempt(bounded, txn)
	}
	t.metrics.txnSeconds.Observe(time.Duration(health.clock.now() - began).Seconds())
	health.attempted(ctx, began, err)
	if err = classify(err, true); errors.Is(err, ErrFull) {
		t.room.noSpace.Store(true)
		resp, err = t.doneThough(bounded, asked, recorded.put, err)
	}
	if err != nil {
		t.metrics.failures.Inc()
		return nil, err
	}
	if err := t.etcd.sameFiles(); err != nil {
		return nil, err // the write is lost
	}
	return resp, t.etcd.answered(asked, resp.Header)
}

// droppedPause is the pause before a dropped write, or a read that was interrupted, is repeated.
const droppedPause = 10 * time.Millisecond

func (t *transactor) attempt(ctx context.Context, txn func(clientv3.Txn) clientv3.Txn) (*recordedTxn, *clientv3.TxnResponse, error) {
	recorded := &recordedTxn{Txn: t.etcd.client.Txn(ctx)}
	resp, err := txn(recorded).Commit()
	return recorded, resp, err
}

// recordedTxn remembers one of the values that a transaction is to write. A transaction
// is done as a whole, so one tells whether it was.
type recordedTxn struct {
	clientv3.Txn

	put *clientv3.Op // nil where there is none
}

// If implements clientv3.Txn.
func (t *recordedTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cs...)
	return t
}

// Then implements clientv3.Txn.
func (t *recordedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	if i := slices.IndexFunc(ops, clientv3.Op.IsPut); i >= 0 && t.put == nil {
		t.put = &ops[i]
	}
	t.Txn = t.Txn.Then(ops...)
	return t
}

// Else implements clientv3.Txn.
func (t *recordedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

// doneThough determines whether a transaction that etcd rejected because of its quota was applied.
// If several are in progress when the quota is exceeded, etcd applies the one that exceeds it but
// still returns an error: callers would report that nothing was written.
func (t *transactor) doneThough(ctx context.Context, asked int64, put *clientv3.Op, full error) (*clientv3.TxnResponse, error) {
	if put == nil {
		return nil, full
	}
	resp, err := t.etcd.client.Get(ctx, string(put.KeyBytes()))
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %w", ErrUncertain, full, err)
	}
	if len(resp.Kvs) == 0 || resp.Kvs[0].ModRevision <= asked || !bytes.Equal(resp.Kvs[0].Value, put.ValueBytes()) {
		return nil, full
	}
	header := &etcdserverpb.ResponseHeader{ClusterId: resp.Header.ClusterId, Revision: resp.Kvs[0].ModRevision}
	return &clientv3.TxnResponse{Header: header, Succeeded: true}, nil
}

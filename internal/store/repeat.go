package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/raft/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// repeatPause is the pause before a request is repeated.
const repeatPause = 10 * time.Millisecond

// repeatingKV repeats requests that etcd has dropped or given up on, as long as their context lasts.
//
// A member can report a change of its leader late: to the first read after its start, too. And it waits 5 seconds for a
// request, whatever the context allows, which a busy machine can take.
type repeatingKV struct {
	clientv3.KV

	store *Store
}

// Get implements clientv3.KV.
func (k repeatingKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return repeat(ctx, isInterrupted, func() (*clientv3.GetResponse, error) { return k.KV.Get(ctx, key, options...) })
}

// Txn implements clientv3.KV.
func (k repeatingKV) Txn(ctx context.Context) clientv3.Txn {
	return &repeatingTxn{Txn: k.KV.Txn(ctx), ctx: ctx, store: k.store}
}

// repeatingTxn is a transaction of a repeatingKV.
type repeatingTxn struct {
	clientv3.Txn

	ctx    context.Context //nolint:containedctx // of the transaction, like that of etcd's own
	store  *Store
	writes bool
	// put is one of the values to write, nil where there is none. A transaction is done as a whole, so one tells
	// whether it was.
	put *clientv3.Op
}

// If implements clientv3.Txn.
func (t *repeatingTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cs...)
	return t
}

// Then implements clientv3.Txn.
func (t *repeatingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	if i := slices.IndexFunc(ops, clientv3.Op.IsPut); i >= 0 && t.put == nil {
		t.put = &ops[i]
	}
	t.note(ops)
	t.Txn = t.Txn.Then(ops...)
	return t
}

// Else implements clientv3.Txn.
func (t *repeatingTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.note(ops)
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *repeatingTxn) note(ops []clientv3.Op) {
	t.writes = t.writes || slices.ContainsFunc(ops, func(op clientv3.Op) bool { return !op.IsGet() })
}

// Commit implements clientv3.Txn. It returns ErrUncertain, or an error of etcd that leaves it open, where it cannot tell
// whether the transaction was done.
func (t *repeatingTxn) Commit() (*clientv3.TxnResponse, error) {
	if !t.writes {
		return repeat(t.ctx, isInterrupted, t.Txn.Commit)
	}
	asked := t.store.revision.Load()
	resp, err := repeat(t.ctx, isDropped, t.Txn.Commit)
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return t.doneThoughFull(asked, err)
	case isGivenUp(err) && t.store.options.alone():
		return t.repeatGivenUp(asked)
	}
	return resp, err
}

// doneThoughFull determines whether a transaction that etcd rejected because of its quota was applied. If several are
// in progress when the quota is exceeded, etcd applies the one that exceeds it but still returns an error: callers would
// report that nothing was written.
func (t *repeatingTxn) doneThoughFull(asked int64, full error) (*clientv3.TxnResponse, error) {
	t.store.noSpace.Store(true)
	if t.put == nil {
		return nil, full
	}
	resp, err := t.store.wroteSince(t.ctx, asked, t.put)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w: %w", ErrUncertain, full, err)
	case resp == nil:
		return nil, full
	}
	return resp, nil
}

// repeatGivenUp repeats a transaction that a single member has given up on. It is in the log of the member, if anywhere,
// so it comes before what is sent now.
func (t *repeatingTxn) repeatGivenUp(asked int64) (*clientv3.TxnResponse, error) {
	resp, err := repeat(t.ctx, func(err error) bool { return isDropped(err) || isGivenUp(err) }, t.Txn.Commit)
	switch {
	case err != nil, !resp.Succeeded && t.put == nil:
		// This one was refused, or a comparison fails: the one before may have been done all the same.
		return nil, rpctypes.ErrTimeout
	case resp.Succeeded:
		return resp, nil
	}
	done, err := t.store.wroteSince(t.ctx, asked, t.put)
	if err == nil && done == nil {
		err = rpctypes.ErrTimeout
	}
	return done, err
}

// wroteSince returns what the transaction with a put was answered with, if it was done since a revision; nil if another
// value is there.
func (s *Store) wroteSince(ctx context.Context, asked int64, put *clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, err := s.client.Get(ctx, string(put.KeyBytes()))
	if err != nil {
		return nil, err
	}
	if len(resp.Kvs) == 0 || resp.Kvs[0].ModRevision <= asked || !bytes.Equal(resp.Kvs[0].Value, put.ValueBytes()) {
		return nil, nil
	}
	header := &etcdserverpb.ResponseHeader{ClusterId: resp.Header.ClusterId, Revision: resp.Kvs[0].ModRevision}
	return &clientv3.TxnResponse{Header: header, Succeeded: true}, nil
}

// isDropped reports whether the embedded member refused a write before anybody had it, because it has no leader or hands
// over to another one. The client knows only the text of the error.
func isDropped(err error) bool {
	return err != nil && strings.Contains(err.Error(), raft.ErrProposalDropped.Error())
}

// isGivenUp reports whether etcd no longer waits for a request.
func isGivenUp(err error) bool {
	return errors.Is(err, rpctypes.ErrTimeout) || errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail)
}

// isInterrupted reports whether a read was ended by something other than its answer.
func isInterrupted(err error) bool {
	return errors.Is(err, rpctypes.ErrLeaderChanged) || isGivenUp(err)
}

func repeat[R any](ctx context.Context, again func(error) bool, request func() (R, error)) (R, error) {
	r, err := request()
	for again(err) && backoff.Wait(ctx, repeatPause) {
		r, err = request()
	}
	return r, err
}

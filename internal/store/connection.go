package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// errClosed is the error of requests after Close.
var errClosed = fmt.Errorf("%w: it is closed", ErrUnavailable)

// droppedPause is the pause before a dropped write, or a read that was interrupted, is repeated.
const droppedPause = 10 * time.Millisecond

// requestContext limits one request to etcd. A member of an external cluster without a leader fails
// at once instead of waiting for one.
func (s *Store) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.streamContext(ctx), s.options.RequestTimeout)
}

// streamContext makes a member without a leader end the stream instead of going silent. This does
// not apply to a single embedded member.
func (s *Store) streamContext(ctx context.Context) context.Context {
	if s.member != nil {
		return ctx
	}
	return clientv3.WithRequireLeader(ctx)
}

// get reads one key or a range.
func (s *Store) get(ctx context.Context, limit time.Duration, key string, options ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	err = s.ask(ctx, limit, func(ctx context.Context) (*etcdserverpb.ResponseHeader, error) {
		if resp, err = s.client.Get(ctx, key, options...); err != nil {
			return nil, err
		}
		return resp.Header, nil
	})
	return resp, err
}

// getAll makes several reads at the same revision.
func (s *Store) getAll(ctx context.Context, gets ...clientv3.Op) (resp *clientv3.TxnResponse, err error) {
	err = s.ask(ctx, s.options.RequestTimeout, func(ctx context.Context) (*etcdserverpb.ResponseHeader, error) {
		if resp, err = s.client.Txn(ctx).Then(gets...).Commit(); err != nil {
			return nil, err
		}
		return resp.Header, nil
	})
	return resp, err
}

// ask makes a request that only reads, and checks its response.
func (s *Store) ask(ctx context.Context, limit time.Duration, request func(context.Context) (*etcdserverpb.ResponseHeader, error)) error {
	ctx, cancel := context.WithTimeout(s.streamContext(ctx), limit)
	defer cancel()
	if err := s.answers(ctx); err != nil {
		return err
	}
	asked := s.revision.Load()
	header, err := request(ctx)
	if err != nil {
		return classify(err, false)
	}
	return s.answered(asked, header)
}

// answers returns nil if a read of the store can succeed. A single embedded member reads from
// memory, regardless of its writes.
func (s *Store) answers(ctx context.Context) error {
	if s.options.alone() {
		return nil
	}
	if err := s.awaitLeader(ctx); err != nil {
		return err
	}
	return s.guard.stalled()
}

// awaitLeader waits for a leader of the cluster of embedded members for a moment, as one hands over
// to another within milliseconds, and returns an error if there is none. While writes have failed
// for long, it does not wait.
func (s *Store) awaitLeader(ctx context.Context) error {
	if s.leaderless() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.leaderGap)
	defer cancel()
	for s.guard.stalled() == nil {
		changed := s.member.Server.LeaderChangedNotify()
		if s.leaderless() == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s.leaderless()
		}
	}
	return s.leaderless()
}

// leaderless returns an error if the cluster of embedded members has no leader, as a member of an
// external cluster would.
func (s *Store) leaderless() error {
	if s.member == nil || s.options.alone() || s.member.Server.Leader() != 0 {
		return nil
	}
	return &StalledError{Cause: errNoQuorum}
}

// repeatingKV repeats requests that etcd has given up on, as long as their context lasts.
//
// A member can report a change of its leader late: to the first read after its start, too. And it waits 5 seconds for a
// request, whatever the context allows, which a busy machine can take.
type repeatingKV struct {
	clientv3.KV

	store *Store
}

// Get implements clientv3.KV.
func (k repeatingKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return repeatRead(ctx, func() (*clientv3.GetResponse, error) { return k.KV.Get(ctx, key, options...) })
}

// Txn implements clientv3.KV.
func (k repeatingKV) Txn(ctx context.Context) clientv3.Txn {
	return &repeatingTxn{recordedTxn: recordedTxn{Txn: k.KV.Txn(ctx)}, ctx: ctx, store: k.store}
}

// repeatingTxn is a transaction of a repeatingKV.
type repeatingTxn struct {
	recordedTxn

	ctx    context.Context //nolint:containedctx // of the transaction, like that of etcd's own
	store  *Store
	writes bool
}

// If implements clientv3.Txn.
func (t *repeatingTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.recordedTxn.If(cs...)
	return t
}

// Then implements clientv3.Txn.
func (t *repeatingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.note(ops)
	t.recordedTxn.Then(ops...)
	return t
}

// Else implements clientv3.Txn.
func (t *repeatingTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.note(ops)
	t.recordedTxn.Else(ops...)
	return t
}

func (t *repeatingTxn) note(ops []clientv3.Op) {
	t.writes = t.writes || slices.ContainsFunc(ops, func(op clientv3.Op) bool { return !op.IsGet() })
}

// Commit implements clientv3.Txn.
func (t *repeatingTxn) Commit() (*clientv3.TxnResponse, error) {
	if !t.writes {
		return repeatRead(t.ctx, t.Txn.Commit)
	}
	asked := t.store.revision.Load()
	resp, err := t.Txn.Commit()
	if !t.store.options.alone() || !isGivenUp(err) {
		return resp, err
	}
	// What a single member has given up on is in its log, if anywhere, so it comes before what is sent now.
	for isGivenUp(err) && backoff.Wait(t.ctx, droppedPause) {
		resp, err = t.Txn.Commit()
	}
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

// isGivenUp reports whether etcd no longer waits for a request.
func isGivenUp(err error) bool {
	return errors.Is(err, rpctypes.ErrTimeout) || errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail)
}

func repeatRead[R any](ctx context.Context, read func() (R, error)) (R, error) {
	r, err := read()
	for (errors.Is(err, rpctypes.ErrLeaderChanged) || isGivenUp(err)) && backoff.Wait(ctx, droppedPause) {
		r, err = read()
	}
	return r, err
}

package store

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// errClosed is the error of requests after Close.
var errClosed = fmt.Errorf("%w: it is closed", ErrUnavailable)

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

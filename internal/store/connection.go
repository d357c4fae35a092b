package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// errReplaced is returned, with ErrUnavailable, if the store turns out to be a different one than
// was opened, or an older copy of it. The in-memory copy is then invalid: nothing is acknowledged
// anymore and the process exits, so that the next start reads the actual data.
var errReplaced = errors.New("the store was replaced under the running server")

// errClosed is the error of requests after Close.
var errClosed = fmt.Errorf("%w: it is closed", ErrUnavailable)

// connection is how all requests reach etcd. Their responses show whether it is still the store
// that was opened.
type connection struct {
	client  *clientv3.Client
	server  *etcdserver.EtcdServer // the embedded member; nil with an external cluster
	files   fileGuard              // of the embedded member
	options *Options
	health  *health
	failure *failure
	closed  context.Context // done after Close

	clusterID uint64       // set before the store is in use
	revision  atomic.Int64 // highest revision in any response
	replaced  atomic.Bool  // the in-memory copy belongs to another store
}

// requestContext limits one request to etcd. A member of an external cluster without a leader fails
// at once instead of waiting for one.
func (c *connection) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.streamContext(ctx), c.options.RequestTimeout)
}

// streamContext makes a member without a leader end the stream instead of going silent. This does
// not apply to a single embedded member.
func (c *connection) streamContext(ctx context.Context) context.Context {
	if c.server != nil {
		return ctx
	}
	return clientv3.WithRequireLeader(ctx)
}

// get reads one key or a range.
func (c *connection) get(ctx context.Context, limit time.Duration, key string, options ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	err = c.ask(ctx, limit, func(ctx context.Context) (*etcdserverpb.ResponseHeader, error) {
		if resp, err = c.client.Get(ctx, key, options...); err != nil {
			return nil, err
		}
		return resp.Header, nil
	})
	return resp, err
}

// getAll makes several reads at the same revision.
func (c *connection) getAll(ctx context.Context, gets ...clientv3.Op) (resp *clientv3.TxnResponse, err error) {
	err = c.ask(ctx, c.options.RequestTimeout, func(ctx context.Context) (*etcdserverpb.ResponseHeader, error) {
		if resp, err = c.client.Txn(ctx).Then(gets...).Commit(); err != nil {
			return nil, err
		}
		return resp.Header, nil
	})
	return resp, err
}

// ask makes a request that only reads, and checks its response. It repeats one that was interrupted
// by a change of the leader.
func (c *connection) ask(ctx context.Context, limit time.Duration, request func(context.Context) (*etcdserverpb.ResponseHeader, error)) error {
	ctx, cancel := context.WithTimeout(c.streamContext(ctx), limit)
	defer cancel()
	if err := c.answers(ctx); err != nil {
		return err
	}
	asked := c.revision.Load()
	header, err := request(ctx)
	for errors.Is(err, rpctypes.ErrLeaderChanged) && backoff.Wait(ctx, droppedPause) {
		header, err = request(ctx)
	}
	if err != nil {
		return classify(err, false)
	}
	return c.answered(asked, header)
}

// answers returns nil if a read of the store can succeed. A single embedded member reads from
// memory, regardless of its writes.
func (c *connection) answers(ctx context.Context) error {
	if c.options.alone() {
		return nil
	}
	if err := c.awaitLeader(ctx); err != nil {
		return err
	}
	return c.health.stalled()
}

// leaderGap is how long requests wait while the cluster of embedded members has no leader: one hands
// over to another within milliseconds.
const leaderGap = time.Second

// awaitLeader waits for a leader of the cluster of embedded members for a moment, and returns an
// error if there is none. While writes have failed for long, it does not wait.
func (c *connection) awaitLeader(ctx context.Context) error {
	if c.leaderless() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaderGap)
	defer cancel()
	for c.health.stalled() == nil {
		changed := c.server.LeaderChangedNotify()
		if c.leaderless() == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c.leaderless()
		}
	}
	return c.leaderless()
}

// leaderless returns an error if the cluster of embedded members has no leader, as a member of an
// external cluster would.
func (c *connection) leaderless() error {
	if c.server == nil || c.options.alone() || c.server.Leader() != 0 {
		return nil
	}
	return &StalledError{Cause: errNoQuorum}
}

// answered checks the header of a response to a request that was sent when asked was the highest
// known revision.
func (c *connection) answered(asked int64, header *etcdserverpb.ResponseHeader) error {
	if c.replaced.Load() {
		return fmt.Errorf("%w: %w", ErrUnavailable, errReplaced)
	}
	if err := c.sameCluster(header.ClusterId); err != nil {
		return err
	}
	if header.Revision < asked {
		return c.isReplaced(fmt.Sprintf("it is at revision %d and was at %d: it was replaced by an older copy", header.Revision, asked))
	}
	c.sawRevision(header.Revision)
	return nil
}

// cluster returns the ID of the etcd cluster.
func (c *connection) cluster() string { return strconv.FormatUint(c.clusterID, 16) }

// sameCluster checks the cluster of a response.
func (c *connection) sameCluster(id uint64) error {
	if id == c.clusterID {
		return nil
	}
	return c.isReplaced(fmt.Sprintf("its cluster id is %x, it was %x", id, c.clusterID))
}

// sameFiles checks that the embedded member still writes to the files of the data directory.
func (c *connection) sameFiles() error {
	if how := c.files.changed(); how != "" {
		return c.isReplaced(how)
	}
	return nil
}

// isReplaced terminates the process.
func (c *connection) isReplaced(how string) error {
	c.replaced.Store(true)
	err := fmt.Errorf("%w: %w: %s; restart the server to continue with the present contents", ErrUnavailable, errReplaced, how)
	c.failure.fatal(err)
	return err
}

func (c *connection) sawRevision(revision int64) {
	for {
		old := c.revision.Load()
		if revision <= old || c.revision.CompareAndSwap(old, revision) {
			return
		}
	}
}

package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// connectTimeout is the timeout of an attempt that only checks whether the server responds.
const connectTimeout = 5 * time.Second

// LostError says that the request was not sent because the server is lost: it does not respond, or
// it rejects the token.
type LostError struct{ Err error }

// Error says why the server is lost.
func (e *LostError) Error() string { return "the scheduling server was lost: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// Connect checks that the server responds and accepts the token. It retries up to
// Options.MaxRetries times if nothing listens, but does not retry if the server accepts connections
// without responding. It returns the server's description; nil if the token is not allowed to read
// it.
func (c *Client) Connect(ctx context.Context) (*api.ServerInfo, error) {
	return c.connect(ctx, false)
}

func (c *Client) connect(ctx context.Context, once bool) (*api.ServerInfo, error) {
	info := &api.ServerInfo{}
	q := &call{method: http.MethodGet, path: "/v1/server", repeatable: true, connecting: true, once: once}
	err := c.read(ctx, q, info)
	if StatusOf(err) == http.StatusForbidden {
		return nil, nil //nolint:nilnil // documented
	}
	return info, err
}

// loss records whether the server is lost.
type loss struct {
	cause atomic.Pointer[LostError]
	// asking is held by the one call that checks whether the server still responds.
	asking sync.Mutex
}

// err returns why the server is lost, or nil.
func (l *loss) err() error {
	if cause := l.cause.Load(); cause != nil {
		return cause
	}
	return nil
}

// settle decides whether an error of a call means that the server is lost. A single request may be
// too slow or break off with a healthy server, so the server is lost only if it does not respond to
// a simple request either, which is repeated if its connection is reset.
func (c *Client) settle(ctx context.Context, q *call, err error) error {
	if err == nil || !c.opts.GiveUp || q.connecting {
		return err
	}
	var refused *LoginError
	if errors.As(err, &refused) {
		return c.lose(err)
	}
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	c.loss.asking.Lock()
	defer c.loss.asking.Unlock()
	if lost := c.loss.err(); lost != nil {
		return lost
	}
	// The caller's context may be done, but the result concerns all calls.
	_, again := c.connect(context.WithoutCancel(ctx), true)
	if errors.As(again, &unreachable) || errors.As(again, &refused) {
		return c.lose(err)
	}
	return err
}

// lose marks the server as lost for all calls.
func (c *Client) lose(err error) error {
	c.loss.cause.CompareAndSwap(nil, &LostError{err})
	return c.loss.err()
}

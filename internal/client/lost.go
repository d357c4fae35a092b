package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connectTimeout is how long an attempt may take that only asks whether the
// server is there.
const connectTimeout = 5 * time.Second

// LostError says that the server cannot be worked with any more, so that nothing
// was tried: it does not answer, or it does not take the token.
type LostError struct{ Err error }

// Error says what ended the work with the server.
func (e *LostError) Error() string { return "the scheduling server was lost: " + e.Err.Error() }

// Unwrap returns what ended the work with the server.
func (e *LostError) Unwrap() error { return e.Err }

// Connect asks whether the server is there and takes the token. It asks with
// Options.MaxRetries for one that does not listen yet, and only once for one that
// takes connections and says nothing. A token that may not read the description of
// the server is good enough.
func (c *Client) Connect(ctx context.Context) error {
	return c.connect(ctx, false)
}

func (c *Client) connect(ctx context.Context, once bool) error {
	var info struct{}
	q := &call{method: http.MethodGet, path: "/v1/server", repeatable: true, connecting: true, once: once}
	err := c.read(ctx, q, &info)
	if StatusOf(err) == http.StatusForbidden {
		return nil
	}
	return err
}

// loss is what a client that gives up knows of its server.
type loss struct {
	cause atomic.Pointer[LostError]
	// asking is held by the one call that asks whether the server is still there.
	asking sync.Mutex
}

// err is the reason why nothing is tried any more; nil while something is.
func (l *loss) err() error {
	if cause := l.cause.Load(); cause != nil {
		return cause
	}
	return nil
}

// settle decides what an error of a call means for all that follow. One request
// may be too slow, or break off, and the server be well: only where it does not
// answer a simple question either is it lost.
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
	// The caller's own time may be up; what comes out is for everybody.
	again := c.connect(context.WithoutCancel(ctx), true)
	if errors.As(again, &unreachable) || errors.As(again, &refused) {
		return c.lose(err)
	}
	return err
}

// lose ends the work with the server for all calls.
func (c *Client) lose(err error) error {
	c.loss.cause.CompareAndSwap(nil, &LostError{err})
	return c.loss.err()
}

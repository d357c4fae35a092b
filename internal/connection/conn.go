package connection

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Watch lets the limit see what the connections of a server do. It wraps the
// server's handler, which has to be set already.
func (l *Limit) Watch(server *http.Server) {
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok && c != nil {
			defer c.begin(r)()
		}
		handler.ServeHTTP(w, r)
	})
	server.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, tracked(nc))
	}
	server.ConnState = func(nc net.Conn, state http.ConnState) {
		c := tracked(nc)
		if c == nil {
			return
		}
		switch state {
		case http.StateActive:
			c.change(func() { c.idle = false })
		case http.StateIdle:
			c.change(func() { c.idle = true })
		default: // new ones are idle already, closed ones are gone
		}
	}
}

type connKey struct{}

// tracked is the connection of a Listener below TLS; nil for others.
func tracked(nc net.Conn) *conn {
	if secured, ok := nc.(*tls.Conn); ok {
		nc = secured.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

// conn is a connection that gives its place back when it is closed.
type conn struct {
	net.Conn
	listener *Listener
	address  string
	// untouched is set until the first bytes of the next request arrive.
	untouched atomic.Bool

	// Guarded by the mutex of the limit.
	client               *client
	silence              *time.Timer
	idle                 bool
	requests, bodies     int // being answered, and those whose body is incomplete
	phase                phase
	since                time.Time
	inListener, inClient *list.Element
	gone                 bool
}

// change notes what happens on the connection, and queues it accordingly.
func (c *conn) change(note func()) {
	l := c.listener.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	note()
	phase := answering
	switch {
	case c.idle:
		phase = waiting
	case c.requests > 0 && c.bodies == c.requests:
		phase = receiving
	}
	if c.gone || phase == c.phase {
		return
	}
	c.untouched.Store(phase == waiting)
	l.enter(c, phase)
}

// begin notes a request; what it returns has to be called when it is answered.
func (c *conn) begin(r *http.Request) (end func()) {
	hasBody := r.Body != nil && r.Body != http.NoBody
	c.change(func() {
		c.silence.Stop()
		if r.ProtoMajor == 1 { // one at a time
			c.requests, c.bodies = 0, 0
		}
		c.requests++
		if hasBody {
			c.bodies++
		}
	})
	received := func() {}
	if hasBody {
		received = sync.OnceFunc(func() { c.change(func() { c.bodies = max(0, c.bodies-1) }) })
		r.Body = &body{ReadCloser: r.Body, received: received}
	}
	return func() {
		if r.ProtoMajor == 1 {
			return // the server takes the rest of the body before the connection is idle
		}
		received()
		c.change(func() { c.requests = max(0, c.requests-1) })
	}
}

// Read implements net.Conn. The first bytes of a request put off the turn of a
// connection that waited for it, once.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.untouched.CompareAndSwap(true, false) {
		l := c.listener.limit
		l.mu.Lock()
		if !c.gone && c.phase == waiting {
			l.enter(c, waiting)
		}
		l.mu.Unlock()
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}

// release gives the place back; false where that has been done.
func (c *conn) release() bool {
	l := c.listener.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remove(c)
}

// silent closes the connection because there was no request in time.
func (c *conn) silent() {
	if c.release() {
		c.evict("silent")
	}
}

// evict closes the connection, which has given its place back.
func (c *conn) evict(why string) {
	c.listener.limit.metrics.evicted.WithLabelValues(c.listener.name, why).Inc()
	_ = c.Conn.Close() // nobody is served on it; its server notices by the next read
}

// body is the body of a request that tells when it has arrived as a whole.
type body struct {
	io.ReadCloser
	received func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.received()
	}
	return n, err
}

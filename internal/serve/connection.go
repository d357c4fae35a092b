package serve

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Watch tracks the connections of a server. It wraps the server's handler, which must already be
// set.
func (l *Limit) Watch(server *http.Server) {
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok && c != nil {
			var end func()
			r, end = c.begin(r)
			defer end()
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
			c.change(func() { c.between = false })
		case http.StateIdle:
			c.change(func() { c.between = true })
		default: // new ones are already known, closed ones are gone
		}
	}
}

type connKey struct{}

// tracked returns the connection of a Listener below TLS, or nil.
func tracked(nc net.Conn) *conn {
	if secured, ok := nc.(*tls.Conn); ok {
		nc = secured.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

// conn is a connection that releases its place when it is closed.
type conn struct {
	net.Conn
	listener *Listener
	address  string
	// closed is closed when the server has closed the connection.
	closed chan struct{}
	close  func()

	// Guarded by the mutex of the limit.
	client               *client
	silence              *time.Timer
	between              bool // no request is in progress
	waiting              bool // the server waits for data from the client
	requests, bodies     int  // requests in progress, and those of them with an incomplete body
	phase                phase
	since                time.Time // start of the current phase
	inListener, inClient *list.Element
	gone                 bool
}

func newConn(inner net.Conn, at *Listener) *conn {
	c := &conn{Conn: inner, listener: at, address: ClientOf(inner.RemoteAddr().String()), closed: make(chan struct{})}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

// change records an event on the connection, and queues it accordingly.
func (c *conn) change(note func()) {
	l := c.listener.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	note()
	if c.gone {
		return
	}
	phase := answering
	switch {
	case c.between && (c.phase == silent || c.phase == speaking):
		return // unchanged
	case c.between:
		phase = idle
	case c.requests > 0 && c.bodies == c.requests:
		phase = receiving
	}
	if phase == c.phase {
		return
	}
	l.enter(c, phase)
}

// begin records a request, and returns it with a body that is watched; end must be called when it
// has been answered. The request itself keeps its own body: the server recognizes by it whether the
// client waits to be told to send it, or has much more to send, and then answers without it.
func (c *conn) begin(r *http.Request) (watched *http.Request, end func()) {
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
		watched := *r
		watched.Body = &body{ReadCloser: r.Body, received: received}
		r = &watched
	}
	return r, func() {
		if r.ProtoMajor == 1 {
			return // the server reads the rest of the body before the connection is idle
		}
		received()
		c.change(func() { c.requests = max(0, c.requests-1) })
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	l := c.listener.limit
	l.mu.Lock()
	c.waiting = true
	l.mu.Unlock()
	n, err := c.Conn.Read(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	c.waiting = false
	if n > 0 && !c.gone && (c.phase == silent || c.phase == idle) {
		l.enter(c, speaking)
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.release()
	defer c.close()
	return c.Conn.Close()
}

// release releases the place; it returns false if that has been done.
func (c *conn) release() bool {
	l := c.listener.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remove(c)
}

// timeOut closes the connection because there was no request in time.
func (c *conn) timeOut() {
	if c.release() {
		c.evict("silent")
	}
}

// evict closes the connection, whose place has been released.
func (c *conn) evict(why string) {
	c.listener.limit.metrics.evicted.WithLabelValues(c.listener.name, why).Inc()
	_ = c.Conn.Close() // not in use; the server notices at the next read
}

// body is a request body that reports when it has arrived completely.
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

// LimitUnread limits how many bytes the operating system buffers for a client that does not read
// its response. By default, it buffers megabytes.
func LimitUnread(ctx context.Context, bytes int) {
	c, _ := ctx.Value(connKey{}).(*conn)
	if c == nil {
		return
	}
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(bytes) // nothing more is sent on a closed connection
	}
}

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
			c.change(func() { c.between = false })
		case http.StateIdle:
			c.change(func() { c.between = true })
		default: // new ones are known already, closed ones are gone
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
	// closed is closed when the server has closed the connection.
	closed chan struct{}
	close  func()

	// Guarded by the mutex of the limit.
	client               *client
	silence              *time.Timer
	between              bool // no request is under way
	waiting              bool // the server waits for the client to send something
	requests, bodies     int  // being answered, and those whose body is incomplete
	phase                phase
	since                time.Time // in this phase
	inListener, inClient *list.Element
	gone                 bool
}

func newConn(inner net.Conn, at *Listener) *conn {
	c := &conn{Conn: inner, listener: at, address: ClientOf(inner.RemoteAddr().String()), closed: make(chan struct{})}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

// change notes what happens on the connection, and queues it accordingly.
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
		return // still
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

// release gives the place back; false where that has been done.
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

// LimitUnread bounds how many bytes the system keeps of what was sent on the
// connection of a request and not read by the client yet. Left alone, it takes
// megabytes for a client that does not read.
func LimitUnread(ctx context.Context, bytes int) {
	c, _ := ctx.Value(connKey{}).(*conn)
	if c == nil {
		return
	}
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(bytes) // on a closed connection nothing is sent any more
	}
}

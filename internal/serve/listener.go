package serve

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// Listener accepts connections within a Limit.
type Listener struct {
	net.Listener
	name    string
	tls     bool
	limit   *Limit
	open    int
	clients map[string]*client
	queues  queues
	closed  chan struct{}
	close   func()
}

// Listen adds a listener to the limit. The name is used in metrics. The server must have been
// passed to Watch before.
func (l *Limit) Listen(name string, inner net.Listener, tls bool) *Listener {
	at := &Listener{Listener: inner, name: name, tls: tls, limit: l, clients: map[string]*client{}, closed: make(chan struct{})}
	at.close = sync.OnceFunc(func() { close(at.closed) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners = append(l.listeners, at)
	return at
}

// Accept implements net.Listener.
func (at *Listener) Accept() (net.Conn, error) {
	for {
		inner, err := at.accept()
		if err != nil {
			return nil, err
		}
		c := newConn(inner, at)
		evicted, limit := at.limit.admit(at, c)
		if evicted != nil {
			evicted.evict(limit)
			at.await(evicted)
		} else if limit != "" {
			at.limit.metrics.rejected.WithLabelValues(at.name, limit).Inc()
			at.reject(inner)
			continue
		}
		return c, nil
	}
}

// await waits until the server has closed an evicted connection, because its file descriptor is in
// use until then. This slows down clients that open connections faster than others can be closed.
func (at *Listener) await(evicted *conn) {
	select {
	case <-evicted.closed:
	case <-at.closed:
	case <-time.After(time.Second): // the server is busy
	}
}

// acceptAgain is the backoff after a failed accept.
var acceptAgain = backoff.Backoff{First: 5 * time.Millisecond, Most: time.Second}

// accept waits for a connection. Only a closed listener returns an error: other failures, such as a
// lack of file descriptors or memory, are temporary and retried.
func (at *Listener) accept() (net.Conn, error) {
	for failures := 1; ; failures++ {
		inner, err := at.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return inner, err
		}
		at.limit.metrics.failed.WithLabelValues(at.name).Inc()
		at.limit.options.Logger.Warn("a connection could not be accepted; retrying", "listener", at.name, "error", err)
		at.limit.makeRoom(at)
		select {
		case <-time.After(acceptAgain.After(failures)):
		case <-at.closed:
			return nil, net.ErrClosed
		}
	}
}

// Close implements net.Listener.
func (at *Listener) Close() error {
	at.close()
	return at.Listener.Close()
}

// tooMany fits into the send buffer of a new connection, so writing it does not block. Under TLS
// nothing can be sent before the handshake.
var tooMany = []byte("HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")

func (at *Listener) reject(inner net.Conn) {
	if !at.tls {
		_ = inner.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // fails only on a broken connection
		_, _ = inner.Write(tooMany)
	}
	_ = inner.Close()
}

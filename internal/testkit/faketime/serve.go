package faketime

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Serve returns a transport whose requests a handler answers over connections in memory. In a bubble of
// testing/synctest, time passes while both ends wait for each other, which it does not with a real network.
func Serve(t testing.TB, handler http.Handler) *http.Transport {
	t.Helper()
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler} //nolint:gosec // its only clients are tests
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }() // ends with Close
	transport := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() { transport.CloseIdleConnections(); _ = server.Close(); <-served })
	return transport
}

// listener accepts connections in memory.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }

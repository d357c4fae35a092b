package httpapi

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// limitedListener accepts a bounded number of connections, in all and of each
// client address, so that no client takes the file descriptors of the others.
type limitedListener struct {
	net.Listener
	total, perIP int
	tls          bool
	metrics      *httpMetrics

	mu   sync.Mutex
	open map[string]int
	sum  int
}

func (s *Server) limitConnections(l net.Listener) *limitedListener {
	return &limitedListener{
		Listener: l, total: s.options.MaxConnections, perIP: s.options.MaxConnectionsPerIP,
		tls: s.options.TLS != nil, metrics: s.metrics, open: map[string]int{},
	}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		ip := clientIP(conn.RemoteAddr().String())
		if limit := l.take(ip); limit != "" {
			l.metrics.rejected.WithLabelValues(limit).Inc()
			l.reject(conn)
			continue
		}
		l.metrics.connections.Inc()
		return &limitedConn{Conn: conn, release: func() { l.give(ip) }}, nil
	}
}

// take counts a connection, or names the limit that it would break.
func (l *limitedListener) take(ip string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.open[ip] >= l.perIP:
		return "client"
	case l.sum >= l.total:
		return "total"
	}
	l.open[ip]++
	l.sum++
	return ""
}

func (l *limitedListener) give(ip string) {
	l.metrics.connections.Dec()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum--
	if l.open[ip]--; l.open[ip] == 0 {
		delete(l.open, ip)
	}
}

// tooMany fits the send buffer of a new connection, so writing it does not
// block. Under TLS nothing can be said before the handshake.
var tooMany = []byte("HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")

func (l *limitedListener) reject(conn net.Conn) {
	if !l.tls {
		_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // fails on a broken connection only
		_, _ = conn.Write(tooMany)
	}
	_ = conn.Close()
}

// limitedConn gives its place back when it is closed, once.
type limitedConn struct {
	net.Conn
	closed  atomic.Bool
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		defer c.release()
	}
	return c.Conn.Close()
}

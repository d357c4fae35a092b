// Package proxytest is test code for connections: a TCP proxy that stalls them in one or
// both directions, breaks them, and counts what it did; and addresses on which nothing
// listens but what the test runs there.
package proxytest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Direction is the direction of data.
type Direction int

// Directions.
const (
	ToServer Direction = iota
	ToClient
)

// Proxy forwards connections to a server.
type Proxy struct {
	address string
	target  string
	held    atomic.Int64

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener     // nil while the proxy is down
	gates    [2]chan struct{} // nil = open; otherwise closed when data may pass again
	conns    map[net.Conn]bool
}

// Start starts a proxy for an address; it is stopped when the test ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{target: target, conns: map[net.Conn]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.address = FreeAddress(t)
	p.Up(t)
	t.Cleanup(func() {
		p.cancel()
		p.Down(t)
		p.Pass(ToServer, ToClient)
		p.running.Wait()
	})
	return p
}

// Address returns the address for clients.
func (p *Proxy) Address() string { return p.address }

// Held returns how many pieces of data have been held back so far.
func (p *Proxy) Held() int64 { return p.held.Load() }

// Stall holds back data in the given directions, without closing connections.
func (p *Proxy) Stall(directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range directions {
		if p.gates[d] == nil {
			p.gates[d] = make(chan struct{})
		}
	}
}

// Pass lets data in the given directions through again, including what was held back.
func (p *Proxy) Pass(directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range directions {
		if p.gates[d] != nil {
			close(p.gates[d])
			p.gates[d] = nil
		}
	}
}

// Reset resets all connections, like a restarted firewall.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // makes Close send a reset
		}
		_ = conn.Close()
	}
	clear(p.conns)
}

// Down resets all connections and rejects new ones until Up.
func (p *Proxy) Down(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	if p.listener != nil {
		if err := p.listener.Close(); err != nil {
			t.Error(err)
		}
		p.listener = nil
	}
	p.mu.Unlock()
	p.Reset()
}

// Up accepts connections again at the same address.
func (p *Proxy) Up(t testing.TB) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(p.ctx, "tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = listener
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(p.ctx, conn) })
		}
	})
}

func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return false
	}
	for _, conn := range conns {
		p.conns[conn] = true
	}
	return true
}

func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(client, server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(ctx, server, client, ToServer) })
	both.Go(func() { p.copy(ctx, client, server, ToClient) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
}

func (p *Proxy) copy(ctx context.Context, to, from net.Conn, d Direction) {
	defer to.Close()
	defer from.Close()
	data := make([]byte, 32<<10)
	for {
		n, err := from.Read(data)
		p.mu.Lock()
		gate := p.gates[d]
		p.mu.Unlock()
		if gate != nil {
			p.held.Add(1)
			select {
			case <-gate:
			case <-ctx.Done():
				return
			}
		}
		if n > 0 {
			if _, err := to.Write(data[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

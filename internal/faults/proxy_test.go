//go:build faults

package faults

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// weather is what a proxy does to the bytes in one direction.
type weather int

const (
	fine      weather = iota
	stalled           // nothing is forwarded, without an error
	slow              // every packet is delayed
	cutAnswer         // the connection is reset at the next byte
)

// proxy is a proxy between a client and a server, with faults.
type proxy struct {
	t        testing.TB
	listener net.Listener
	target   string

	mu          sync.Mutex
	changed     *sync.Cond
	there, back weather
	refusing    bool
	closed      bool
	open        map[net.Conn]bool
	skip        int   // number of packets back that are still to be forwarded, whatever is set
	cuts        int   // number of responses still to be cut off
	held, cut   int64 // number of delayed packets, number of reset connections
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	return startProxyAt(t, "127.0.0.1:0", target)
}

// startProxyAt starts a proxy that listens on an address.
func startProxyAt(t testing.TB, address, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	x := &proxy{t: t, listener: listener, target: target, open: map[net.Conn]bool{}}
	x.changed = sync.NewCond(&x.mu)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { x.carry(in) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		x.mu.Lock()
		x.closed = true
		for c := range x.open {
			c.Close()
		}
		x.changed.Broadcast()
		x.mu.Unlock()
		running.Wait()
	})
	return x
}

func (x *proxy) address() string { return x.listener.Addr().String() }

// set sets what happens to the bytes to the target and back.
func (x *proxy) set(there, back weather) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.there, x.back = there, back
	x.changed.Broadcast()
}

// reset breaks all connections. With refuse, it also refuses new ones.
func (x *proxy) reset(refuse bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refusing = refuse
	for c := range x.open {
		x.cut++
		breakOff(c)
	}
}

// cutNext resets the next n responses: the server carries out the requests, but no client learns of it.
func (x *proxy) cutNext(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cuts = n
}

// skipNext forwards the next n packets back. What is set, and cutNext, apply to those after them: a fault begins in
// the middle of what a client does, however long the client takes until then.
func (x *proxy) skipNext(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.skip = n
}

// lead directs new connections to another server.
func (x *proxy) lead(target string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.target = target
}

// breakOff resets a connection instead of closing it.
func breakOff(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// counts returns the number of delayed packets and of broken connections.
func (x *proxy) counts() (held, cut int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held, x.cut
}

func (x *proxy) carry(in net.Conn) {
	x.mu.Lock()
	refusing, target := x.refusing || x.closed, x.target
	x.mu.Unlock()
	if refusing {
		x.mu.Lock()
		x.cut++
		x.mu.Unlock()
		breakOff(in)
		return
	}
	out, err := net.Dial("tcp", target)
	if err != nil {
		breakOff(in)
		return
	}
	x.mu.Lock()
	x.open[in], x.open[out] = true, true
	x.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { x.copy(out, in, func() weather { return x.there }) })
	both.Go(func() {
		x.copy(in, out, func() weather {
			if x.skip > 0 {
				x.skip--
				return fine
			}
			if x.cuts > 0 {
				x.cuts--
				return cutAnswer
			}
			return x.back
		})
	})
	both.Wait()
	x.mu.Lock()
	delete(x.open, in)
	delete(x.open, out)
	x.mu.Unlock()
	in.Close()
	out.Close()
}

func (x *proxy) copy(to, from net.Conn, now func() weather) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !x.pass(now) {
			breakOff(to)
			breakOff(from)
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				from.Close()
				return
			}
		}
		if err != nil {
			if tcp, ok := to.(*net.TCPConn); ok && errors.Is(err, io.EOF) {
				_ = tcp.CloseWrite()
			} else {
				to.Close()
			}
			return
		}
	}
}

// pass waits until a packet may be forwarded, and reports whether it may be at all.
func (x *proxy) pass(now func() weather) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for counted := false; !x.closed; {
		switch now() {
		case fine:
			return true
		case cutAnswer:
			x.cut++
			return false
		case slow:
			x.held++
			x.mu.Unlock()
			time.Sleep(150 * time.Millisecond) //nolint:forbidigo // the connection is slow
			x.mu.Lock()
			return true
		case stalled:
			if !counted {
				counted = true
				x.held++
			}
			x.changed.Wait()
		}
	}
	return false
}

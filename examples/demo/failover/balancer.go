package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// balancer forwards connections to a server that is ready. It takes the place of a real load balancer.
type balancer struct {
	servers []string // host:port
	mu      sync.Mutex
	next    int             // guarded by mu
	ready   map[string]bool // guarded by mu
}

// run serves a listener until ctx ends.
func (b *balancer) run(ctx context.Context, listener net.Listener) {
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	for _, server := range b.servers {
		go b.watch(ctx, server)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go b.pass(ctx, connection)
	}
}

// watch checks five times a second whether a server is ready.
func (b *balancer) watch(ctx context.Context, server string) {
	client := &http.Client{Timeout: time.Second}
	for ctx.Err() == nil {
		ready := false
		if request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server+"/readyz", nil); err == nil {
			if answer, err := client.Do(request); err == nil {
				ready = answer.StatusCode == http.StatusOK
				_ = answer.Body.Close()
			}
		}
		b.mu.Lock()
		b.ready[server] = ready
		b.mu.Unlock()
		time.Sleep(200 * time.Millisecond)
	}
}

// pick returns the ready servers in turn. If none is ready, it returns any: a server that cannot write still reads, and
// says why it cannot write.
func (b *balancer) pick() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.servers {
		b.next = (b.next + 1) % len(b.servers)
		if server := b.servers[b.next]; b.ready[server] {
			return server
		}
	}
	return b.servers[b.next]
}

func (b *balancer) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", b.pick())
	if err != nil {
		return // the client sees its connection end, and retries
	}
	defer server.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // one side has ended
			done <- struct{}{}
		}()
	}
	<-done
}

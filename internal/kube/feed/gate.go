package feed

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Gate holds back requests to a cluster that did not answer the last probe: they
// would only wait, in places that other clusters need.
type Gate struct {
	places *semaphore.Weighted

	mu     sync.Mutex
	probed bool            // somebody has said how the cluster is
	why    error           // the gate is shut
	opened chan struct{}   // closed while the gate is open
	open   context.Context // ends when the gate is shut
	shut   context.CancelFunc
}

// newGate makes a gate that is shut until a probe is told, or presumed to succeed.
func newGate(places *semaphore.Weighted) *Gate {
	return &Gate{places: places, opened: make(chan struct{})}
}

// Set takes in what a probe of the cluster found, nil where it answers, and reports
// whether that opened or shut the gate.
func (g *Gate) Set(err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probed, g.why = true, err
	return g.set(err == nil)
}

// presume opens a gate that no probe has been told of.
func (g *Gate) presume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.probed {
		g.set(true)
	}
}

func (g *Gate) set(open bool) bool {
	switch {
	case open == (g.open != nil):
		return false
	case open:
		g.open, g.shut = context.WithCancel(context.Background())
		close(g.opened)
	default:
		g.shut()
		g.open = nil
		g.opened = make(chan struct{})
	}
	return true
}

// IsOpen reports whether requests are let through.
func (g *Gate) IsOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open != nil
}

// reason is what shut the gate, nil where it is open.
func (g *Gate) reason() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

// wait waits until the gate is open.
func (g *Gate) wait(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Enter waits until the gate is open and few enough others read something large. It
// returns a context that ends when the gate is shut again.
func (g *Gate) Enter(ctx context.Context) (context.Context, context.CancelFunc, error) {
	for {
		if err := g.wait(ctx); err != nil {
			return nil, nil, err
		}
		g.mu.Lock()
		open := g.open
		g.mu.Unlock()
		if open == nil {
			continue // shut again meanwhile
		}
		ctx, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(open, cancel)
		if err := g.places.Acquire(ctx, 1); err != nil {
			stop()
			cancel()
			return nil, nil, err
		}
		return ctx, func() { g.places.Release(1); stop(); cancel() }, nil
	}
}

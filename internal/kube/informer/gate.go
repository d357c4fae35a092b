package informer

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Gate holds back requests to a cluster that failed the last probe: they would only time out, using
// capacity that other clusters need.
type Gate struct {
	places *semaphore.Weighted

	mu     sync.Mutex
	probed bool            // somebody has reported the cluster's state
	why    error           // why the gate is shut
	opened chan struct{}   // closed while the gate is open
	open   context.Context // done when the gate is shut
	shut   context.CancelFunc
}

// newGate returns a gate that is shut until a probe is reported, or presumed to succeed.
func newGate(places *semaphore.Weighted) *Gate {
	return &Gate{places: places, opened: make(chan struct{})}
}

// Set records the result of a probe of the cluster, nil if it responds, and reports whether that
// opened or shut the gate.
func (g *Gate) Set(err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probed, g.why = true, err
	return g.set(err == nil)
}

// presume opens a gate for which no probe has been reported.
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

// reason returns why the gate is shut, or nil.
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

// Enter waits until the gate is open and there is capacity for another large read. The returned
// context is done when the gate is shut again.
func (g *Gate) Enter(ctx context.Context) (context.Context, context.CancelFunc, error) {
	for {
		if err := g.wait(ctx); err != nil {
			return nil, nil, err
		}
		g.mu.Lock()
		open := g.open
		g.mu.Unlock()
		if open == nil {
			continue // shut again in the meantime
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

package kubernetes

import (
	"context"
	"sync"
)

// gate holds back requests to a cluster that did not answer the last probe: they
// would only wait, in places that other clusters need. It is shut at first.
type gate struct {
	mu     sync.Mutex
	opened chan struct{}   // closed while the gate is open
	open   context.Context // ends when the gate is shut
	shut   context.CancelFunc
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

// set opens or shuts the gate, and reports whether that changed it.
func (g *gate) set(open bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
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

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open != nil
}

// wait waits until the gate is open.
func (g *gate) wait(ctx context.Context) error {
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

// pass waits until the gate is open, and returns a context that ends when it is
// shut again.
func (g *gate) pass(ctx context.Context) (context.Context, context.CancelFunc, error) {
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
		return ctx, func() { stop(); cancel() }, nil
	}
}

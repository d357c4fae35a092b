package httpapi

import (
	"sync"
	"time"
)

// gather collects what comes within a moment, so that many requests share the work that
// each would do alone.
type gather[T any] struct {
	moment time.Duration
	// hand takes what has come. Calls may overlap.
	hand func(all []T)

	mu  sync.Mutex
	all []T
}

func (g *gather[T]) add(one T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, one)
	if len(g.all) == 1 {
		time.AfterFunc(g.moment, func() { g.hand(g.take()) })
	}
}

func (g *gather[T]) take() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.all
	g.all = nil
	return all
}

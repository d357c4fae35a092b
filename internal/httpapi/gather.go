package httpapi

import (
	"sync"
	"time"
)

// gather collects what arrives within a short time, so that many requests share work.
type gather[T any] struct {
	moment time.Duration
	// hand processes what was collected. It may be called concurrently.
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

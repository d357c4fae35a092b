// Package announce tells a waiting goroutine which objects have changed.
package announce

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Set collects the keys of changed objects, each once, until they are taken.
type Set[K comparable] struct {
	mu    sync.Mutex
	keys  map[K]struct{}
	ready chan struct{} // holds a token if there are keys
}

// NewSet returns an empty set.
func NewSet[K comparable]() *Set[K] {
	return &Set[K]{keys: map[K]struct{}{}, ready: make(chan struct{}, 1)}
}

// Add adds keys. It does not block.
func (s *Set[K]) Add(keys ...K) {
	if len(keys) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.keys[key] = struct{}{}
	}
	select {
	case s.ready <- struct{}{}:
	default: // already announced
	}
}

// Next waits for keys and takes them, unordered. The error is that of ctx.
func (s *Set[K]) Next(ctx context.Context) ([]K, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for news: %w", ctx.Err())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Collect(maps.Keys(s.keys))
	clear(s.keys)
	return keys, nil
}

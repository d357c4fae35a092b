package source

import (
	"maps"
	"sync"
	"time"
)

// Memory is what a source has learned about queries, so that one that makes a request fail is not
// part of the next. The zero value is empty.
type Memory[K interface{ Over(now time.Time) bool }] struct {
	mu    sync.Mutex
	known map[string]K
}

// Recall returns what is known about a query, or the zero value if nothing is known or it has
// expired.
func (m *Memory[K]) Recall(query string, now time.Time) K {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.known[query]
	if ok && k.Over(now) {
		delete(m.known, query)
		k = *new(K)
	}
	return k
}

// Learn records what is known about a query.
func (m *Memory[K]) Learn(query string, k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[string]K{}
	}
	m.known[query] = k
}

// Forget removes queries that are no longer asked once there are many.
func (m *Memory[K]) Forget(asked []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) <= 2*len(asked)+1000 {
		return
	}
	keep := make(map[string]bool, len(asked))
	for _, query := range asked {
		keep[query] = true
	}
	maps.DeleteFunc(m.known, func(query string, _ K) bool { return !keep[query] })
}

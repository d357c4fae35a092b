// Package workers runs work in the background, at most one at a time for each key:
// reading a metrics provider, watching a cluster, collecting a cloud.
//
// Each key has a goroutine, which uses about 5 KB while it waits (BenchmarkMemory). That
// is little compared with the state of a provider, a watch or a cloud, but too much for
// the health of very many clusters: see internal/signal/health.
package workers

import (
	"context"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// Work runs until it has nothing more to do, or ctx is done. After a panic, or an error that wraps
// one, it is restarted with a backoff.
type Work func(ctx context.Context) error

// Group is a set of work by key. Start and Stop change the set at any time; Run executes it.
type Group[K comparable] struct {
	// Faults records panics. If nil, panics are not recorded.
	Faults *recovery.Component

	object func(K) string

	mu      sync.Mutex
	ctx     context.Context // of Run; nil = not running
	tasks   map[K]*task     // including those that are ending
	running sync.WaitGroup
}

// task is the work for one key.
type task struct {
	work    Work
	before  <-chan struct{} // closed when the key's previous task has ended
	cancel  context.CancelFunc
	stopped bool
	done    chan struct{} // closed when it has ended
}

// New returns an empty Group. object returns the object that the work for a key is about, for
// panics recorded in faults, which may be nil.
func New[K comparable](faults *recovery.Component, object func(K) string) *Group[K] {
	return &Group[K]{Faults: faults, object: object, tasks: map[K]*task{}}
}

// Start starts the work for a key. If there already is work for the key, it is stopped, and the new
// work begins when it has ended.
func (g *Group[K]) Start(key K, work Work) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &task{work: work, done: make(chan struct{})}
	if old := g.tasks[key]; old != nil {
		old.stop()
		t.before = old.done
	}
	g.tasks[key] = t
	if g.ctx != nil {
		g.begin(key, t)
	}
}

// Stop stops the work for a key without waiting for it.
func (g *Group[K]) Stop(key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.tasks[key]
	if t == nil {
		return
	}
	if t.cancel == nil {
		delete(g.tasks, key) // never started
	}
	t.stop()
}

// stop stops a task. A task that was never started ends at once.
func (t *task) stop() {
	switch {
	case t.stopped:
	case t.cancel != nil:
		t.cancel()
	default:
		close(t.done)
	}
	t.stopped = true
}

// Run executes the work until ctx is done, and returns when all of it has ended. A later Run
// restarts work that has not been stopped.
func (g *Group[K]) Run(ctx context.Context) error {
	g.mu.Lock()
	g.ctx = ctx
	for key, t := range g.tasks {
		g.begin(key, t)
	}
	g.mu.Unlock()
	<-ctx.Done()
	g.mu.Lock()
	g.ctx = nil
	g.mu.Unlock()
	g.running.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, t := range g.tasks {
		if g.tasks[key] = (&task{work: t.work, done: make(chan struct{})}); t.stopped {
			delete(g.tasks, key)
		}
	}
	return nil
}

// begin starts a task. The caller holds the lock.
func (g *Group[K]) begin(key K, t *task) {
	ctx, cancel := context.WithCancel(g.ctx)
	t.cancel = cancel
	g.running.Go(func() {
		defer g.ended(key, t)
		defer cancel()
		if t.before != nil {
			<-t.before
		}
		if ctx.Err() == nil {
			// Work returns no error except a panic, after which it is restarted until ctx is done.
			_ = g.Faults.Keep(ctx, g.object(key), t.work)
		}
	})
}

// ended records that a task has ended. A task that ended by itself has nothing more to do.
func (g *Group[K]) ended(key K, t *task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(t.done)
	if g.tasks[key] == t && (t.stopped || g.ctx != nil && g.ctx.Err() == nil) {
		delete(g.tasks, key)
	}
}

// Package keyed runs work in the background, at most one at a time for each key:
// reading a metrics provider, watching a cluster, collecting a cloud.
//
// Each key has a goroutine, which uses about 5 KB while it waits (BenchmarkMemory). That
// is little compared with the state of a provider, a watch or a cloud, but too much for
// the health of very many clusters: see internal/signal/health.
package keyed

import (
	"context"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
)

// Work goes on until it has nothing more to do, or ctx ends. After a panic, or an error
// that wraps one, it is begun again with a back-off.
type Work func(ctx context.Context) error

// Group is work by key. Start and Stop say what there is, at any time; Run does it.
type Group[K comparable] struct {
	// Faults is told of panics. Nil tells nobody.
	Faults *fault.Component

	object func(K) string

	mu      sync.Mutex
	ctx     context.Context // of Run; nil = it does not run
	tasks   map[K]*task     // also those that are on their way out
	running sync.WaitGroup
}

// task is the work for one key.
type task struct {
	work    Work
	before  <-chan struct{} // closed when what the key had before has ended
	cancel  context.CancelFunc
	stopped bool
	done    chan struct{} // closed when it has ended
}

// New makes a Group without work. faults is told of panics, with the object that work
// for a key is about; nil tells nobody.
func New[K comparable](faults *fault.Component, object func(K) string) *Group[K] {
	return &Group[K]{Faults: faults, object: object, tasks: map[K]*task{}}
}

// Start has work done for a key. What is done for it already is stopped, and the new
// work begins when that has ended.
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

// Stop has the work for a key end, without waiting for it.
func (g *Group[K]) Stop(key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.tasks[key]
	if t == nil {
		return
	}
	if t.cancel == nil {
		delete(g.tasks, key) // not begun
	}
	t.stop()
}

// stop ends a task. One that was never begun ends at once.
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

// Run does the work until ctx ends, and returns when all of it has ended. What has not
// been stopped is begun again by another Run.
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

// begin begins a task. The caller holds the lock.
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
			// Work has no error of its own but a panic, which is repeated until ctx ends.
			_ = g.Faults.Keep(ctx, g.object(key), t.work)
		}
	})
}

// ended takes in that a task has ended. One that ended by itself has nothing more to do.
func (g *Group[K]) ended(key K, t *task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(t.done)
	if g.tasks[key] == t && (t.stopped || g.ctx != nil && g.ctx.Err() == nil) {
		delete(g.tasks, key)
	}
}

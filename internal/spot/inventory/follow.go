package inventory

import (
	"context"
	"errors"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// sort is one sort of objects in the inventory.
type sort struct {
	what  string // for errors
	table interface {
		Failure(gate *informer.Gate) error
	}
	run     func(context.Context) // nil for what the cluster's informer has
	listed  chan struct{}         // closed after the first list
	ofFirst sync.Once
}

// told returns the callback of a table: take is called with each change, holding the lock of the
// inventory. A panic ends only the inventory, and does not affect others that follow the cluster.
func told[V any](i *Inventory, s *sort, take func(informer.Change[V])) func(iter.Seq[informer.Change[V]]) {
	return func(changes iter.Seq[informer.Change[V]]) {
		err := recovery.Confine("", func() error {
			i.mu.Lock()
			defer i.mu.Unlock()
			for change := range changes {
				take(change)
			}
			return nil
		})
		if err != nil {
			i.end(err)
			return
		}
		s.ofFirst.Do(func() { close(s.listed) })
	}
}

// follow adds a sort of objects; reduce returns what to keep of each. take is called with the new
// value, or nil if there is none.
func follow[V any, L runtime.Object](i *Inventory, what string, source informer.Source[L], reduce func(runtime.Object) (*V, bool), take func(informer.Change[*V])) {
	table := informer.NewTable(reduce, func(a, b *V) bool { return a == b })
	s := &sort{what: what, table: table, listed: make(chan struct{})}
	table.Tell(told(i, s, take))
	s.run = informer.Reflect(i.Informer, table, source, func() {}).Run
	i.sorts = append(i.sorts, s)
}

// followNodesAndPods adds nodes and pods, whose informer is shared.
func (i *Inventory) followNodesAndPods() {
	nodes := &sort{what: "nodes", table: i.Informer.Nodes, listed: make(chan struct{})}
	pods := &sort{what: "pods", table: i.Informer.Pods, listed: make(chan struct{})}
	i.sorts = append(i.sorts, nodes, pods)
	i.details = informer.Details{
		NodeOf: trimNode, PodOf: detailOf, Nodes: told(i, nodes, i.takeNode), Pods: told(i, pods, i.takePod),
	}
}

// Run keeps the inventory current until ctx is done. It returns a *recovery.Panic after a panic; the
// inventory must not be used then.
func (i *Inventory) Run(ctx context.Context) error {
	ctx, i.end = context.WithCancelCause(ctx)
	defer i.end(nil)
	defer i.Informer.Follow(informer.Follower{Details: &i.details})() //nolint:contextcheck // the informer continues for others
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range i.sorts {
		if s.run != nil {
			group.Go(func() error { return recovery.Confine("", func() error { s.run(ctx); return nil }) })
		}
	}
	group.Go(func() error { return i.awaitLists(ctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	if p, ok := errors.AsType[*recovery.Panic](context.Cause(ctx)); ok {
		return p
	}
	return nil
}

func (i *Inventory) awaitLists(ctx context.Context) error {
	for _, s := range i.sorts {
		select {
		case <-s.listed:
		case <-ctx.Done():
			return nil
		}
	}
	close(i.synced)
	return nil
}

// Synced returns a channel that is closed when everything has been listed once.
func (i *Inventory) Synced() <-chan struct{} { return i.synced }

// Failures returns the sorts of objects that cannot be listed and watched, with the errors.
func (i *Inventory) Failures() map[string]error {
	failures := map[string]error{}
	for _, s := range i.sorts {
		if err := s.table.Failure(i.Informer.Gate); err != nil {
			failures[s.what] = err
		}
	}
	return failures
}

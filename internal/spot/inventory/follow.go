package inventory

import (
	"context"
	"errors"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/feed"
)

// sort is one sort of objects that the inventory follows.
type sort struct {
	what    string // in the words of an error
	table   interface{ Failure(gate *feed.Gate) error }
	run     func(context.Context) // nil for what the feed of the cluster has
	listed  chan struct{}         // closed after the first list
	ofFirst sync.Once
}

// told is what a table tells of a sort of objects: take is given each change, under the
// lock of the inventory. A panic ends the inventory, and nobody else who follows the cluster.
func told[V any](i *Inventory, s *sort, take func(feed.Change[V])) func(iter.Seq[feed.Change[V]]) {
	return func(changes iter.Seq[feed.Change[V]]) {
		err := fault.Confine("", func() error {
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

// follow adds a sort of objects, of each of which reduce keeps something. take is given
// what is new, nil where that is nothing.
func follow[V any, L runtime.Object](i *Inventory, what string, source feed.Source[L], reduce func(runtime.Object) (*V, bool), take func(feed.Change[*V])) {
	table := feed.NewTable(reduce, func(a, b *V) bool { return a == b })
	s := &sort{what: what, table: table, listed: make(chan struct{})}
	table.Tell(told(i, s, take))
	s.run = feed.Reflect(i.Feed, table, source, func() {}).Run
	i.sorts = append(i.sorts, s)
}

// followNodesAndPods adds those that others follow, too.
func (i *Inventory) followNodesAndPods() {
	nodes := &sort{what: "nodes", table: i.Feed.Nodes, listed: make(chan struct{})}
	pods := &sort{what: "pods", table: i.Feed.Pods, listed: make(chan struct{})}
	i.sorts = append(i.sorts, nodes, pods)
	i.details = feed.Details{
		NodeOf: trimNode, PodOf: detailOf, Nodes: told(i, nodes, i.takeNode), Pods: told(i, pods, i.takePod),
	}
}

// Run keeps the inventory current until ctx ends. It ends with a *fault.Panic where it
// panics; it is of no use any more then.
func (i *Inventory) Run(ctx context.Context) error {
	ctx, i.end = context.WithCancelCause(ctx)
	defer i.end(nil)
	defer i.Feed.Follow(feed.Follower{Details: &i.details})() //nolint:contextcheck // what is watched for others goes on
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range i.sorts {
		if s.run != nil {
			group.Go(func() error { return fault.Confine("", func() error { s.run(ctx); return nil }) })
		}
	}
	group.Go(func() error { return i.awaitLists(ctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	if p, ok := errors.AsType[*fault.Panic](context.Cause(ctx)); ok {
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

// Synced is closed when everything has been listed once.
func (i *Inventory) Synced() <-chan struct{} { return i.synced }

// Failures says what cannot be listed and watched, and why; it is empty where all can.
func (i *Inventory) Failures() map[string]error {
	failures := map[string]error{}
	for _, s := range i.sorts {
		if err := s.table.Failure(i.Feed.Gate); err != nil {
			failures[s.what] = err
		}
	}
	return failures
}

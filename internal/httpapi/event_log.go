package httpapi

import (
	"context"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// eventLog keeps the latest changes, so that a watch can resume after a broken
// connection. It is a linked list: readers walk it at their own pace, and none
// of them can hold up another or the writer.
type eventLog struct {
	keep int // publications

	mu          sync.Mutex
	started     bool
	first, last *event
	length      int // publications after first
	changes     int // changes in them

	encoded encodings
}

// keepChanges bounds the log by what it holds, too: each change keeps the
// version before it in memory.
const keepChanges = 20_000

// keepBytes bounds it by how large the changed objects are.
const keepBytes = 32 << 20

// event is what one publication of the fleet changed.
type event struct {
	revision int64
	changes  []fleet.Change
	// clusters are those to which what has changed belongs, by name: as they were
	// after the publication or, deleted in it, before.
	clusters map[string]*api.Cluster
	// position is how many bytes of objects have changed up to and with it.
	position int64
	next     *event
	ready    chan struct{} // closed when next is set
}

func newEventLog(keep int) *eventLog {
	start := &event{ready: make(chan struct{})}
	return &eventLog{keep: keep, first: start, last: start, encoded: encodings{left: make(chan struct{}, 1)}}
}

// follow fills the log until ctx ends.
func (l *eventLog) follow(ctx context.Context, pictures *fleet.Fleet) {
	select {
	case <-pictures.Ready():
	case <-ctx.Done():
		return
	}
	changes := pictures.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	l.start(changes.Snapshot().Revision())
	for {
		batch, err := changes.Next(ctx)
		if err != nil {
			return // ctx has ended: an unbounded subscription has no other error
		}
		l.append(batch.Revision, batch.Changes, clustersOf(batch))
	}
}

// clustersOf are the clusters to which the changed objects of a publication
// belong; nil where there are none.
func clustersOf(batch fleet.Batch) map[string]*api.Cluster {
	var out map[string]*api.Cluster
	for _, change := range batch.Changes {
		if !auth.OfCluster(change.Key.Kind) {
			continue
		}
		if out == nil {
			out = map[string]*api.Cluster{}
		}
		if entry := batch.Snapshot.Get(auth.ClusterKey(change.Key.Namespace)); entry != nil {
			out[change.Key.Namespace], _ = entry.Object.(*api.Cluster)
		}
	}
	for _, change := range batch.Changes {
		if change.Key.Kind == api.KindCluster && change.New == nil && change.Old != nil && out != nil {
			out[change.Key.Name], _ = change.Old.Object.(*api.Cluster)
		}
	}
	return out
}

// start forgets what came before a revision.
func (l *eventLog) start(revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first, l.length, l.changes, l.started = l.push(revision, nil, nil), 0, 0, true
}

func (l *eventLog) append(revision int64, changes []fleet.Change, clusters map[string]*api.Cluster) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(revision, changes, clusters)
	l.length++
	l.changes += len(changes)
	for l.length > l.keep || l.length > 0 && (l.changes > keepChanges || l.last.position-l.first.position > keepBytes) {
		l.first = l.first.next
		l.length--
		l.changes -= len(l.first.changes)
	}
}

func (l *eventLog) push(revision int64, changes []fleet.Change, clusters map[string]*api.Cluster) *event {
	e := &event{revision: revision, changes: changes, clusters: clusters, position: l.last.position, ready: make(chan struct{})}
	for _, change := range changes {
		e.position += int64(changedBytes(change))
	}
	l.last.next = e
	close(l.last.ready)
	l.last = e
	return e
}

// changedBytes is about what it takes to tell a reader of a change.
func changedBytes(change fleet.Change) int {
	const least = 256 // what is told of an object that is gone
	if change.New == nil {
		return least
	}
	return least + change.New.Bytes()
}

// behind is how many bytes of changes there are after an event.
func (l *eventLog) behind(e *event) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.position - e.position
}

// newest is the position after everything so far.
func (l *eventLog) newest() *event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// after is the position after everything up to a revision; false when the log no
// longer knows what came then.
func (l *eventLog) after(revision int64) (*event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started || revision < l.first.revision {
		return nil, false
	}
	at := l.first
	for at.next != nil && at.next.revision <= revision {
		at = at.next
	}
	return at, true
}

package httpapi

import (
	"context"
	"maps"
	"slices"
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
	written     *event // the last one that is stored
	length      int    // events after first
	changes     int    // changes in them
	snapshot    *fleet.Snapshot
	// early is unstored, and about a revision that is still to be appended.
	early   []api.Key
	earlyAt int64
	// polls end when what is unstored of an object changes.
	polls map[api.Key]map[*poll]struct{}

	encoded encodings
}

// poll is a request that waits for something new about an object.
type poll struct{ end context.CancelFunc }

// keepChanges bounds the log by what it holds, too: each change keeps its version, and
// perhaps the one before it, in memory.
const keepChanges = 20_000

// keepBytes bounds it by how large the changed objects are.
const keepBytes = 32 << 20

// event is what one publication of the fleet changed, or which objects are shown
// otherwise since although nothing was written.
type event struct {
	revision int64
	// unstored says that nothing was written: the revision is that of the event before.
	unstored bool
	// from is the revision of the publication before. A watch that resumes between the
	// two, because another server has published less at once, is told what it does not
	// know. passed says that it cannot be told all of that.
	from    int64
	passed  bool
	changes []fleet.Change
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
	return &eventLog{keep: keep, first: start, last: start, written: start, polls: map[api.Key]map[*poll]struct{}{}, encoded: encodings{left: make(chan struct{}, 1)}}
}

// follow fills the log until ctx ends.
func (l *eventLog) follow(ctx context.Context, pictures *fleet.Fleet) {
	select {
	case <-pictures.Ready():
	case <-ctx.Done():
		return
	}
	changes := pictures.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	before := changes.Snapshot()
	l.start(before.Revision(), before)
	for {
		batch, err := changes.Next(ctx)
		if err != nil {
			return // ctx has ended: an unbounded subscription has no other error
		}
		l.append(batch)
		l.appendUnstored(damagedOtherwise(before, batch.Snapshot), batch.Revision)
		before = batch.Snapshot
	}
}

// damagedOtherwise are the objects that are damaged in only one of two pictures of the
// fleet, or otherwise.
func damagedOtherwise(before, after *fleet.Snapshot) (keys []api.Key) {
	if before.SameDamage(after) {
		return nil
	}
	for _, d := range before.AllDamaged() {
		if after.Damaged(d.Key) != d {
			keys = append(keys, d.Key)
		}
	}
	for _, d := range after.AllDamaged() {
		if before.Damaged(d.Key) == nil {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// followUnstored notes until ctx ends which objects are shown otherwise although nothing
// was written. next waits for them.
func (l *eventLog) followUnstored(ctx context.Context, pictures *fleet.Fleet, next func(context.Context) ([]api.Key, error)) {
	for {
		keys, err := next(ctx)
		if err != nil {
			return // ctx has ended
		}
		l.appendUnstored(keys, pictures.Snapshot().Revision())
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

// start forgets what came before a revision, that of a picture of the fleet.
func (l *eventLog) start(revision int64, at *fleet.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(&event{revision: revision})
	l.first, l.written, l.snapshot, l.length, l.changes, l.started = l.last, l.last, at, 0, 0, true
}

func (l *eventLog) append(batch fleet.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(&event{revision: batch.Revision, changes: told(batch.Changes), clusters: clustersOf(batch), passed: batch.Reset || batch.Passed})
	l.written, l.snapshot = l.last, batch.Snapshot
	l.trim()
	l.takeEarly()
}

// told are changes without the versions before that nobody is told of: who may see an
// object follows from what users write, so a change of the status alone takes it out of
// nobody's sight. Of a first pass each would be a whole object more.
func told(changes []fleet.Change) []fleet.Change {
	told := slices.Clone(changes)
	for i := range told {
		if c := &told[i]; c.Old != nil && c.New != nil && c.Old.SpecRevision == c.New.SpecRevision {
			c.Old = nil
		}
	}
	return told
}

// trim forgets what is too long ago.
func (l *eventLog) trim() {
	for l.first != l.written && (l.length > l.keep || l.changes > keepChanges || l.last.position-l.first.position > keepBytes) {
		l.first = l.first.next
		l.length--
		l.changes -= len(l.first.changes)
	}
	if l.first == l.written && l.length > l.keep {
		l.merge()
	}
}

// appendUnstored notes objects that are shown otherwise although nothing was written, as
// who has seen a revision of the fleet says. The log comes that far first: it would
// otherwise be taken for known to who reads from that revision on.
func (l *eventLog) appendUnstored(keys []api.Key, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		for p := range l.polls[key] {
			p.end()
		}
	}
	l.early, l.earlyAt = append(l.early, keys...), max(l.earlyAt, revision)
	l.takeEarly()
}

// takeEarly appends what is unstored once the log has come as far as it is about.
func (l *eventLog) takeEarly() {
	if !l.started || l.last.revision < l.earlyAt || len(l.early) == 0 {
		return
	}
	slices.SortFunc(l.early, api.Key.Compare)
	batch := fleet.Batch{Revision: l.last.revision, Snapshot: l.snapshot}
	for _, key := range slices.Compact(l.early) {
		if entry := l.snapshot.Get(key); entry != nil {
			batch.Changes = append(batch.Changes, fleet.Change{Key: key, New: entry})
		}
	}
	l.early = nil
	if len(batch.Changes) > 0 {
		l.push(&event{revision: batch.Revision, unstored: true, changes: batch.Changes, clusters: clustersOf(batch)})
		l.trim()
	}
}

// merge has one event in place of all those that are unstored since the last
// publication. They cannot be forgotten as others are: there is no newer revision from
// which to go on without them.
func (l *eventLog) merge() {
	of, clusters := map[api.Key]fleet.Change{}, map[string]*api.Cluster{}
	for e := l.first.next; e != nil; e = e.next {
		for _, change := range e.changes {
			of[change.Key] = change
		}
		maps.Copy(clusters, e.clusters)
	}
	merged := &event{revision: l.last.revision, unstored: true, clusters: clusters}
	for _, key := range slices.SortedFunc(maps.Keys(of), api.Key.Compare) {
		merged.changes = append(merged.changes, of[key])
	}
	before := l.last
	l.push(merged)
	first := *l.first
	first.position, first.next, first.ready = before.position, merged, before.ready
	l.first, l.written, l.length, l.changes = &first, &first, 1, len(merged.changes)
}

// poll returns a context that also ends when an object is shown otherwise although
// nothing was written, and what releases it.
func (l *eventLog) poll(ctx context.Context, key api.Key) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	p := &poll{end}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.polls[key] == nil {
		l.polls[key] = map[*poll]struct{}{}
	}
	l.polls[key][p] = struct{}{}
	return ctx, func() {
		end()
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.polls[key], p); len(l.polls[key]) == 0 {
			delete(l.polls, key)
		}
	}
}

func (l *eventLog) push(e *event) {
	e.from, e.position, e.ready = l.last.revision, l.last.position, make(chan struct{})
	for _, change := range e.changes {
		e.position += int64(changedBytes(change))
	}
	l.last.next = e
	close(l.last.ready)
	l.last = e
	l.length++
	l.changes += len(e.changes)
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

// after is the position after the last publication up to a revision; false when the log
// does not know what came then. What was unstored at that revision comes after it, as
// the revision does not tell whether the reader knows of it.
func (l *eventLog) after(revision int64) (at *event, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.first
	for ; e != nil && e.revision <= revision; e = e.next {
		if !e.unstored {
			at = e
		}
	}
	if e != nil && e.passed && e.from < revision {
		return nil, false
	}
	return at, at != nil && l.started
}

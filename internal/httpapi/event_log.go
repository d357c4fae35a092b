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

// eventLog keeps the latest changes, so that a watch can resume after its connection broke. It is a
// linked list: readers walk it at their own pace, and none of them blocks another or the writer.
type eventLog struct {
	keep int // publications
	// begun is closed when the log has begun to follow the fleet.
	begun chan struct{}

	mu          sync.Mutex
	first, last *event
	written     *event // the last stored one
	length      int    // number of events after first
	changes     int    // number of changes in them
	snapshot    *fleet.Snapshot
	// early are unstored changes at earlyAt, a revision that has not been appended yet.
	early   []api.Key
	earlyAt int64
	// polls are canceled when unstored data of an object changes.
	polls map[api.Key]map[*poll]struct{}

	encoded encodings
}

// poll is a request that waits for a change of an object.
type poll struct{ end context.CancelFunc }

// keepChanges also limits the log by the number of changes: each keeps its version, and perhaps the
// previous one, in memory.
const keepChanges = 20_000

// keepBytes limits it by the size of the changed objects.
const keepBytes = 32 << 20

// event contains the changes of one publication of the fleet, or the objects that are shown
// differently since then although nothing was written.
type event struct {
	revision int64
	// unstored says that nothing was written: the revision is that of the previous event.
	unstored bool
	// from is the revision of the previous publication. A watch that resumes at a revision in
	// between, because another server has published in smaller steps, gets what it does not know.
	// passed says that this is not completely possible.
	from    int64
	passed  bool
	changes []fleet.Change
	// moved has for each change where the decision was before, or nil if it was there already; it is
	// nil as a whole if no decision changed.
	moved []*api.Where
	// clusters are the clusters that the changed objects belong to, by name: as of after the
	// publication or, if deleted in it, before.
	clusters map[string]*api.Cluster
	// position is the total size of the objects changed up to and including this event.
	position int64
	next     *event
	ready    chan struct{} // closed when next is set
}

func newEventLog(keep int) *eventLog {
	start := &event{ready: make(chan struct{})}
	return &eventLog{keep: keep, begun: make(chan struct{}), first: start, last: start, written: start, polls: map[api.Key]map[*poll]struct{}{}, encoded: encodings{left: make(chan struct{}, 1)}}
}

// follow appends changes to the log until ctx is done.
func (l *eventLog) follow(ctx context.Context, f *fleet.Fleet) {
	select {
	case <-f.Ready():
	case <-ctx.Done():
		return
	}
	changes := f.Subscribe(fleet.SubscribeOptions{Unbounded: true})
	before := changes.Snapshot()
	l.start(before.Revision(), before)
	for {
		batch, err := changes.Next(ctx)
		if err != nil {
			return // ctx is done: an unbounded subscription returns no other error
		}
		l.append(batch)
		l.appendUnstored(damagedOtherwise(before, batch.Snapshot), batch.Revision)
		before = batch.Snapshot
	}
}

// damagedOtherwise returns the objects whose damage differs between two snapshots of the fleet.
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

// followUnstored appends objects that are shown differently although nothing was written, until ctx
// is done. next waits for them.
func (l *eventLog) followUnstored(ctx context.Context, f *fleet.Fleet, next func(context.Context) ([]api.Key, error)) {
	for {
		keys, err := next(ctx)
		if err != nil {
			return // ctx is done
		}
		l.appendUnstored(keys, f.Snapshot().Revision())
	}
}

// clustersOf returns the clusters that the changed objects of a publication belong to, or nil.
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

// start drops everything before the revision of a snapshot of the fleet.
func (l *eventLog) start(revision int64, at *fleet.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(&event{revision: revision})
	l.first, l.written, l.snapshot, l.length, l.changes = l.last, l.last, at, 0, 0
	if !l.hasBegun() {
		close(l.begun)
	}
}

func (l *eventLog) hasBegun() bool {
	select {
	case <-l.begun:
		return true
	default:
		return false
	}
}

func (l *eventLog) append(batch fleet.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(&event{revision: batch.Revision, changes: told(batch.Changes), moved: moved(batch.Changes), clusters: clustersOf(batch), passed: batch.Reset || batch.Passed})
	l.written, l.snapshot = l.last, batch.Snapshot
	l.trim()
	l.takeEarly()
}

// told returns changes without old versions that are not needed: whether an object is visible
// depends on what users write, so a change of only the status cannot hide it. In a first pass, each
// old version would be a whole additional object.
func told(changes []fleet.Change) []fleet.Change {
	told := slices.Clone(changes)
	for i := range told {
		if c := &told[i]; c.Old != nil && c.New != nil && c.Old.SpecRevision == c.New.SpecRevision {
			c.Old = nil
		}
	}
	return told
}

// moved returns where decisions were before changes, because the old versions are not kept.
func moved(changes []fleet.Change) []*api.Where {
	var list []*api.Where
	for i := range changes {
		if from := movedFrom(changes[i]); from != nil {
			if list == nil {
				list = make([]*api.Where, len(changes))
			}
			list[i] = from
		}
	}
	return list
}

// nowhere is where a decision is before the first one. Most are, in a first pass.
var nowhere = &api.Where{Clusters: []string{}}

// movedFrom returns the decision before a change, or nil if the change left it as it was.
func movedFrom(change fleet.Change) *api.Where {
	if change.New == nil {
		return nil
	}
	after, decided := api.WhereIs(change.New.Object)
	if !decided {
		return nil
	}
	before := *nowhere
	if change.Old != nil {
		if at, ok := api.WhereIs(change.Old.Object); ok && len(at.Clusters) > 0 {
			before = at
		}
	}
	switch {
	case slices.Equal(before.Clusters, after.Clusters) && maps.Equal(before.Replicas, after.Replicas):
		return nil
	case len(before.Clusters) == 0:
		return nowhere
	}
	return &before
}

// trim drops old events.
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

// appendUnstored appends objects that are shown differently although nothing was written, as seen
// at a revision of the fleet. It waits until the log has reached that revision: otherwise readers
// that start from that revision would be assumed to know them.
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

// takeEarly appends unstored changes once the log has reached their revision.
func (l *eventLog) takeEarly() {
	if !l.hasBegun() || l.last.revision < l.earlyAt || len(l.early) == 0 {
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

// merge replaces all unstored events since the last publication by a single one. They cannot be
// dropped like others, because there is no newer revision to resume from.
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

// poll returns a context that is also canceled when an object is shown differently although nothing
// was written, and a function to release it.
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

// changedBytes returns the approximate size of a change.
func changedBytes(change fleet.Change) int {
	const least = 256 // for a deleted object
	if change.New == nil {
		return least
	}
	return least + change.New.Bytes()
}

// behind returns the size of the changes after an event.
func (l *eventLog) behind(e *event) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.position - e.position
}

// newest returns the last event.
func (l *eventLog) newest() *event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// after returns the last event up to a revision; false if the log no longer contains it. Unstored
// changes at that revision come after it, because it is unknown whether the reader knows them.
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
	return at, at != nil && l.hasBegun()
}

package history

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// maxTail is how many of the newest values are kept in memory.
const maxTail = 1000

// tail is the newest part of the log, for those who follow it: one watch serves them all.
type tail struct {
	mu sync.Mutex
	// values are all with a revision above since, in order.
	values []value
	since  int64
	live   bool // the watch goes on
	// changed is closed when something changes.
	changed chan struct{}
}

func newTail() *tail { return &tail{changed: make(chan struct{})} }

// begin starts the tail after a revision; end says that the watch has broken.
func (t *tail) begin(since int64) { t.set(func() { t.values, t.since, t.live = nil, since, true }) }
func (t *tail) end()              { t.set(func() { t.live = false }) }

func (t *tail) add(v value) {
	t.set(func() {
		if len(t.values) >= maxTail {
			t.since = t.values[maxTail/2-1].revision
			t.values = slices.Clone(t.values[maxTail/2:])
		}
		t.values = append(t.values, v)
	})
}

func (t *tail) set(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	close(t.changed)
	t.changed = make(chan struct{})
}

// after returns the values that may have something after a cursor, and what is closed when there
// may be more. It is false if the tail does not go back so far, or is not live.
func (t *tail) after(c Cursor) (values []value, more <-chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A cursor may be in the middle of its revision, so the tail must have all of it.
	if !t.live || c.Revision <= t.since {
		return nil, t.changed, false
	}
	n, _ := slices.BinarySearchFunc(t.values, c.Revision, func(v value, revision int64) int { return int(v.revision - revision) })
	return t.values[n:len(t.values):len(t.values)], t.changed, true
}

// watchAgain is the backoff for watching the log again.
var watchAgain = backoff.Backoff{First: 50 * time.Millisecond, Most: 2 * time.Second}

// watch keeps the tail until ctx is done.
func (l *Log) watch(ctx context.Context) {
	for failures := 1; ctx.Err() == nil; failures++ {
		if _, at, err := l.options.Store.ReadHistory(ctx, one(headKey), 1, 0); err == nil {
			l.tail.begin(at)
			for v := range l.options.Store.WatchHistory(ctx, store.HistoryLog, at+1) {
				failures = 1
				l.tail.add(value{v.Revision, v.Value})
			}
			l.tail.end()
		}
		backoff.Wait(ctx, watchAgain.After(failures))
	}
}

// Follow yields what comes after a cursor, in order, and waits for more until ctx is done. It is
// for consumers that keep the cursor of the last item that they have dealt with. A *GoneError says
// that items after the cursor are no longer kept; follow from its Kept then. Other errors are
// temporary: follow again. It needs Run.
func (l *Log) Follow(ctx context.Context, after Cursor) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for ctx.Err() == nil {
			values, more, ok := l.tail.after(after)
			var items []Item
			for _, v := range values {
				for _, item := range itemsOf(v) {
					if item.Cursor.Compare(after) > 0 {
						items = append(items, item)
					}
				}
			}
			end := Cursor{}
			if !ok {
				page, err := l.Read(ctx, Query{After: after, Notices: true})
				if err != nil {
					if ctx.Err() == nil {
						yield(Item{}, err)
					}
					return
				}
				items, end = page.Items, page.Next
				if end == (Cursor{}) && len(items) == 0 {
					// Nothing has happened up to its revision, from which the tail can be followed.
					end = Cursor{page.Revision, 0}
					ok = true
				}
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
				after = item.Cursor
			}
			if end.Compare(after) > 0 {
				after = end
			}
			if ok && len(items) == 0 {
				select {
				case <-more:
				case <-ctx.Done():
				}
			}
		}
	}
}

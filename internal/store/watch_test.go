package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// next receives a batch from a watch.
func next(t testing.TB, watch <-chan Batch) Batch {
	t.Helper()
	select {
	case batch, ok := <-watch:
		if !ok {
			t.Fatal("the watch ended")
		}
		return batch
	case <-time.After(eventually.Limit):
		t.Fatal("no batch arrived on the watch")
	}
	return Batch{}
}

func TestWatchDeliversWholeRevisionsInOrder(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	from, err := s.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const writers, rounds, size = 8, 40, 5
	watches := []<-chan Batch{s.Watch(ctx, from+1)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	committed := map[int64]int{}
	last := int64(0)
	for w := range writers {
		wg.Go(func() {
			for range rounds {
				writes := make([]Write, size)
				for i := range writes {
					writes[i] = Write{Key: placement(w*size + i), Value: []byte("v"), Expect: Any}
				}
				revision, err := s.Commit(ctx, writes...)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				committed[revision], last = size, max(last, revision)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// A watch that starts late catches up and sees the same events.
	watches = append(watches, s.Watch(ctx, from+1))
	for n, watch := range watches {
		seen := map[int64]int{}
		at := from
		for at < last {
			batch := next(t, watch)
			if batch.Err != nil {
				t.Fatal(batch.Err)
			}
			for _, r := range batch.Records {
				if r.ModRevision < at || r.ModRevision > batch.Revision {
					t.Fatalf("watch %d: revision %d in the batch of revision %d after %d", n, r.ModRevision, batch.Revision, at)
				}
				seen[r.ModRevision]++
			}
			if batch.Revision <= at {
				t.Fatalf("watch %d: batch of revision %d after %d", n, batch.Revision, at)
			}
			at = batch.Revision
			for revision, count := range seen {
				if count != committed[revision] {
					t.Fatalf("watch %d: %d records of revision %d by the end of a batch, want %d", n, count, revision, committed[revision])
				}
			}
		}
		if len(seen) != len(committed) {
			t.Fatalf("watch %d: %d of %d revisions", n, len(seen), len(committed))
		}
	}
}

func TestWatchShowsDeletions(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := put(t, s, placement(1), "v")
	if _, err := s.Derive(ctx, statuses([]int64{0, r}, "status")[1:]); err != nil {
		t.Fatal(err)
	}
	gone, err := s.Commit(ctx, Write{Key: placement(1), Expect: r})
	if err != nil {
		t.Fatal(err)
	}
	watch := s.Watch(ctx, gone)
	batch := next(t, watch)
	if batch.Revision != gone || len(batch.Records) != 2 {
		t.Fatalf("unexpected batch %+v", batch)
	}
	for _, record := range batch.Records {
		if record.Key != placement(1) || record.Value != nil || record.ModRevision != gone {
			t.Fatalf("unexpected record %+v", record)
		}
	}
}

func TestWatchOfACompactedRevisionEnds(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	old := put(t, s, placement(1), "1")
	put(t, s, placement(1), "2")
	if err := s.Compact(ctx, put(t, s, placement(1), "3")); err != nil {
		t.Fatal(err)
	}
	watch := s.Watch(ctx, old)
	if batch := next(t, watch); !errors.Is(batch.Err, ErrCompacted) {
		t.Fatalf("batch %+v, want ErrCompacted", batch)
	}
	if _, ok := <-watch; ok {
		t.Fatal("the watch continues after its error")
	}
}

func TestProgressOfAnIdleWatch(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	from := put(t, s, placement(1), "v")
	watch := s.Watch(ctx, from)
	if batch := next(t, watch); batch.Revision != from {
		t.Fatalf("unexpected batch %+v", batch)
	}
	// A revision in which no object changes.
	resp, err := s.client.Put(ctx, systemPrefix+"other", "v")
	if err != nil {
		t.Fatal(err)
	}
	stop := time.After(eventually.Limit)
	for {
		if err := s.RequestProgress(ctx); err != nil {
			t.Fatal(err)
		}
		select {
		case batch := <-watch:
			if batch.Revision != resp.Header.Revision || len(batch.Records) != 0 {
				t.Fatalf("batch %+v, want progress to %d", batch, resp.Header.Revision)
			}
			return
		case <-time.After(20 * time.Millisecond):
		case <-stop:
			t.Fatal("no progress")
		}
	}
}

func TestWatchEndsWithTheStore(t *testing.T) {
	s := open(t)
	watch := s.Watch(context.Background(), 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range watch {
	}
}

func TestSystemRecordsAreWatchedToo(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	key := api.Key{Kind: "token", Name: "abc"}
	revision := put(t, s, key, "hash")
	if batch := next(t, s.Watch(ctx, revision)); len(batch.Records) != 1 || batch.Records[0].Key != key {
		t.Fatalf("unexpected batch %+v", batch)
	}
}

// TestWatchOfStatusesShowsValuesBefore writes a status and deletes it again.
func TestWatchOfStatusesShowsValuesBefore(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	spec := put(t, s, placement(1), "spec")
	var revisions []int64
	for _, value := range []string{"first", "second"} {
		results, err := s.Derive(ctx, statuses([]int64{0, spec}, value)[1:])
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, results)
	}
	gone, err := s.Commit(ctx, Write{Key: placement(1), Expect: spec})
	if err != nil {
		t.Fatal(err)
	}
	revisions = append(revisions, gone)
	type shown struct {
		revision      int64
		before, after string
	}
	read := func(from int64) (got []shown) {
		for watch := s.WatchStatuses(ctx, from); ; {
			batch := next(t, watch)
			if batch.Err != nil {
				t.Fatal(batch.Err)
			}
			for _, r := range batch.Records {
				if r.Key != placement(1) || r.Part != Status {
					t.Errorf("unexpected record %+v", r)
				}
				got = append(got, shown{r.ModRevision, string(r.Before), string(r.Value)})
			}
			if batch.Revision >= gone {
				return got
			}
		}
	}
	want := []shown{{revisions[0], "", "first"}, {revisions[1], "first", "second"}, {gone, "second", ""}}
	if got := read(spec); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	// What is compacted is not shown, but the value before the first one that is.
	if err := s.Compact(ctx, revisions[1]); err != nil {
		t.Fatal(err)
	}
	compacted, ok := errors.AsType[*CompactedError](next(t, s.WatchStatuses(ctx, spec)).Err)
	if !ok || compacted.Revision != revisions[1] {
		t.Fatalf("%v, want that it is compacted up to %d", compacted, revisions[1])
	}
	if got := read(compacted.Revision + 1); !slices.Equal(got, want[2:]) {
		t.Errorf("%+v, want %+v", got, want[2:])
	}
}

package history

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	storetest.SmallLogs()
	if childMain() {
		return
	}
	storetest.VerifyMain(m)
}

const day = 24 * time.Hour

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a store with a log, both of which can be opened again, and a clock.
type world struct {
	t    testing.TB
	ctx  context.Context
	dir  string
	now  time.Time
	size int64

	store *store.Store
	log   *Log
	flaky *flaky
	specs map[api.Key]int64 // revisions of the objects that decisions are written of
}

// newWorld opens a store whose log seals early.
func newWorld(t testing.TB) *world {
	w := &world{t: t, dir: t.TempDir(), now: began, size: 1 << 20}
	ctx, cancel := context.WithTimeout(context.Background(), 10*eventually.Limit)
	t.Cleanup(cancel)
	w.ctx = ctx
	w.open()
	t.Cleanup(func() { _ = w.store.Close() })
	return w
}

func (w *world) open() {
	s, err := store.Open(w.ctx, store.Options{DataDir: w.dir, NoFsync: true, MinFreeBytes: 1, HistoryBytes: w.size, MarkInterval: time.Hour})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store, w.flaky = s, &flaky{Store: s}
	w.log = w.newLog(w.flaky)
	if w.specs == nil {
		w.specs = map[api.Key]int64{}
	}
}

func (w *world) newLog(s Store) *Log {
	l := New(Options{Store: s, Retention: 90 * day, Size: w.size, Now: func() time.Time { return w.now }})
	l.log.most, l.inputs.most, l.sealBytes = 16, 16, 4<<10
	return l
}

// reopen stops the server and starts another one on its store.
func (w *world) reopen() {
	if err := w.store.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

// clear empties the store's history and objects.
func (w *world) clear() {
	var deletions []clientv3.Op
	for _, prefix := range []string{"history/log/", "history/inputs/", "history/sealed/", "history/index/", "history/head", "history/recorded", "spec/", "status/"} {
		deletions = append(deletions, clientv3.OpDelete("/v1/"+prefix, clientv3.WithPrefix()))
	}
	if _, err := w.store.Client().Txn(w.ctx).Then(deletions...).Commit(); err != nil {
		w.t.Fatal(err)
	}
	w.flaky.late = nil
	w.now, w.specs, w.log = began, map[api.Key]int64{}, w.newLog(w.flaky)
}

func object(n int) api.Key {
	return api.Key{Kind: api.KindPlacement, Namespace: fmt.Sprintf("team-%d", n%3), Name: fmt.Sprintf("p-%d", n)}
}

// entry is a record as those of the server.
func (w *world) entry(key api.Key, from, to, cause string, n int) []byte {
	return fmt.Appendf(nil, `{"time":%q,"object":{"kind":%q,"namespace":%q,"name":%q,"uid":"u-%d"},"moved":[{"from":%q,"to":%q}],"cause":{"type":%q},"n":%d}`,
		w.now.Format(time.RFC3339Nano), key.Kind, key.Namespace, key.Name, n, from, to, cause, n)
}

// decide writes decisions with their records, in one transaction, and returns its revision.
func (w *world) decide(records map[api.Key][]byte) int64 {
	var writes []store.StatusWrite
	for key, record := range records {
		if w.specs[key] == 0 {
			revision, err := w.store.Commit(w.ctx, store.Write{Key: key, Value: []byte("spec"), Expect: store.Any})
			if err != nil {
				w.t.Fatal(err)
			}
			w.specs[key] = revision
		}
		writes = append(writes, store.StatusWrite{Key: key, Value: []byte("status"), SpecRevision: w.specs[key], History: record})
	}
	revision, err := w.store.Derive(w.ctx, writes)
	if err != nil {
		w.t.Fatal(err)
	}
	return revision
}

// all reads everything that a query selects, page by page.
func (w *world) all(query Query) []Item {
	var items []Item
	for {
		page, err := w.log.Read(w.ctx, query)
		if err != nil {
			w.t.Fatalf("read %+v: %v", query, err)
		}
		items = append(items, page.Items...)
		if page.Next == (Cursor{}) {
			return items
		}
		query.After = page.Next
	}
}

// flaky fails changes as a network or a dying server does.
type flaky struct {
	Store

	mu   sync.Mutex
	next fate
	late []store.HistoryChange // not answered, and not made yet
}

// fate is what happens to the next change.
type fate int

const (
	sound    fate = iota
	refused       // nothing is changed
	answered      // it is changed, and no answer comes
	delayed       // no answer comes, and it is changed later
)

func (f *flaky) ChangeHistory(ctx context.Context, change store.HistoryChange) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.next
	f.next = sound
	switch now {
	case sound:
	case refused:
		return 0, fmt.Errorf("%w: injected", store.ErrUnavailable)
	case delayed:
		f.late = append(f.late, change)
		return 0, fmt.Errorf("%w: injected", store.ErrUncertain)
	case answered:
		if _, err := f.Store.ChangeHistory(ctx, change); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("%w: injected", store.ErrUncertain)
	}
	return f.Store.ChangeHistory(ctx, change)
}

// arrive makes the changes that are still on their way.
func (f *flaky) arrive(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, change := range f.late {
		if _, err := f.Store.ChangeHistory(ctx, change); err != nil && !errors.Is(err, store.ErrHistoryChanged) {
			return err
		}
	}
	f.late = nil
	return nil
}

func texts(items []Item) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = string(item.Record)
		if item.Gap != nil {
			out[i] = "gap: " + item.Gap.Reason
		}
	}
	return out
}

func join(items []string) string { return strings.Join(items, "\n") }

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

func render(v ...any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// show renders everything in a snapshot.
func show(s *Snapshot) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.Revision())
	for _, info := range api.Kinds {
		fmt.Fprintln(&b, info.Kind, s.Len(info.Kind))
		for e := range s.All(info.Kind, "") {
			fmt.Fprintln(&b, e.SpecRevision, e.StatusRevision, render(e.Object))
		}
	}
	return b.String()
}

// interrupted is a store whose watch can be cut: changes after the cut are lost, and the watch then ends as after a
// compaction.
type interrupted struct {
	*store.Store
	mu    sync.Mutex
	cut   bool
	ended chan chan struct{}
}

func (i *interrupted) Watch(ctx context.Context, from int64) <-chan store.Batch {
	out := make(chan store.Batch)
	in := i.Store.Watch(ctx, from)
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case done := <-i.ended:
				out <- store.Batch{Err: store.ErrCompacted}
				close(done)
				return
			case batch, ok := <-in:
				i.mu.Lock()
				cut := i.cut
				i.mu.Unlock()
				if !ok {
					return
				}
				if !cut {
					select {
					case out <- batch:
					case <-ctx.Done():
						return
					}
				}
			}
		}
	}()
	return out
}

func (i *interrupted) setCut(cut bool) {
	i.mu.Lock()
	i.cut = cut
	i.mu.Unlock()
}

func TestLostChangesAreReadAgain(t *testing.T) {
	var broken *interrupted
	b := start(t, func(o *Options) {
		broken = &interrupted{Store: o.Store.(*store.Store), ended: make(chan chan struct{})}
		o.Store = broken
	})
	stays, goes, changes, comes := newPlacement("n", "stays"), newPlacement("n", "goes"), newPlacement("n", "changes"), newPlacement("n", "comes")
	stays.Status.Clusters = []string{"c"}
	b.derive(stays, b.put(stays))
	b.put(goes)
	before := b.wait(b.put(changes))
	subscription := b.fleet.Subscribe()
	broken.setCut(true)
	b.delete(api.KeyOf(goes))
	changes.Metadata.Labels = map[string]string{"a": "b"}
	b.put(changes)
	last := b.put(comes)
	if err := b.store.Compact(b.ctx, last); err != nil {
		t.Fatal(err)
	}
	if b.fleet.Snapshot().Revision() >= last {
		t.Fatal("the fleet saw the changes, which the test must hide from it")
	}
	broken.setCut(false)
	done := make(chan struct{})
	broken.ended <- done
	<-done
	after := b.wait(last)
	batch, err := subscription.Next(b.ctx)
	if err != nil || !batch.Reset || batch.Snapshot != after {
		t.Fatalf("batch %+v, error %v, want a reset with the new snapshot", batch, err)
	}
	got := map[string]string{}
	for _, c := range batch.Changes {
		switch {
		case c.Old == nil:
			got[c.Key.Name] = "created"
		case c.New == nil:
			got[c.Key.Name] = "deleted"
		default:
			got[c.Key.Name] = "changed"
		}
	}
	if len(got) != 3 || got["goes"] != "deleted" || got["comes"] != "created" || got["changes"] != "changed" {
		t.Fatalf("changes %v, want one created, one changed and one deleted", got)
	}
	if after.Get(api.KeyOf(stays)) != before.Get(api.KeyOf(stays)) {
		t.Fatal("an unchanged object was decoded again")
	}
	// The watch resumes.
	b.wait(b.put(goes))
}

func TestSubscriptionSeesEveryChangeInOrder(t *testing.T) {
	b := start(t)
	subscriptions := []*Subscription{b.fleet.Subscribe(), b.fleet.Subscribe(SubscribeOptions{Unbounded: true})}
	var wg sync.WaitGroup
	var mu sync.Mutex
	last := int64(0)
	for w := range 6 {
		wg.Go(func() {
			for n := range 40 {
				p := newPlacement("n", fmt.Sprintf("p%d", (w+n)%10))
				var revision int64
				if n%5 == 4 {
					revision = b.delete(api.KeyOf(p))
				} else {
					revision = b.put(p)
				}
				mu.Lock()
				last = max(last, revision)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	b.wait(last)
	for n, s := range subscriptions {
		picture := map[api.Key]*Entry{}
		at := s.Snapshot().Revision()
		for at < last {
			batch, err := s.Next(b.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if batch.Revision <= at || batch.Snapshot.Revision() != batch.Revision {
				t.Fatalf("subscription %d: got revision %d after %d", n, batch.Revision, at)
			}
			for _, c := range batch.Changes {
				if picture[c.Key] != c.Old {
					t.Fatalf("subscription %d: missed a change of %s before revision %d", n, c.Key, batch.Revision)
				}
				if batch.Snapshot.Get(c.Key) != c.New {
					t.Fatalf("subscription %d: the snapshot of revision %d does not have the change of %s", n, batch.Revision, c.Key)
				}
				picture[c.Key] = c.New
			}
			at = batch.Revision
		}
	}
}

func TestSlowSubscribers(t *testing.T) {
	b := start(t, func(o *Options) { o.Backlog = 4 })
	b.wait(b.put(newPlacement("n", "gone")))
	slow, patient := b.fleet.Subscribe(), b.fleet.Subscribe(SubscribeOptions{Unbounded: true})
	write := func(count int) {
		for i := range count {
			b.wait(b.put(newPlacement("n", fmt.Sprintf("p%d", i))))
		}
	}
	write(3)
	if batch, err := slow.Next(b.ctx); err != nil || len(batch.Changes) != 1 {
		t.Fatalf("three behind: got %+v, %v", batch, err)
	}
	b.wait(b.delete(api.Key{Kind: api.KindPlacement, Namespace: "n", Name: "gone"}))
	write(9)
	if _, err := slow.Next(b.ctx); !errors.Is(err, errTooOld) {
		t.Fatalf("error %v, want errTooOld", err)
	}
	batch, err := patient.Next(b.ctx)
	if err != nil || !batch.Reset || len(batch.Changes) != 10 || batch.Snapshot != b.fleet.Snapshot() || patient.Snapshot() != batch.Snapshot {
		t.Fatalf("batch %+v, error %v, want a reset with 10 changes", batch, err)
	}
	for _, c := range batch.Changes {
		if (c.New == nil) != (c.Key.Name == "gone") || (c.Old != nil) != (c.Key.Name == "gone") {
			t.Fatalf("unexpected change %+v", c)
		}
	}
	write(1)
	if batch, err = patient.Next(b.ctx); err != nil || batch.Reset || len(batch.Changes) != 1 {
		t.Fatalf("after the reset: got %+v, %v", batch, err)
	}
}

func TestWaitsEndWithTheirContext(t *testing.T) {
	b := start(t)
	revision := b.put(newPlacement("n", "p"))
	b.wait(revision)
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Millisecond)
	defer cancel()
	if _, err := b.fleet.WaitRevision(ctx, revision+1000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("WaitRevision() = %v, want DeadlineExceeded", err)
	}
	if _, err := b.fleet.WaitNewer(ctx, api.Key{Kind: api.KindPlacement, Namespace: "n", Name: "p"}, revision); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("WaitNewer() = %v, want DeadlineExceeded", err)
	}
	if _, err := b.fleet.Subscribe().Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Next() = %v, want DeadlineExceeded", err)
	}
}

// Waiting for a revision also ends if it changes no object.
func TestWaitForARevisionWithoutObjects(t *testing.T) {
	b := start(t)
	resp, err := b.store.Client().Put(b.ctx, "/elsewhere", "v")
	if err != nil {
		t.Fatal(err)
	}
	if s := b.wait(resp.Header.Revision); s.Revision() < resp.Header.Revision {
		t.Fatalf("snapshot of revision %d, want a later one", s.Revision())
	}
}

func TestWrongKeyStopsTheFirstLoad(t *testing.T) {
	b := start(t)
	c := &api.Cluster{Metadata: api.Metadata{Name: "c"}}
	c.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret("secret")}
	c.SetDefaults()
	b.wait(b.put(c))
	other, err := store.NewCodec(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := New(Options{Store: b.store, Codec: other}).Run(b.ctx); !errors.Is(err, store.ErrWrongKey) {
		t.Fatalf("error %v, want ErrWrongKey", err)
	}
}

func TestUnreadableChangeKeepsTheObject(t *testing.T) {
	b := start(t)
	p := newPlacement("n", "p")
	good := b.put(p)
	value, err := b.codec.EncodeSpec(newPlacement("n", "other"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{[]byte("{"), value} {
		revision, err := b.store.Commit(b.ctx, store.Write{Key: api.KeyOf(p), Value: bad, Expect: store.Any})
		if err != nil {
			t.Fatal(err)
		}
		if entry := b.wait(revision).Get(api.KeyOf(p)); entry == nil || entry.SpecRevision != good {
			t.Fatalf("entry %+v, want the last valid version", entry)
		}
	}
}

// leaderless is a store that has no leader for the first loads.
type leaderless struct {
	*store.Store
	loads int
	err   error
}

func (l *leaderless) Load(ctx context.Context, at int64, fn func(store.Record) error) (int64, error) {
	if l.loads--; l.loads >= 0 {
		return 0, fmt.Errorf("load: %w", l.err)
	}
	return l.Store.Load(ctx, at, fn)
}

func TestFirstLoadWaitsForALeader(t *testing.T) {
	b := start(t)
	ready := New(Options{Store: &leaderless{b.store, 2, store.ErrUnavailable}, Codec: b.codec})
	(&bench{t: t, ctx: b.ctx, fleet: ready}).run()

	broken := errors.New("broken")
	if err := New(Options{Store: &leaderless{b.store, 2, broken}, Codec: b.codec}).Run(b.ctx); !errors.Is(err, broken) {
		t.Errorf("the first load of a store that cannot be read ended with %v, want %v", err, broken)
	}
	synctest.Test(t, func(t *testing.T) {
		forever := &leaderless{nil, 1 << 30, store.ErrUnavailable}
		if err := New(Options{Store: forever, Codec: b.codec}).Run(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("the first load of a store that never responds ended with %v, want %v", err, store.ErrUnavailable)
		}
	})
}

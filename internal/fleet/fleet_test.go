package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/tempstore"
)

func TestMain(m *testing.M) {
	storetest.SmallLogs()
	goleak.VerifyTestMain(m)
}

// bench is a store with a codec and a running fleet.
type bench struct {
	t     testing.TB
	ctx   context.Context
	store *store.Store
	codec *store.Codec
	fleet *Fleet
}

func start(t testing.TB, change ...func(*Options)) *bench {
	t.Helper()
	s := tempstore.Open(t)
	codec, err := store.OpenCodec(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	t.Cleanup(cancel)
	o := Options{Store: s, Codec: codec}
	for _, f := range change {
		f(&o)
	}
	b := &bench{t: t, ctx: ctx, store: s, codec: codec, fleet: New(o)}
	b.run()
	return b
}

// run runs the fleet until the test ends.
func (b *bench) run() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.fleet.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("run: %v", err)
		}
	})
	select {
	case <-b.fleet.Ready():
	case <-b.ctx.Done():
		b.t.Fatal("the fleet is not ready")
	}
}

func newPlacement(namespace, name string) *api.Placement {
	p := &api.Placement{Metadata: api.Metadata{Namespace: namespace, Name: name, UID: "uid-" + name, Generation: 1}}
	p.SetDefaults()
	return p
}

// put writes the user-written part of an object and returns its revision.
func (b *bench) put(object api.Object) int64 {
	b.t.Helper()
	value, err := b.codec.EncodeSpec(object)
	if err != nil {
		b.t.Fatal(err)
	}
	revision, err := b.store.Commit(b.ctx, store.Write{Key: api.KeyOf(object), Value: value, Expect: store.Any})
	if err != nil {
		b.t.Fatal(err)
	}
	return revision
}

func (b *bench) derive(object api.Object, specRevision int64) int64 {
	b.t.Helper()
	value, err := b.codec.EncodeStatus(object)
	if err != nil {
		b.t.Fatal(err)
	}
	revision, err := b.store.Derive(b.ctx, []store.StatusWrite{{Key: api.KeyOf(object), Value: value, SpecRevision: specRevision}})
	if err != nil {
		b.t.Fatal(err)
	}
	return revision
}

func (b *bench) delete(key api.Key) int64 {
	b.t.Helper()
	revision, err := b.store.Commit(b.ctx, store.Write{Key: key, Expect: store.Any})
	if err != nil {
		b.t.Fatal(err)
	}
	return revision
}

func (b *bench) wait(revision int64) *Snapshot {
	b.t.Helper()
	snapshot, err := b.fleet.WaitRevision(b.ctx, revision)
	if err != nil {
		b.t.Fatal(err)
	}
	return snapshot
}

func TestPictureShowsBothParts(t *testing.T) {
	b := start(t)
	p := newPlacement("shop", "web")
	spec := b.put(p)
	before := b.wait(spec)
	p.Status.Clusters = []string{"c1"}
	status := b.derive(p, spec)
	entry := b.wait(status).Get(api.KeyOf(p))
	if entry == nil || entry.SpecRevision != spec || entry.StatusRevision != status || entry.Revision() != status {
		t.Fatalf("entry %+v, want revisions %d and %d", entry, spec, status)
	}
	got := entry.Object.(*api.Placement)
	if got.Metadata.ResourceVersion != fmt.Sprint(status) || len(got.Status.Clusters) != 1 || got.Metadata.UID != "uid-web" {
		t.Fatalf("unexpected object %+v", got)
	}
	if old := before.Get(api.KeyOf(p)).Object.(*api.Placement); old.Status.Clusters != nil {
		t.Fatalf("an earlier snapshot changed: %+v", old)
	}
}

// TestFleetOfThePast looks at the fleet as it was after each write.
func TestFleetOfThePast(t *testing.T) {
	b := start(t)
	var was []*Snapshot
	keep := func(revision int64) { was = append(was, b.wait(revision)) }
	keep(b.put(newPlacement("shop", "web")))
	web := newPlacement("shop", "web")
	web.Metadata.Labels = map[string]string{"tier": "gold"}
	revision := b.put(web)
	keep(revision)
	web.Status.Clusters = []string{"a"}
	keep(b.derive(web, revision))
	keep(b.put(newPlacement("shop", "db")))
	keep(b.delete(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}))
	for _, want := range was {
		got, err := b.fleet.At(t.Context(), want.Revision())
		if err != nil {
			t.Fatal(err)
		}
		if changes := Difference(want, got); len(changes) > 0 || got.Revision() != want.Revision() || got.Len(api.KindPlacement) != want.Len(api.KindPlacement) {
			t.Errorf("at revision %d: %d differences, %d placements, want %d", want.Revision(), len(changes), got.Len(api.KindPlacement), want.Len(api.KindPlacement))
		}
	}
	if _, err := b.fleet.At(t.Context(), was[len(was)-1].Revision()+1); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("a revision that is not there yet: error %v", err)
	}
}

package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

func newMetric(namespace, name string) *api.Metric {
	m := &api.Metric{Metadata: api.Metadata{Namespace: namespace, Name: name}}
	m.SetDefaults()
	return m
}

func keys(entries []*Entry) []api.Key {
	out := make([]api.Key, len(entries))
	for i, e := range entries {
		out[i] = api.KeyOf(e.Object)
	}
	return out
}

func TestIterationIsInTheOrderOfTheKeys(t *testing.T) {
	b := start(t)
	var all []api.Key
	last := int64(0)
	for _, namespace := range []string{"", "a", "a-b", "ab", "b", "0"} {
		for _, name := range []string{"x", "x-1", "x1", "a"} {
			all = append(all, api.Key{Kind: api.KindMetric, Namespace: namespace, Name: name})
		}
	}
	seeded.Rand(t).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, key := range all {
		b.put(newMetric(key.Namespace, key.Name))
	}
	// A kind whose name starts with another's, and an object on either side.
	b.put(newPlacement("a", "x"))
	provider := &api.MetricsProvider{Metadata: api.Metadata{Name: "x", Namespace: "a"}}
	provider.SetDefaults()
	last = b.put(provider)
	s := b.wait(last)
	slices.SortFunc(all, api.Key.Compare)
	if got := keys(slices.Collect(s.All(api.KindMetric, ""))); !slices.Equal(got, all) {
		t.Fatalf("got %v, want %v", got, all)
	}
	inA := slices.DeleteFunc(slices.Clone(all), func(k api.Key) bool { return k.Namespace != "a" })
	if got := keys(slices.Collect(s.All(api.KindMetric, "a"))); !slices.Equal(got, inA) {
		t.Fatalf("got %v, want %v", got, inA)
	}
	for i, key := range all {
		if got := keys(slices.Collect(s.After(key, ""))); !slices.Equal(got, all[i+1:]) {
			t.Fatalf("after %s: got %v, want %v", key, got, all[i+1:])
		}
	}
	if got := keys(slices.Collect(s.After(inA[1], "a"))); !slices.Equal(got, inA[2:]) {
		t.Fatalf("got %v, want %v", got, inA[2:])
	}
	if s.Len(api.KindMetric) != len(all) || s.Len(api.KindPlacement) != 1 || s.Len(api.KindCluster) != 0 {
		t.Fatalf("%d metrics, %d placements", s.Len(api.KindMetric), s.Len(api.KindPlacement))
	}
	for range s.All(api.KindMetric, "") {
		break // a loop may end early
	}
}

func TestSnapshotNeverChanges(t *testing.T) {
	b := start(t)
	for i := range 20 {
		b.put(newPlacement("shop", fmt.Sprintf("p%d", i)))
	}
	p := newPlacement("shop", "p3")
	p.Status.Clusters = []string{"a", "b"}
	spec := b.put(p)
	s := b.wait(b.derive(p, spec))
	before := show(s)
	held := s.Get(api.KeyOf(p)).Object.(*api.Placement) // as a reader that keeps an object longer than the snapshot
	p.Status.Clusters = []string{"c"}
	b.wait(b.derive(p, spec)) // only the status
	if got := held.Status.Clusters; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("an object that was read earlier has the status of a later write: %v", got)
	}
	p.Metadata.Labels = map[string]string{"new": "label"}
	p.Status.Clusters = []string{"d"}
	b.derive(p, b.put(p))
	b.delete(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "p4"})
	after := b.wait(b.put(newPlacement("shop", "later")))
	if show(s) != before {
		t.Fatalf("the snapshot changed from\n%s\nto\n%s", before, show(s))
	}
	if show(after) == before {
		t.Fatal("the later snapshot does not show the change")
	}
}

func TestStatusDoesNotOutliveItsObject(t *testing.T) {
	b := start(t)
	p := newPlacement("shop", "web")
	p.Status.Clusters = []string{"old"}
	b.derive(p, b.put(p))
	b.delete(api.KeyOf(p))
	entry := b.wait(b.put(newPlacement("shop", "web"))).Get(api.KeyOf(p))
	if entry.StatusRevision != 0 || entry.Object.(*api.Placement).Status.Clusters != nil {
		t.Fatalf("the new object has the status of the deleted one: %+v", entry.Object)
	}
}

func TestObjectAndStatusInOneWrite(t *testing.T) {
	b := start(t)
	p := newPlacement("shop", "web")
	p.Status.Clusters = []string{"c"}
	spec, err := b.codec.EncodeSpec(p)
	if err != nil {
		t.Fatal(err)
	}
	status, err := b.codec.EncodeStatus(p)
	if err != nil {
		t.Fatal(err)
	}
	key := api.KeyOf(p)
	revision, err := b.store.Commit(b.ctx,
		store.Write{Key: key, Part: store.Status, Value: status, Expect: store.Any},
		store.Write{Key: key, Part: store.Spec, Value: spec, Expect: 0})
	if err != nil {
		t.Fatal(err)
	}
	entry := b.wait(revision).Get(key)
	if entry.StatusRevision != revision || len(entry.Object.(*api.Placement).Status.Clusters) != 1 {
		t.Fatalf("entry %+v, want the later status", entry)
	}
}

func TestSystemRecordsAreKept(t *testing.T) {
	b := start(t)
	key := api.Key{Kind: "token", Name: "abc"}
	revision, err := b.store.Commit(b.ctx, store.Write{Key: key, Value: []byte("hash"), Expect: 0})
	if err != nil {
		t.Fatal(err)
	}
	s := b.wait(revision)
	if record, ok := s.System(key); !ok || string(record.Value) != "hash" {
		t.Fatalf("record %+v, %v", record, ok)
	}
	if n := len(slices.Collect(s.AllSystem("token"))); n != 1 {
		t.Fatalf("%d tokens, want 1", n)
	}
	if _, ok := b.wait(b.delete(key)).System(key); ok {
		t.Fatal("the record still exists")
	}
}

// A snapshot that is updated record by record equals one built from the latest records.
func TestIncrementalEqualsFresh(t *testing.T) {
	codec, err := store.NewCodec(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		type part struct {
			key  api.Key
			part store.Part
		}
		live := map[part]store.Record{}
		s := emptySnapshot()
		replayed := map[api.Key]*Entry{}
		revision := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			b := newBuilder(s, codec)
			for range rapid.IntRange(1, 4).Draw(t, "records") {
				revision++
				p := newPlacement("n", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"))
				p.Metadata.Generation = revision
				p.Status.ObservedGeneration = revision
				record := store.Record{Key: api.KeyOf(p), Part: store.Part(rapid.IntRange(0, 1).Draw(t, "part")), ModRevision: revision}
				_, exists := live[part{record.Key, store.Spec}]
				remove := rapid.IntRange(0, 2).Draw(t, "remove") == 0
				switch {
				case record.Part == store.Status && !exists:
					continue // the store rejects it
				case remove && record.Part == store.Spec:
					delete(live, part{record.Key, store.Status})
				case record.Part == store.Spec:
					record.Value, _ = codec.EncodeSpec(p)
				case !remove:
					record.Value, _ = codec.EncodeStatus(p)
				}
				if record.Value == nil {
					delete(live, part{record.Key, record.Part})
				} else {
					live[part{record.Key, record.Part}] = record
				}
				if err := b.apply(record); err != nil {
					t.Fatal(err)
				}
			}
			after := b.snapshot(revision)
			changes, passed := b.changes(after)
			for _, key := range b.order {
				told := slices.ContainsFunc(changes, func(c Change) bool { return c.Key == key && c.Revision > 0 && c.Revision <= revision })
				if !told && !passed {
					t.Fatalf("the batches do not mention %s", key)
				}
			}
			for _, change := range changes {
				if replayed[change.Key] != change.Old {
					t.Fatalf("the change of %s starts from %+v, want %+v", change.Key, change.Old, replayed[change.Key])
				}
				replayed[change.Key] = change.New
			}
			s = after
		}
		fresh := newBuilder(emptySnapshot(), codec)
		for _, which := range []store.Part{store.Spec, store.Status} {
			for p, record := range live {
				if p.part == which {
					if err := fresh.apply(record); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		want := fresh.snapshot(revision)
		for key, entry := range replayed {
			if s.Get(key) != entry {
				t.Fatalf("the changes of %s end with %+v, but the snapshot has %+v", key, entry, s.Get(key))
			}
		}
		// A deleted status keeps the revision of its deletion, which a fresh load cannot know.
		for e := range s.All(api.KindPlacement, "") {
			w := want.Get(api.KeyOf(e.Object))
			if w == nil || render(w.Object.SpecPart(), w.Object.StatusPart()) != render(e.Object.SpecPart(), e.Object.StatusPart()) || w.SpecRevision != e.SpecRevision {
				t.Fatalf("got %+v, want %+v", e, w)
			}
		}
		if s.Len(api.KindPlacement) != want.Len(api.KindPlacement) || s.Len(api.KindPlacement) != len(slices.Collect(s.All(api.KindPlacement, ""))) {
			t.Fatalf("%d objects, want %d", s.Len(api.KindPlacement), want.Len(api.KindPlacement))
		}
	})
}

func TestWaitNewer(t *testing.T) {
	b := start(t)
	p := newPlacement("shop", "web")
	key := api.KeyOf(p)
	spec := b.put(p)
	b.wait(spec)
	other := b.put(newPlacement("shop", "other"))
	b.wait(other)
	if entry, err := b.fleet.WaitNewer(b.ctx, key, spec-1); err != nil || entry.Revision() != spec {
		t.Fatalf("already newer: got %+v, %v", entry, err)
	}
	if entry, err := b.fleet.WaitNewer(b.ctx, api.Key{Kind: api.KindCluster, Name: "none"}, 0); err != nil || entry != nil {
		t.Fatalf("missing object: got %+v, %v", entry, err)
	}
	type result struct {
		entry *Entry
		err   error
	}
	wait := func(revision int64) chan result {
		done := make(chan result, 1)
		go func() {
			entry, err := b.fleet.WaitNewer(b.ctx, key, revision)
			done <- result{entry, err}
		}()
		return done
	}
	first, second := wait(spec), wait(spec)
	b.wait(b.put(newPlacement("shop", "other")))
	select {
	case r := <-first:
		t.Fatalf("the wait ended with a change of another object: %+v", r)
	case <-time.After(20 * time.Millisecond):
	}
	status := b.derive(p, spec)
	for _, done := range []chan result{first, second} {
		if r := <-done; r.err != nil || r.entry.Revision() != status {
			t.Fatalf("got %+v, want revision %d", r, status)
		}
	}
	third := wait(status)
	b.delete(key)
	if r := <-third; r.err != nil || r.entry != nil {
		t.Fatalf("deleted object: got %+v", r)
	}
}

// Objects that belong to a cluster have the cluster in their key in place of a namespace. They can be found by it and
// are deleted with it.
func TestScoresAreFoundByTheirCluster(t *testing.T) {
	b := start(t)
	b.put(&api.Cluster{Kind: api.KindCluster, Metadata: api.Metadata{Name: "b"}})
	var all []api.Key
	last := int64(0)
	for _, cluster := range []string{"a", "b", "b-1"} {
		for _, name := range []string{"x", "y"} {
			score := &api.PlacementScore{Metadata: api.Metadata{Cluster: cluster, Name: name}}
			score.SetDefaults()
			last = b.put(score)
			all = append(all, api.KeyOf(score))
		}
	}
	s := b.wait(last)
	if got := keys(slices.Collect(s.All(api.KindPlacementScore, ""))); !slices.Equal(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
	if got := keys(slices.Collect(s.All(api.KindPlacementScore, "b"))); !slices.Equal(got, all[2:4]) {
		t.Errorf("got %v, want %v", got, all[2:4])
	}
	if got := keys(slices.Collect(s.After(all[2], "b"))); !slices.Equal(got, all[3:4]) {
		t.Errorf("after %s: got %v, want %v", all[2], got, all[3:4])
	}
	s = b.wait(b.delete(api.Key{Kind: api.KindCluster, Name: "b"}))
	if got := keys(slices.Collect(s.All(api.KindPlacementScore, ""))); !slices.Equal(got, append(all[:2:2], all[4:]...)) {
		t.Errorf("after the deletion of the cluster: got %v", got)
	}
}

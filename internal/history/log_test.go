package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// moves writes n decisions, each in a transaction of its own.
func (w *world) moves(n int) (revisions []int64) {
	for i := range n {
		key := object(i)
		revisions = append(revisions, w.decide(map[api.Key][]byte{key: w.entry(key, "c1", "c2", "metric", i)}))
	}
	return revisions
}

// sealed seals everything that is hot, as on the next day.
func (w *world) sealed(j *journal) {
	w.t.Helper()
	defer func(now time.Time) { w.now = now }(w.now)
	w.now = w.now.Add(sealAge)
	for {
		more, err := w.log.seal(w.ctx, j)
		if err != nil {
			w.t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// overwrite damages a value.
func (w *world) overwrite(key string) {
	w.t.Helper()
	if _, err := w.store.Client().Put(w.ctx, "/v1/history/"+key, "\x84nonsense"); err != nil {
		w.t.Fatal(err)
	}
}

func TestDamagedPartsAreGaps(t *testing.T) {
	w := newWorld(t)
	w.moves(5)
	w.log.sealBytes = 300
	for range 3 {
		if _, err := w.log.seal(w.ctx, w.log.log); err != nil {
			t.Fatal(err)
		}
	}
	all := texts(w.all(Query{}))
	h, _, err := w.log.readHead(w.ctx, 0)
	if err != nil || h.Log.Next < 3 || len(all) != 5 {
		t.Fatalf("%+v, %v, %d records", h, err, len(all))
	}
	values, _, err := w.store.ReadHistory(w.ctx, store.HistoryUnder(store.HistoryLog), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name, key string
		gaps      bool
	}{
		{"the head", headKey, false}, {"an index", w.log.log.indexKey(1), false}, {"a chunk", w.log.log.chunkKey(0), true},
		{"its index as well", w.log.log.indexKey(0), true}, {"a hot value", values[0].Key, true},
	} {
		t.Run(part.name, func(t *testing.T) {
			w.overwrite(part.key)
			w.log = w.newLog(w.flaky)
			for _, newest := range []bool{false, true} {
				items := w.all(Query{Newest: newest})
				gaps := slices.ContainsFunc(items, func(i Item) bool { return i.Gap != nil })
				if part.gaps && !gaps {
					t.Fatalf("no gap among\n%s", join(texts(items)))
				}
				for _, item := range items {
					if item.Gap == nil && !slices.Contains(all, string(item.Record)) {
						t.Fatalf("read %s", item.Record)
					}
				}
			}
		})
	}
	w.moves(20)
	w.log.tend(w.ctx)
	if items := w.all(Query{Newest: true, Limit: 3}); len(items) < 20 {
		t.Fatalf("%d items after the log went on", len(items))
	}
}

func TestFollowersSeeEverythingOnce(t *testing.T) {
	w := newWorld(t)
	w.moves(3)
	w.sealed(w.log.log)
	w.moves(3)
	ctx, cancel := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = w.log.Run(ctx) })
	var mu sync.Mutex
	seen := make([][]string, 4)
	for n := range seen {
		running.Go(func() {
			after := Cursor{}
			for ctx.Err() == nil {
				count := 0
				for item, err := range w.log.Follow(ctx, after) {
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					seen[n] = append(seen[n], string(item.Record))
					mu.Unlock()
					after = item.Cursor
					if count++; count == 5*(n+1) { // goes on from its cursor
						break
					}
				}
			}
		})
	}
	w.moves(30)
	want := texts(w.all(Query{}))
	for n := range seen {
		eventually.True(t, fmt.Sprintf("follower %d has seen everything", n), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seen[n]) >= len(want)
		})
	}
	w.moves(1)
	want = texts(w.all(Query{}))
	for n := range seen {
		eventually.True(t, fmt.Sprintf("follower %d has seen the last one", n), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seen[n]) >= len(want)
		})
		mu.Lock()
		if !slices.Equal(seen[n], want) {
			t.Errorf("follower %d saw\n%s\nwant\n%s", n, join(seen[n]), join(want))
		}
		mu.Unlock()
	}
}

// TestFollowFromTheMiddleOfARevision follows from a cursor in the last revision before the watch began: what else
// that revision has must not be left out.
func TestFollowFromTheMiddleOfARevision(t *testing.T) {
	w := newWorld(t)
	w.moves(2) // their objects are there: the revision of the next decisions is the store's
	records := map[api.Key][]byte{}
	for n := range 2 {
		records[object(n)] = w.entry(object(n), "a", "b", "spec", n)
	}
	last := w.decide(records)
	ctx, cancel := context.WithCancel(w.ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { w.log.watch(ctx) })
	eventually.True(t, "the watch begins", func() bool {
		w.log.tail.mu.Lock()
		defer w.log.tail.mu.Unlock()
		return w.log.tail.live
	})
	if since := w.log.tail.since; since != last {
		t.Fatalf("the watch began at revision %d, not at that of the decisions, %d", since, last)
	}
	w.moves(1) // what comes when something was left out
	for item, err := range w.log.Follow(ctx, Cursor{last, 1}) {
		if want := (Cursor{last, 2}); err != nil || item.Cursor != want {
			t.Errorf("%v follows, %v, not %v", item.Cursor, err, want)
		}
		break
	}
}

func TestCursorThatIsNoLongerKept(t *testing.T) {
	w := newWorld(t)
	revisions := w.moves(10)
	w.sealed(w.log.log)
	w.now = began.Add(91 * day)
	w.moves(2)
	w.log.tend(w.ctx)
	var gone *GoneError
	if _, err := w.log.Read(w.ctx, Query{After: Cursor{revisions[3], 1}}); !errors.As(err, &gone) || !gone.Time.Equal(w.now) {
		t.Fatalf("error %v, want what is kept since %s", err, w.now)
	}
	if page, err := w.log.Read(w.ctx, Query{After: gone.Kept}); err != nil || len(page.Items) != 2 {
		t.Fatalf("%d items, %v", len(page.Items), err)
	}
	for item, err := range w.log.Follow(w.ctx, Cursor{revisions[3], 1}) {
		if item.Record != nil || !errors.As(err, &gone) {
			t.Fatalf("%s, %v", item.Record, err)
		}
	}
	if _, err := w.log.AtTime(w.ctx, began); !errors.As(err, &gone) {
		t.Fatalf("error %v", err)
	}
	if at, err := w.log.AtTime(w.ctx, w.now); err != nil || at <= revisions[9] {
		t.Fatalf("revision %d, %v", at, err)
	}
}

// TestSizeIsBounded writes more than the history may take, and expects records for longer than explanations.
func TestSizeIsBounded(t *testing.T) {
	w := newWorld(t)
	w.size = 400 << 10
	w.log = w.newLog(w.flaky)
	objects := map[api.Key]store.Record{}
	for n := range 120 {
		key := api.Key{Kind: api.KindCluster, Name: fmt.Sprintf("c%d", n%8)}
		value := make([]byte, 8<<10)
		rapidText(value, n)
		objects[key] = store.Record{Key: key, Value: value, ModRevision: int64(n + 1)}
		all := maps.Clone(objects)
		err := w.log.Record(w.ctx, Pass{Revision: int64(n + 1), Time: w.now, Changed: slices.Values([]store.Record{objects[key]}), All: maps.Values(all)})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case c := <-w.log.recorder.due:
			if err := w.log.recorder.make(w.ctx, c); err != nil {
				t.Fatal(err)
			}
		default:
		}
		w.moves(1)
		w.now = w.now.Add(time.Minute)
		w.log.tend(w.ctx)
		h, _, err := w.log.readHead(w.ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if took := h.Log.Bytes + h.Inputs.Bytes; took > w.size+w.size/8 {
			t.Fatalf("after %d moves the history takes %d bytes, of %d", n, took, w.size)
		}
	}
	items := w.all(Query{})
	if len(items) != 120 {
		t.Errorf("%d records are kept, although there is room for all", len(items))
	}
	last := items[len(items)-1].Cursor.Revision
	if state, err := w.log.rebuild(w.ctx, last); err != nil || len(state.objects) != 8 {
		t.Errorf("the last decision cannot be explained: %d objects, %v", len(state.objects), err)
	}
	var gone *GoneError
	if _, err := w.log.rebuild(w.ctx, items[0].Cursor.Revision); !errors.As(err, &gone) || gone.Time.Before(began.Add(time.Minute)) {
		t.Errorf("error %v, want from when on decisions are explained", err)
	}
}

// rapidText fills a value with text that does not compress.
func rapidText(value []byte, seed int) {
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for i := range value {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		value[i] = byte(x)
	}
}

// TestLeadersTakeTurns has two servers on one etcd record decisions in turns, while both seal.
func TestLeadersTakeTurns(t *testing.T) {
	address, _ := storetest.Etcd(t)
	worlds := make([]*world, 2)
	for i := range worlds {
		ctx, cancel := context.WithTimeout(context.Background(), 10*eventually.Limit)
		t.Cleanup(cancel)
		s, err := store.Open(ctx, store.Options{Endpoints: []string{"http://" + address}, HistoryBytes: 1 << 20, MarkInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		worlds[i] = &world{t: t, ctx: ctx, now: began, size: 1 << 20, store: s, flaky: &flaky{Store: s}, specs: map[api.Key]int64{}}
		worlds[i].log = worlds[i].newLog(worlds[i].flaky)
	}
	var want []string
	for turn := range 20 {
		w, other := worlds[turn%2], worlds[(turn+1)%2]
		term, err := w.store.Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.specs = other.specs
		for n := range 5 {
			key := object(n)
			record := w.entry(key, "c1", "c2", "metric", turn*5+n)
			want = append(want, string(record))
			w.decide(map[api.Key][]byte{key: record})
		}
		key, n := api.Key{Kind: api.KindCluster, Name: "c1"}, int64(turn+1)
		if last, err := w.log.Recorded(w.ctx); err != nil || last != n-1 {
			t.Fatalf("pass %d was recorded last, not %d: %v", last, turn, err)
		}
		err = w.log.Record(w.ctx, Pass{
			Revision: n, Time: w.now, Keys: slices.Values([]api.Key{key}),
			Changed: slices.Values([]store.Record{{Key: key, Value: fmt.Append(nil, n), ModRevision: n}}),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.log.tend(w.ctx)
		other.log.tend(w.ctx) // it does not lead
		if _, err := other.log.seal(w.ctx, other.log.log); err != nil && !errors.Is(err, store.ErrFenced) {
			t.Fatal(err)
		}
		if items := texts(other.all(Query{Limit: 7})); !slices.Equal(items, want) {
			t.Fatalf("the other server reads\n%s\nwant\n%s", join(items), join(want))
		}
		if err := other.log.Record(w.ctx, Pass{Revision: 1, Changed: slices.Values([]store.Record(nil))}); !errors.Is(err, store.ErrFenced) {
			t.Fatalf("a server that does not lead records: %v", err)
		}
		term.Resign()
	}
	items := worlds[0].all(Query{})
	state, err := worlds[1].log.rebuild(worlds[1].ctx, items[len(items)-1].Cursor.Revision)
	if err != nil || len(state.objects) != 1 || string(state.objects[0].Value) != "19" {
		t.Fatalf("rebuilt %+v, %v", state.objects, err)
	}
}

func TestHistoryIsInBackups(t *testing.T) {
	w := newWorld(t)
	key := api.Key{Kind: api.KindCluster, Name: "c1"}
	record := func(n int64) {
		changed := []store.Record{{Key: key, Value: fmt.Append(nil, n), CreateRevision: 1, ModRevision: n}}
		if err := w.log.Record(w.ctx, Pass{Revision: n, Time: w.now, Changed: slices.Values(changed)}); err != nil {
			t.Fatal(err)
		}
	}
	record(1)
	w.moves(20)
	w.sealed(w.log.log)
	w.sealed(w.log.inputs)
	record(2)
	w.moves(3)
	want := texts(w.all(Query{}))
	var backup bytes.Buffer
	if err := w.store.Backup(w.ctx, &backup); err != nil {
		t.Fatal(err)
	}
	w.moves(1) // is lost
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.dir = t.TempDir()
	if err := store.Restore(w.ctx, &backup, w.dir); err != nil {
		t.Fatal(err)
	}
	w.open()
	if items := texts(w.all(Query{})); !slices.Equal(items, want) {
		t.Fatalf("restored\n%s\nwant\n%s", join(items), join(want))
	}
	record(3)
	revision := w.moves(30)[29]
	w.log.tend(w.ctx)
	items := w.all(Query{})
	if len(items) != len(want)+30 || items[len(items)-1].Cursor.Revision != revision {
		t.Fatalf("%d items after the restored store went on", len(items))
	}
	for n, at := range map[int64]int64{1: items[0].Cursor.Revision, 2: items[22].Cursor.Revision, 3: revision} {
		if state, err := w.log.rebuild(w.ctx, at); err != nil || string(state.objects[0].Value) != fmt.Sprint(n) {
			t.Errorf("rebuilt %+v for revision %d, want pass %d: %v", state.objects, at, n, err)
		}
	}
}

func TestHistoryThatIsTurnedOff(t *testing.T) {
	w := newWorld(t)
	pass := Pass{Revision: 1, Time: w.now, Changed: slices.Values([]store.Record{{Key: object(1), Value: []byte("1"), ModRevision: 1}})}
	if err := w.log.Record(w.ctx, pass); err != nil {
		t.Fatal(err)
	}
	w.moves(3)
	w.log.options.Retention = 0
	if w.log.Enabled() {
		t.Fatal("decisions are recorded")
	}
	if err := w.log.Record(w.ctx, Pass{}); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * day)
	w.log.tend(w.ctx)
	if items := w.all(Query{}); len(items) != 0 {
		t.Fatalf("%d records are kept", len(items))
	}
	w.reopen()
	if last, err := w.log.Recorded(w.ctx); err != nil || last != 0 {
		t.Fatalf("after it is turned on again, passes go on from what pass %d was made on, which is deleted: %v", last, err)
	}
}

func TestCursorText(t *testing.T) {
	for _, c := range []Cursor{{}, {7, 1}, {1 << 40, 1<<31 - 1}} {
		if got, err := ParseCursor(c.String()); err != nil || got != c {
			t.Errorf("%s is %v, %v", c, got, err)
		}
	}
	for _, text := range []string{"", "1", ".", "1.", "a.1", "-1.1", "1.-1", "1.99999999999", "1.1.1"} {
		if _, err := ParseCursor(text); err == nil || !strings.Contains(err.Error(), "position") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestChunkRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var values []value
		revision := int64(0)
		for range rapid.IntRange(0, 20).Draw(t, "values") {
			revision += rapid.Int64Range(0, 1<<40).Draw(t, "revision")
			values = append(values, value{revision, rapid.SliceOf(rapid.Byte()).Draw(t, "data")})
		}
		got, err := unpackChunk(packChunk(values))
		if err != nil || !slices.EqualFunc(got, values, func(a, b value) bool { return a.revision == b.revision && bytes.Equal(a.data, b.data) }) {
			t.Fatalf("%v became %v, %v", values, got, err)
		}
	})
}

func TestFilterHasWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := map[string]struct{}{}
		for _, word := range rapid.SliceOf(rapid.String()).Draw(t, "words") {
			words[word] = struct{}{}
		}
		f := newFilter(words)
		for word := range words {
			if !f.mayHave(word) {
				t.Fatalf("%q is missing", word)
			}
		}
	})
	words := map[string]struct{}{}
	for i := range 10_000 {
		words[fmt.Sprint("name ", i)] = struct{}{}
	}
	f, wrong := newFilter(words), 0
	for i := range 10_000 {
		if f.mayHave(fmt.Sprint("cluster ", i)) {
			wrong++
		}
	}
	if wrong > 200 {
		t.Errorf("%d of 10,000 words seem to be there", wrong)
	}
}

func FuzzChunk(f *testing.F) {
	f.Add(packChunk([]value{{3, []byte("a")}, {3, nil}, {9, []byte("b")}}))
	f.Add(chunkEncoder.EncodeAll([]byte{chunkForm, 1, 200}, nil))
	f.Fuzz(func(t *testing.T, packed []byte) {
		if values, err := unpackChunk(packed); err != nil && (values != nil || !isDamage(err)) {
			t.Fatalf("%v, %v", values, err)
		}
	})
}

func FuzzIndex(f *testing.F) {
	i := index{Number: 3, First: 1, Last: 9, Since: began, Until: began, Bases: []base{{1, 2, 3, 4}}, words: newFilter(map[string]struct{}{"a": {}})}
	encoded, err := i.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded)
	f.Fuzz(func(t *testing.T, encoded []byte) {
		i, err := decodeIndex(encoded)
		if err != nil && !isDamage(err) {
			t.Fatal(err)
		}
		i.words.mayHave("a")
	})
}

func FuzzPiece(f *testing.F) {
	p := piece{id: 1, number: 2, last: true, isPass: true, revision: 4, time: began, from: 5}
	key := api.Key{Kind: api.KindMetric, Name: "a"}
	b := appendKey(nil, entryKey, key)
	b = appendRecord(b, store.Record{Key: key})
	b = appendRecord(b, store.Record{Key: key, Part: store.Status, Value: []byte("{}"), CreateRevision: 1, ModRevision: 2})
	f.Add(p.encode(b))
	f.Add(p.encode(bytes.Repeat(b, packedAbove/len(b)+1)))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		p, err := decodePiece(encoded)
		if err != nil {
			if !isDamage(err) || p.records != nil {
				t.Fatal(err)
			}
			return
		}
		var again []byte
		for _, r := range p.records {
			again = appendRecord(again, r)
		}
		for _, k := range p.keys {
			again = appendKey(again, entryKey, k)
		}
		if q, err := decodePiece(p.encode(again)); err != nil || len(q.records) != len(p.records) || q.id != p.id || q.last != p.last {
			t.Fatalf("%+v became %+v, %v", p, q, err)
		}
	})
}

func FuzzTags(f *testing.F) {
	f.Add([]byte(`{"time":"2026-03-01T12:00:00Z","object":{"kind":"placement","namespace":"n","name":"a"},"moved":[{"from":"x","to":"y"}],"cause":{"type":"spec","object":{"kind":"cluster","name":"z"}}}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		tags, err := decodeTags(record)
		if err != nil && !isDamage(err) {
			t.Fatal(err)
		}
		// What is selected by a word of a record is found in the filter of its chunk.
		if err == nil && tags.Object.Name != "" && !strings.ContainsAny(tags.Object.Name, `"\`) {
			q := Query{Name: tags.Object.Name}
			words := map[string]struct{}{}
			for _, word := range tags.words() {
				words[word] = struct{}{}
			}
			if chunk := (index{words: newFilter(words)}); q.selects(record) && !q.inChunk(&chunk) {
				t.Fatalf("the chunk of %s seems to have no %s", record, q.Name)
			}
		}
	})
}

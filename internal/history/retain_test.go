package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// TestWhatIsKeptIsExplained has one decision a day, of which only the record has the status. Whatever is within the
// retention can be explained, and what is older is not kept for much longer.
func TestWhatIsKeptIsExplained(t *testing.T) {
	w := newWorld(t)
	key := object(1)
	objects := map[partKey]store.Record{}
	statuses := map[int64]string{} // before the decision with a revision
	times := map[int64]time.Time{}
	status, seen := "", int64(0)
	for n := range 200 {
		var changed []store.Record
		if n == 1 {
			spec := store.Record{Key: key, Value: []byte("spec"), CreateRevision: w.specs[key], ModRevision: w.specs[key]}
			objects[partKey{key, store.Spec}] = spec
			changed = append(changed, spec)
		}
		all := maps.Clone(objects)
		err := w.log.Record(w.ctx, Pass{Revision: seen + 1, Time: w.now, Changed: slices.Values(changed), Recorded: 1000, All: maps.Values(all)})
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
		record := w.entry(key, "c1", "c2", "metric", n)
		next := fmt.Sprintf(`{"n":%d}`, n)
		seen = w.decide(map[api.Key][]byte{key: fmt.Appendf(record[:len(record)-1], `,"status":%s}`, next)})
		statuses[seen], times[seen] = status, w.now
		status = next
		objects[partKey{key, store.Status}] = store.Record{Key: key, Part: store.Status, Value: []byte(next), ModRevision: seen}
		w.now = w.now.Add(day)
		w.log.tend(w.ctx)
	}
	items := w.all(Query{})
	if len(items) < 90 || len(items) > 120 {
		t.Errorf("%d of 200 decisions are kept, want those of 90 days and few more", len(items))
	}
	for _, item := range items {
		at := item.Cursor.Revision
		if w.now.Sub(times[at]) > 90*day {
			continue
		}
		state, err := w.log.rebuild(w.ctx, at)
		if err != nil {
			t.Fatalf("the decision of %s cannot be explained at %s: %v", times[at], w.now, err)
		}
		if len(state.objects) != 2 || string(state.objects[1].Value) != statuses[at] {
			t.Fatalf("the decision of %s was made on %v, want status %s", times[at], state.objects, statuses[at])
		}
	}
}

// TestFormsOfPieces has inputs that another program has written.
func TestFormsOfPieces(t *testing.T) {
	w := newWorld(t)
	key := api.Key{Kind: api.KindCluster, Name: "c1"}
	record := func(n int64) {
		t.Helper()
		changed := []store.Record{{Key: key, Value: fmt.Append(nil, n), CreateRevision: 1, ModRevision: n}}
		if err := w.log.Record(w.ctx, Pass{Revision: n, Time: w.now, Changed: slices.Values(changed)}); err != nil {
			t.Fatal(err)
		}
	}
	record(1)
	if _, err := w.store.ChangeHistory(w.ctx, store.HistoryChange{Put: map[string][]byte{
		w.store.HistoryKey(inputsPrefix): append([]byte{packedPiece + 1}, "whatever"...),
	}}); err != nil {
		t.Fatal(err)
	}
	unknown := w.moves(1)[0]
	if _, err := w.log.rebuild(w.ctx, unknown); !errors.Is(err, ErrForm) {
		t.Errorf("explained with %v, want %v", err, ErrForm)
	}
	// What another program has recorded last is recorded again.
	if _, err := w.store.ChangeHistory(w.ctx, store.HistoryChange{Put: map[string][]byte{recordedKey: []byte(`{"revision":1,"form":99}`)}}); err != nil {
		t.Fatal(err)
	}
	if last, err := w.log.Recorded(w.ctx); err != nil || last != 0 {
		t.Fatalf("pass %d was recorded last, want none: %v", last, err)
	}
	record(2)
	if state, err := w.log.rebuild(w.ctx, w.moves(1)[0]); err != nil || len(state.objects) != 1 || string(state.objects[0].Value) != "2" {
		t.Errorf("rebuilt %+v, %v", state.objects, err)
	}
}

package history

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// model is the history as lists.
type model struct {
	w *world
	// entries are all records that were written, in order.
	entries []modelEntry
	// passes are the recorded passes, with the objects as they were.
	passes  []modelPass
	objects map[partKey]store.Record
	gone    map[api.Key]bool // deleted since the last recorded pass
	changed map[partKey]bool // changed since then
	pending bool             // the last pass may or may not have been recorded
	newTerm bool
	// complete says that nothing was deleted for its age or size.
	complete bool
	shrunk   bool // something was deleted for its size
	counter  int
}

type modelEntry struct {
	revision int64
	key      api.Key
	from, to string
	cause    string
	time     time.Time
	text     string
	pass     int // of passes, -1 if there is none
}

type modelPass struct {
	revision int64
	time     time.Time
	objects  map[partKey]store.Record
}

func (m *model) move(t *rapid.T) {
	n := rapid.IntRange(1, 12).Draw(t, "decisions")
	records, statuses := map[api.Key][]byte{}, map[api.Key]string{}
	var added []modelEntry
	for range n {
		m.counter++
		e := modelEntry{
			key: object(rapid.IntRange(0, 9).Draw(t, "object")), from: fmt.Sprintf("c%d", rapid.IntRange(0, 3).Draw(t, "from")), to: fmt.Sprintf("c%d", rapid.IntRange(4, 6).Draw(t, "to")),
			cause: rapid.SampledFrom([]string{"metric", "spec", "taint"}).Draw(t, "cause"), time: m.w.now, pass: len(m.passes) - 1,
		}
		if records[e.key] != nil {
			continue
		}
		record := m.w.entry(e.key, e.from, e.to, e.cause, m.counter)
		status, kept := fmt.Sprintf(`{"n":%d}`, m.counter), true
		switch rapid.IntRange(0, 5).Draw(t, "recorded") {
		case 0:
			record, kept = nil, false // its status changes, and not its decision
		case 1:
			kept = false // the status is not in the record
		default:
			record = fmt.Appendf(record[:len(record)-1], `,"status":%s}`, status)
		}
		records[e.key], statuses[e.key] = record, status
		// A pass may leave out what is in a record.
		m.changed[partKey{e.key, store.Status}] = !kept || rapid.IntRange(0, 3).Draw(t, "twice") == 0
		if e.text = string(record); record != nil {
			added = append(added, e)
		}
	}
	revision := m.w.decide(records)
	for key, status := range statuses {
		if spec := (partKey{key, store.Spec}); m.objects[spec].Value == nil {
			m.objects[spec] = store.Record{Key: key, Value: []byte("spec"), CreateRevision: m.w.specs[key], ModRevision: m.w.specs[key]}
			m.changed[spec] = true
		}
		m.objects[partKey{key, store.Status}] = store.Record{Key: key, Part: store.Status, Value: []byte(status), ModRevision: revision}
	}
	// The order within a transaction is that of the writes, which decide does not tell.
	page, err := m.w.log.Read(m.w.ctx, Query{After: Cursor{revision - 1, math.MaxInt32}, Limit: 1000})
	if err != nil {
		t.Fatalf("read what was just written: %v", err)
	}
	order := map[string]int{}
	for i, item := range page.Items {
		order[string(item.Record)] = i
		if item.Cursor.Revision != revision {
			t.Fatalf("a record has revision %d, it was written at %d", item.Cursor.Revision, revision)
		}
	}
	slices.SortFunc(added, func(a, b modelEntry) int { return order[a.text] - order[b.text] })
	for _, e := range added {
		e.revision = revision
		m.entries = append(m.entries, e)
	}
}

// advance writes something else to the store, and returns the revision.
func (m *model) advance(t *rapid.T) int64 {
	at, err := m.w.store.Commit(m.w.ctx, store.Write{Key: api.Key{Kind: api.KindCloud, Name: "other"}, Value: []byte("spec"), Expect: store.Any})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func (m *model) change(t *rapid.T) {
	for range rapid.IntRange(1, 5).Draw(t, "changes") {
		at := m.advance(t)
		key := api.Key{Kind: api.KindCluster, Name: fmt.Sprintf("c%d", rapid.IntRange(0, 7).Draw(t, "cluster"))}
		if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			delete(m.objects, partKey{key, store.Spec})
			delete(m.objects, partKey{key, store.Status})
			m.gone[key] = true
			continue
		}
		part := rapid.SampledFrom([]store.Part{store.Spec, store.Status}).Draw(t, "part")
		if _, there := m.objects[partKey{key, store.Spec}]; !there {
			part = store.Spec
		}
		size := rapid.SampledFrom([]int{1, 10, 1000, 80_000}).Draw(t, "size")
		value := fmt.Appendf(nil, "%d %0*d", at, size, 0)
		created := m.objects[partKey{key, part}].CreateRevision
		if created == 0 {
			created = at
		}
		m.objects[partKey{key, part}] = store.Record{Key: key, Part: part, Value: value, CreateRevision: created, ModRevision: at}
		m.changed[partKey{key, part}] = true
	}
}

func values(objects map[partKey]store.Record) iter.Seq[store.Record] {
	return maps.Values(objects)
}

func (m *model) record(t *rapid.T) {
	all := maps.Clone(m.objects)
	pass := Pass{Revision: m.advance(t), Time: m.w.now, All: values(all)}
	last, err := int64(-1), error(nil)
	if m.newTerm || m.pending {
		if last, err = m.w.log.Recorded(m.w.ctx); err != nil {
			t.Fatal(err)
		}
		pass.Keys = func(yield func(api.Key) bool) {
			for part := range all {
				if part.part == store.Spec && !yield(part.key) {
					return
				}
			}
		}
	}
	var changed []store.Record
	for part, record := range all {
		if last == 0 || last > 0 && record.ModRevision > last || last < 0 && m.changed[part] {
			changed = append(changed, record)
		}
	}
	for key := range m.gone {
		if _, again := all[partKey{key, store.Spec}]; !again {
			changed = append(changed, store.Record{Key: key})
		}
	}
	pass.Changed = slices.Values(changed)
	m.w.flaky.next = rapid.SampledFrom([]fate{sound, sound, sound, refused, answered}).Draw(t, "fate")
	err = m.w.log.Record(m.w.ctx, pass)
	m.w.flaky.next = sound
	if err != nil {
		if m.pending = true; !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUncertain) {
			t.Fatalf("record: %v", err)
		}
		recorded, err := m.w.log.Recorded(m.w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if recorded != pass.Revision {
			return // not recorded: what has changed is still to be
		}
	} else {
		m.pending, m.newTerm = false, false
	}
	m.passes = append(m.passes, modelPass{pass.Revision, pass.Time, all})
	m.gone, m.changed = map[api.Key]bool{}, map[partKey]bool{}
}

func (m *model) checkpoint(t *rapid.T) {
	m.w.log.recorder.want()
	m.record(t)
	select {
	case c := <-m.w.log.recorder.due:
		m.change(t) // it is written when the fleet has changed already
		if rapid.Bool().Draw(t, "pass before") {
			m.record(t)
			select {
			case <-m.w.log.recorder.due:
			default:
			}
		}
		m.w.flaky.next = rapid.SampledFrom([]fate{sound, sound, refused, answered}).Draw(t, "fate")
		_ = m.w.log.recorder.make(m.w.ctx, c) // as its fate says
		m.w.flaky.next = sound
	default:
	}
}

func (m *model) tend(t *rapid.T) {
	j := rapid.SampledFrom([]*journal{m.w.log.log, m.w.log.inputs}).Draw(t, "journal")
	m.w.flaky.next = rapid.SampledFrom([]fate{sound, sound, refused, answered, delayed}).Draw(t, "fate")
	_, err := m.w.log.seal(m.w.ctx, j)
	m.w.flaky.next = sound
	if err != nil && !errors.Is(err, store.ErrUncertain) && !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("seal: %v", err)
	}
}

func (m *model) arrive(t *rapid.T) {
	if err := m.w.flaky.arrive(m.w.ctx); err != nil {
		t.Fatal(err)
	}
}

func (m *model) age(t *rapid.T) {
	m.w.now = m.w.now.Add(time.Duration(rapid.IntRange(1, 60*24).Draw(t, "hours")) * time.Hour)
	m.w.log.tend(m.w.ctx)
	m.complete = false
}

func (m *model) shrink(t *rapid.T) {
	l := m.w.log
	l.options.Size = int64(rapid.IntRange(2000, 20_000).Draw(t, "size"))
	l.tend(m.w.ctx)
	l.options.Size = m.w.size
	m.complete, m.shrunk = false, true
}

func (m *model) restart(*rapid.T) {
	m.w.flaky.late = nil // fenced
	m.w.reopen()
	m.newTerm = true
}

// kept returns the entries that the log has, which are the last ones.
func (m *model) kept(t *rapid.T) []modelEntry {
	items := texts(m.w.all(Query{Limit: rapid.IntRange(1, 40).Draw(t, "limit")}))
	want := m.entries
	if !m.complete {
		want = want[max(len(want)-len(items), 0):]
		for _, e := range m.entries[:len(m.entries)-len(want)] {
			if m.w.now.Sub(e.time) < 90*day && !m.shrunk {
				t.Fatalf("an entry of %s is not kept at %s", e.time, m.w.now)
			}
		}
	}
	expected := make([]string, len(want))
	for i, e := range want {
		expected[i] = e.text
	}
	if !slices.Equal(items, expected) {
		t.Fatalf("read\n%s\nwant\n%s", join(items), join(expected))
	}
	return want
}

func (m *model) check(t *rapid.T) {
	kept := m.kept(t)
	query := Query{
		Newest: rapid.Bool().Draw(t, "newest"), Limit: rapid.IntRange(1, 20).Draw(t, "limit"),
		Cluster: rapid.SampledFrom([]string{"", "c1", "c5", "none"}).Draw(t, "cluster"),
		Cause:   rapid.SampledFrom([]string{"", "", "spec", "other"}).Draw(t, "cause"),
	}
	if rapid.Bool().Draw(t, "by object") {
		key := object(rapid.IntRange(0, 11).Draw(t, "object"))
		query.Kind, query.Namespace, query.Name = key.Kind, key.Namespace, key.Name
	}
	if rapid.Bool().Draw(t, "by time") && len(m.entries) > 0 {
		query.Since = m.entries[rapid.IntRange(0, len(m.entries)-1).Draw(t, "since")].time
		query.Until = query.Since.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "hours")) * time.Hour)
	}
	if rapid.Bool().Draw(t, "visible") {
		query.Visible = func(key api.Key) bool { return key.Namespace == "team-1" }
	}
	expected := []string{}
	for _, e := range kept {
		if (query.Name == "" || e.key.Name == query.Name) && (query.Cluster == "" || e.from == query.Cluster || e.to == query.Cluster) &&
			(query.Cause == "" || e.cause == query.Cause) && (query.Visible == nil || query.Visible(e.key)) &&
			(query.Since.IsZero() || !e.time.Before(query.Since) && e.time.Before(query.Until)) {
			expected = append(expected, e.text)
		}
	}
	if query.Newest {
		slices.Reverse(expected)
	}
	if items := texts(m.w.all(query)); !slices.Equal(items, expected) {
		t.Fatalf("%+v: read\n%s\nwant\n%s", query, join(items), join(expected))
	}
	if len(m.entries) == 0 {
		return
	}
	m.explain(t, m.entries[rapid.IntRange(0, len(m.entries)-1).Draw(t, "explained")])
}

// explain rebuilds what a decision was made on.
func (m *model) explain(t *rapid.T, e modelEntry) {
	state, err := m.w.log.rebuild(m.w.ctx, e.revision)
	var gone *GoneError
	if errors.As(err, &gone) {
		if m.complete && e.pass >= 0 {
			t.Fatalf("the decision at revision %d, of pass %d, cannot be explained: %v", e.revision, e.pass, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if e.pass < 0 {
		t.Fatalf("the decision at revision %d was made on no recorded pass, but on %d", e.revision, state.revision)
	}
	pass := m.passes[e.pass]
	if state.revision != pass.revision || !state.time.Equal(pass.time) {
		t.Fatalf("the decision at revision %d was made on the fleet %d at %s, rebuilt is %d at %s", e.revision, pass.revision, pass.time, state.revision, state.time)
	}
	got := map[partKey]store.Record{}
	for i, record := range state.objects {
		if i > 0 && record.Part < state.objects[i-1].Part {
			t.Fatal("a status comes before a spec")
		}
		got[partKey{record.Key, record.Part}] = record
	}
	if !reflect.DeepEqual(got, pass.objects) {
		t.Fatalf("the decision at revision %d was made on\n%v\nrebuilt is\n%v", e.revision, slices.Collect(maps.Keys(pass.objects)), slices.Collect(maps.Keys(got)))
	}
	var before []string
	for _, other := range m.entries {
		if other.pass == e.pass && other.revision < e.revision {
			before = append(before, other.text)
		}
	}
	if items := texts(state.before); m.complete && !slices.Equal(items, before) {
		t.Fatalf("before revision %d the pass wrote\n%s\nwant\n%s", e.revision, join(items), join(before))
	}
}

func TestLogIsAList(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		w.clear()
		m := &model{w: w, objects: map[partKey]store.Record{}, gone: map[api.Key]bool{}, changed: map[partKey]bool{}, complete: true, newTerm: true}
		t.Repeat(map[string]func(*rapid.T){
			"move": m.move, "move more": m.move, "move again": m.move, "change": m.change, "record": m.record, "checkpoint": m.checkpoint,
			"seal": m.tend, "seal more": m.tend, "arrive": m.arrive, "age": m.age, "shrink": m.shrink, "check": m.check, "restart": m.restart,
			"": func(*rapid.T) {},
		})
		m.check(t)
	})
}

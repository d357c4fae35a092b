package history

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func testCodec(t testing.TB) *store.Codec {
	t.Helper()
	codec, err := store.NewCodec(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// clock is one that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// opened opens a log in a directory, with files of a few lines.
func opened(t interface{ Fatal(...any) }, dir string, c *clock, adjust ...func(*Options)) *Log {
	options := Options{Dir: dir, Retention: 10 * time.Hour, MaxBytes: 1 << 30, Now: c.now}
	for _, f := range adjust {
		f(&options)
	}
	l, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	l.maxFile = 700
	return l
}

// entry returns an entry in which a placement moves.
func entry(revision int64, name, from, to string, at time.Time) line {
	return line{Entry: &api.HistoryEntry{
		Revision: revision, Time: at, Object: api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name},
		Before: &api.Where{Clusters: []string{from}}, After: &api.Where{Clusters: []string{to}},
		Cause: &api.Cause{Type: api.CauseMetric, Object: &api.Key{Kind: api.KindMetric, Name: "load"}, Field: "status.value", Old: "1", New: "2"},
	}}
}

func appended(t interface{ Fatal(...any) }, l *Log, through int64, lines ...line) {
	if err := l.append(lines, through); err != nil {
		t.Fatal(err)
	}
}

// pages reads all pages of a query.
func pages(t interface{ Fatalf(string, ...any) }, l *Log, query Query) (items []api.HistoryEntry, gaps []api.HistoryGap) {
	for n := 0; ; n++ {
		page := l.Read(query)
		if len(page.Items) > query.Limit {
			t.Fatalf("%d entries on a page, %d are allowed", len(page.Items), query.Limit)
		}
		items, gaps = append(items, page.Items...), append(gaps, page.Gaps...)
		if page.Next == (Cursor{}) {
			return items, gaps
		}
		next, ok := ParseCursor(page.Next.String())
		if !ok || next != page.Next {
			t.Fatalf("the cursor %v is read as %v", page.Next, next)
		}
		if n > 10_000 {
			t.Fatalf("the pages do not end")
		}
		query.Before = next
	}
}

// files returns the names of the files in a directory.
func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

// TestLogIsWhatWasAppended appends, restarts, kills and reads in any order, and compares with a list.
func TestLogIsWhatWasAppended(t *testing.T) {
	root := t.TempDir()
	var n int
	rapid.Check(t, func(t *rapid.T) {
		n++
		dir := filepath.Join(root, fmt.Sprint(n))
		c := &clock{start}
		l := opened(t, dir, c)
		var want []api.HistoryEntry
		through := int64(0) // what the log must have
		marked := int64(0)  // what it has after it was killed, at least
		names := []string{"web", "db", "jobs"}
		clusters := []string{"a", "b", "c"}
		reopen := func(killed bool) {
			if !killed {
				if err := l.mark(); err != nil {
					t.Fatal(err)
				}
				marked = through
			}
			l = opened(t, dir, c)
			if l.complete() < marked || l.complete() > through {
				t.Fatalf("complete up to %d after a start, want %d to %d", l.complete(), marked, through)
			}
			through = l.complete()
			want = slices.DeleteFunc(want, func(e api.HistoryEntry) bool { return e.Revision > through })
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				c.at = c.at.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds")) * time.Second)
				var lines []line
				revision := through
				for range rapid.IntRange(0, 5).Draw(t, "lines") {
					revision += int64(rapid.IntRange(0, 2).Draw(t, "revisions"))
					revision = max(revision, through+1)
					e := entry(revision, rapid.SampledFrom(names).Draw(t, "name"), rapid.SampledFrom(clusters).Draw(t, "from"), rapid.SampledFrom(clusters).Draw(t, "to"), c.at)
					lines = append(lines, e)
					shown := *e.Entry
					shown.Moved = api.Moves(shown.Before, shown.After)
					want = append(want, shown)
				}
				through = max(revision, through) + int64(rapid.IntRange(0, 2).Draw(t, "more"))
				appended(t, l, through, lines...)
				if len(lines) > 0 {
					marked = through
				}
			},
			"restart": func(*rapid.T) { reopen(false) },
			"kill": func(t *rapid.T) {
				// Some of what was written last may not be on the disk.
				if last := l.last(); last != nil {
					cut := last.size - int64(rapid.IntRange(0, 400).Draw(t, "lost"))
					if cut < last.size {
						if err := os.Truncate(l.path(last.name()), max(0, cut)); err != nil {
							t.Fatal(err)
						}
						marked = 0
					}
				}
				reopen(true)
			},
			"": func(t *rapid.T) {
				query := Query{Limit: rapid.IntRange(1, 7).Draw(t, "limit")}
				if rapid.Bool().Draw(t, "by name") {
					query.Name = rapid.SampledFrom(names).Draw(t, "of")
				}
				if rapid.Bool().Draw(t, "by cluster") {
					query.Cluster = rapid.SampledFrom(clusters).Draw(t, "cluster")
				}
				if rapid.Bool().Draw(t, "by time") {
					query.Since = start.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "since")) * time.Second)
					query.Until = query.Since.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "until")) * time.Second)
				}
				got, gaps := pages(t, l, query)
				var selected []api.HistoryEntry
				for _, e := range slices.Backward(want) {
					moved := slices.ContainsFunc(e.Moved, func(m api.Move) bool { return m.From == query.Cluster || m.To == query.Cluster })
					if (query.Name == "" || e.Object.Name == query.Name) && (query.Cluster == "" || moved) &&
						(query.Since.IsZero() || !e.Time.Before(query.Since) && e.Time.Before(query.Until)) {
						selected = append(selected, e)
					}
				}
				if len(got) != len(selected) || len(got) > 0 && !reflect.DeepEqual(got, selected) || gaps != nil {
					t.Fatalf("%+v:\n%+v, gaps %v, want\n%+v", query, got, gaps, selected)
				}
			},
		})
	})
}

// TestFilesAreDeletedByAgeAndSize writes for days.
func TestFilesAreDeletedByAgeAndSize(t *testing.T) {
	for name, c := range map[string]struct {
		step     time.Duration // between entries
		maxBytes int64
		check    func(entries []api.HistoryEntry, now time.Time, bytes int64) bool
	}{
		"age": {10 * time.Minute, 1 << 30, func(entries []api.HistoryEntry, now time.Time, _ int64) bool {
			oldest := now.Sub(entries[len(entries)-1].Time)
			return oldest >= 9*time.Hour && oldest <= 12*time.Hour
		}},
		"size": {time.Second, 3000, func(entries []api.HistoryEntry, _ time.Time, bytes int64) bool {
			return len(entries) >= 10 && bytes <= 3000+700
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, clock := t.TempDir(), &clock{start}
			l := opened(t, dir, clock, func(o *Options) { o.MaxBytes = c.maxBytes })
			for revision := range int64(200) {
				clock.at = clock.at.Add(c.step)
				appended(t, l, revision+1, entry(revision+1, fmt.Sprint("web-", revision), "a", "b", clock.at))
			}
			entries, gaps := pages(t, l, Query{Limit: 100})
			var bytes int64
			for _, name := range files(t, dir) {
				info, err := os.Stat(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				bytes += info.Size()
			}
			if !c.check(entries, clock.at, bytes) || gaps != nil || entries[0].Revision != 200 {
				t.Errorf("%d entries from %s to %s in %d bytes, gaps %v", len(entries), entries[len(entries)-1].Time, entries[0].Time, bytes, gaps)
			}
			if since := l.Read(Query{Limit: 1}).Since; since.After(entries[len(entries)-1].Time) {
				t.Errorf("kept since %s, but there is one of %s", since, entries[len(entries)-1].Time)
			}
			if got, _ := pages(t, opened(t, dir, clock), Query{Limit: 1000}); len(got) != len(entries) {
				t.Errorf("%d entries after a start, want %d", len(got), len(entries))
			}
		})
	}
}

// TestDamageCostsOnlyItself damages files, and what is in them is a gap.
func TestDamageCostsOnlyItself(t *testing.T) {
	written := func(t *testing.T) (dir string, names []string) {
		dir = t.TempDir()
		l := opened(t, dir, &clock{start})
		for revision := range int64(12) {
			appended(t, l, revision+1, entry(revision+1, "web", "a", "b", start))
		}
		return dir, files(t, dir)
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string, names []string)
		first  int64 // oldest entry behind the damage, or before it
		gap    bool
	}{
		"a sealed file": {func(t *testing.T, dir string, names []string) {
			path := filepath.Join(dir, names[1])
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)/2] ^= 1
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, true},
		"a file that is gone": {func(t *testing.T, dir string, names []string) {
			if err := os.Remove(filepath.Join(dir, names[0])); err != nil {
				t.Fatal(err)
			}
		}, 3, false},
		"a file that was being compressed": {func(t *testing.T, dir string, names []string) {
			if err := os.WriteFile(filepath.Join(dir, "."+names[0]+"-123"), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, false},
		"a file that was compressed and not removed": {func(t *testing.T, dir string, names []string) {
			f, ok := parseName(names[0])
			if !ok || !f.sealed {
				t.Fatalf("%s is not sealed", names[0])
			}
			lines, err := readFile(filepath.Join(dir, names[0]), f)
			if err != nil {
				t.Fatal(err)
			}
			f.sealed = false
			var text strings.Builder
			for _, line := range lines {
				text.Write(append(line, '\n'))
			}
			if err := os.WriteFile(filepath.Join(dir, f.name()), []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, false},
		"another file": {func(t *testing.T, dir string, _ []string) {
			if err := os.WriteFile(filepath.Join(dir, "README"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, names := written(t)
			if len(names) < 3 {
				t.Fatalf("files %v, want several", names)
			}
			c.damage(t, dir, names)
			l := opened(t, dir, &clock{start})
			entries, gaps := pages(t, l, Query{Limit: 2})
			if entries[0].Revision != 12 || entries[len(entries)-1].Revision != c.first || (len(gaps) > 0) != c.gap {
				t.Errorf("entries from %d to %d, gaps %+v", entries[len(entries)-1].Revision, entries[0].Revision, gaps)
			}
			if slices.ContainsFunc(files(t, dir), func(name string) bool { return strings.HasPrefix(name, ".") }) {
				t.Errorf("files %v, want none that was not finished", files(t, dir))
			}
			seen := map[int64]bool{}
			for _, e := range entries {
				if seen[e.Revision] {
					t.Errorf("revision %d is there twice", e.Revision)
				}
				seen[e.Revision] = true
			}
			for revision := c.first; revision <= 12; revision++ {
				in := slices.ContainsFunc(gaps, func(g api.HistoryGap) bool { return g.After < revision && revision <= g.Until })
				if in == seen[revision] {
					t.Errorf("revision %d: there %v, in a gap %v", revision, seen[revision], in)
				}
			}
			appended(t, l, 13, entry(13, "web", "a", "b", start))
			if got := l.Read(Query{Limit: 1}).Items; len(got) != 1 || got[0].Revision != 13 {
				t.Errorf("%+v after an append, want revision 13", got)
			}
		})
	}
}

// TestTheNewestFileCannotBeRead opens a log whose last file is no file: it goes on where the file before it ends.
func TestTheNewestFileCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, &clock{start})
	for revision := range int64(12) {
		appended(t, l, revision+1, entry(revision+1, "web", "a", "b", start))
	}
	last := l.files[len(l.files)-1]
	if last.sealed || last.first == 1 {
		t.Fatalf("the last file is %+v, want one of several that is not sealed", last)
	}
	path := filepath.Join(dir, last.name())
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, told := range []bool{true, false} { // the second time, it is not there any more
		var logs logtest.Buffer
		l = opened(t, dir, &clock{start}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
		if l.complete() != last.first-1 {
			t.Errorf("complete up to %d, want %d", l.complete(), last.first-1)
		}
		if strings.Contains(logs.String(), last.name()+".unreadable") != told {
			t.Errorf("the log says %q", logs.String())
		}
	}
	for revision := last.first; revision <= 12; revision++ {
		appended(t, l, revision, entry(revision, "web", "a", "b", start))
	}
	if entries, gaps := pages(t, l, Query{Limit: 5}); len(entries) != 12 || len(gaps) > 0 {
		t.Errorf("%d entries, gaps %v", len(entries), gaps)
	}
}

// TestEntriesOfAStatus lists what a change of a status is in the history.
func TestEntriesOfAStatus(t *testing.T) {
	codec := testCodec(t)
	at := start.Add(-time.Minute)
	cause := &api.Cause{Type: api.CauseTaint, Object: &api.Key{Kind: api.KindCluster, Name: "a"}}
	actor, margin := &api.Actor{Token: "alice", RequestID: "r-1"}, &api.DecisionMargin{From: "a", To: "c", Old: 1, New: 3, Needed: 2}
	written := *cause
	written.Actor = actor
	placement := func(revision int64, clusters ...string) []byte {
		value, err := codec.EncodeStatus(&api.Placement{Status: api.PlacementStatus{Clusters: clusters, DecisionRevision: revision, ScheduledAt: &at, Cause: &written, Margin: margin}})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	workload := func(revision, a, b int64) []byte {
		value, err := codec.EncodeStatus(&api.Workload{Status: api.WorkloadStatus{
			Clusters: []api.WorkloadCluster{{Name: "a", Replicas: a}, {Name: "b", Replicas: b}}, DecisionRevision: revision, ScheduledAt: &at, Cause: &written,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	where := func(clusters ...string) *api.Where { return &api.Where{Clusters: append([]string{}, clusters...)} }
	for name, c := range map[string]struct {
		kind          api.Kind
		before, after []byte
		created       int64
		damage        error
		want          *api.HistoryEntry // without revision and object
		moved         []api.Move
		gap           string
	}{
		"first decision":         {kind: api.KindPlacement, after: placement(1, "a"), created: 7, want: &api.HistoryEntry{Time: at, After: where("a"), Cause: cause, Actor: actor, Margin: margin}, moved: []api.Move{{To: "a"}}},
		"first, of nothing":      {kind: api.KindPlacement, after: placement(1), created: 7, want: &api.HistoryEntry{Time: at, After: where(), Cause: cause, Actor: actor, Margin: margin}, moved: []api.Move{}},
		"not decided yet":        {kind: api.KindPlacement, after: placement(0), created: 7},
		"moved":                  {kind: api.KindPlacement, before: placement(1, "a", "b"), after: placement(2, "b", "c"), want: &api.HistoryEntry{Time: at, Before: where("a", "b"), After: where("b", "c"), Cause: cause, Actor: actor, Margin: margin}, moved: []api.Move{{From: "a", To: "c"}}},
		"same decision":          {kind: api.KindPlacement, before: placement(2, "a"), after: placement(2, "a")},
		"deleted":                {kind: api.KindPlacement, before: placement(2, "a"), want: &api.HistoryEntry{Time: start, Before: where("a")}, moved: []api.Move{{From: "a"}}},
		"deleted, never decided": {kind: api.KindPlacement, before: placement(0)},
		"replicas": {kind: api.KindWorkload, before: workload(1, 3, 2), after: workload(2, 1, 4), moved: []api.Move{{From: "a", To: "b", Replicas: 2}},
			want: &api.HistoryEntry{Time: at, Before: &api.Where{Clusters: []string{"a", "b"}, Replicas: map[string]int64{"a": 3, "b": 2}}, After: &api.Where{Clusters: []string{"a", "b"}, Replicas: map[string]int64{"a": 1, "b": 4}}, Cause: cause, Actor: actor}},
		"same clusters":         {kind: api.KindWorkload, before: workload(1, 1, 1), after: workload(2, 1, 1), moved: []api.Move{}, want: &api.HistoryEntry{Time: at, Before: &api.Where{Clusters: []string{"a", "b"}, Replicas: map[string]int64{"a": 1, "b": 1}}, After: &api.Where{Clusters: []string{"a", "b"}, Replicas: map[string]int64{"a": 1, "b": 1}}, Cause: cause, Actor: actor}},
		"damaged":               {kind: api.KindPlacement, after: []byte{}, damage: store.ErrDamaged, gap: "damaged"},
		"before is not kept":    {kind: api.KindPlacement, after: placement(2, "a"), created: 3, gap: "before is not known"},
		"before cannot be read": {kind: api.KindPlacement, before: []byte("{"), after: placement(2, "a"), created: 3, gap: "before cannot be read"},
		"cannot be read":        {kind: api.KindPlacement, before: placement(2, "a"), after: []byte("{"), created: 3, gap: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			key := api.Key{Kind: c.kind, Namespace: "shop", Name: "web"}
			got, ok := lineOf(&store.Record{Key: key, Part: store.Status, Value: c.after, Before: c.before, CreateRevision: c.created, ModRevision: 7, Damage: c.damage}, start)
			switch {
			case c.gap != "":
				if got.Gap == nil || got.Gap.After != 6 || got.Gap.Until != 7 || !strings.Contains(got.Gap.Reason, c.gap) {
					t.Errorf("%+v, want a gap: %s", got.Gap, c.gap)
				}
			case c.want == nil:
				if ok {
					t.Errorf("%+v, want none", got)
				}
			default:
				c.want.Revision, c.want.Object = 7, key
				if !reflect.DeepEqual(got.Entry, c.want) {
					t.Errorf("%+v, want %+v", got.Entry, c.want)
				}
				if moved := api.Moves(c.want.Before, c.want.After); !reflect.DeepEqual(moved, c.moved) {
					t.Errorf("moved %+v, want %+v", moved, c.moved)
				}
			}
		})
	}
}

// script is a store whose watches show what a test says: one slice of batches for each watch, which
// then ends. The last one stays.
type script struct {
	from     []int64
	watches  [][]store.Batch
	revision int64
}

func (s *script) Revision(context.Context) (int64, error) {
	if s.revision == 0 {
		return 1000, nil
	}
	return s.revision, nil
}

func (s *script) WatchStatuses(ctx context.Context, from int64) <-chan store.Batch {
	s.from = append(s.from, from)
	out := make(chan store.Batch)
	n := len(s.from)
	go func() {
		defer close(out)
		if n <= len(s.watches) {
			for _, batch := range s.watches[n-1] {
				select {
				case out <- batch:
				case <-ctx.Done():
				}
			}
		}
		if n >= len(s.watches) {
			<-ctx.Done()
		}
	}()
	return out
}

// TestRunGoesOnWhereItEnded ends watches in each way.
func TestRunGoesOnWhereItEnded(t *testing.T) {
	codec := testCodec(t)
	batch := func(revision int64, clusters ...string) store.Batch {
		value, err := codec.EncodeStatus(&api.Placement{Status: api.PlacementStatus{Clusters: clusters, DecisionRevision: revision, ScheduledAt: &start}})
		if err != nil {
			t.Fatal(err)
		}
		key := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
		other := store.Record{Key: api.Key{Kind: api.KindMetric, Namespace: "shop", Name: "load"}, Part: store.Status, Value: []byte("{"), ModRevision: revision}
		return store.Batch{Revision: revision, Records: []store.Record{other, {Key: key, Part: store.Status, Value: value, CreateRevision: revision, ModRevision: revision}}}
	}
	dir := t.TempDir()
	run := func(s *script, wantFrom []int64, wantEntries []int64, wantGaps []api.HistoryGap) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var logs logtest.Buffer
			l := opened(t, dir, &clock{start}, func(o *Options) {
				o.Store, o.Logger = s, slog.New(slog.NewTextHandler(&logs, nil))
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- l.Run(ctx) }()
			faketime.Sleep(time.Hour) // everything has happened
			synctest.Wait()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			entries, gaps := pages(t, l, Query{Limit: 100})
			var revisions []int64
			for _, e := range entries {
				revisions = append(revisions, e.Revision)
			}
			if !slices.Equal(s.from, wantFrom) || !slices.Equal(revisions, wantEntries) || !slices.EqualFunc(gaps, wantGaps, func(a, b api.HistoryGap) bool { return a.After == b.After && a.Until == b.Until }) {
				t.Errorf("watches from %v, entries %v, gaps %+v; want %v, %v, %+v\n%s", s.from, revisions, gaps, wantFrom, wantEntries, wantGaps, logs.String())
			}
		})
	}
	run(&script{watches: [][]store.Batch{{batch(3, "a"), {Revision: 9}}}}, []int64{1}, []int64{3}, nil)
	run(&script{watches: [][]store.Batch{{batch(12, "b"), {Err: store.ErrUnavailable}}, {batch(14, "c")}}}, []int64{10, 13}, []int64{14, 12, 3}, nil)
	run(&script{watches: [][]store.Batch{{}, {{Err: &store.CompactedError{Revision: 20}}}, {batch(22, "d")}}},
		[]int64{15, 15, 21}, []int64{22, 14, 12, 3}, []api.HistoryGap{{After: 14, Until: 20}})
	// Another store: nothing is written.
	run(&script{revision: 21, watches: [][]store.Batch{{batch(23, "e")}}}, nil, []int64{22, 14, 12, 3}, []api.HistoryGap{{After: 14, Until: 20}})
	run(&script{revision: 22, watches: [][]store.Batch{{batch(23, "e")}}}, []int64{23}, []int64{23, 22, 14, 12, 3}, []api.HistoryGap{{After: 14, Until: 20}})
}

// TestWhatCannotBeWrittenIsWrittenLater takes the directory away for a while.
func TestWhatCannotBeWrittenIsWrittenLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	l := opened(t, dir, &clock{start})
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := l.append([]line{entry(1, "web", "a", "b", start)}, 1); err == nil || l.complete() != 0 || !strings.Contains(err.Error(), dir) || len(l.files) != 0 {
		t.Errorf("error %v, complete up to %d, files %v", err, l.complete(), l.files)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	appended(t, l, 1, entry(1, "web", "a", "b", start))
	if got := l.Read(Query{Limit: 5}).Items; len(got) != 1 {
		t.Errorf("%+v, want the entry once", got)
	}
}

// TestQueries selects from entries of two files.
func TestQueries(t *testing.T) {
	l := opened(t, t.TempDir(), &clock{start})
	of := func(revision int64, kind api.Kind, namespace, name string, at time.Duration) line {
		e := entry(revision, name, "a", "b", start.Add(at))
		e.Entry.Object = api.Key{Kind: kind, Namespace: namespace, Name: name}
		return e
	}
	// The clock of the server that decided the first one was half an hour ahead.
	appended(t, l, 1, of(1, api.KindPlacement, "shop", "web", 30*time.Minute))
	l.options.Now = func() time.Time { return start.Add(time.Minute) }
	appended(t, l, 4, of(2, api.KindWorkload, "shop", "web", time.Minute), line{Gap: &api.HistoryGap{After: 2, Until: 3, Reason: "x"}}, of(4, api.KindPlacement, "ads", "web", time.Minute))
	if len(l.files) != 2 {
		t.Fatalf("files %v, want 2", l.files)
	}
	for name, c := range map[string]struct {
		query Query
		want  []int64
	}{
		"all":        {Query{}, []int64{4, 2, 1}},
		"kind":       {Query{Kinds: []api.Kind{api.KindPlacement}}, []int64{4, 1}},
		"kinds":      {Query{Kinds: api.HistoryKinds}, []int64{4, 2, 1}},
		"namespace":  {Query{Namespace: "shop"}, []int64{2, 1}},
		"object":     {Query{Kinds: []api.Kind{api.KindWorkload}, Namespace: "shop", Name: "web"}, []int64{2}},
		"part":       {Query{Name: "we"}, nil},
		"visible":    {Query{Visible: func(key api.Key) bool { return key.Namespace == "ads" }}, []int64{4}},
		"clock":      {Query{Since: start.Add(20 * time.Minute)}, []int64{1}},
		"clock, end": {Query{Until: start.Add(30 * time.Minute)}, []int64{4, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c.query.Limit = range []int{1, 2, 100} {
				entries, gaps := pages(t, l, c.query)
				var got []int64
				for _, e := range entries {
					got = append(got, e.Revision)
				}
				if !slices.Equal(got, c.want) || len(gaps) != 1 {
					t.Errorf("%v, gaps %v, want %v and one gap", got, gaps, c.want)
				}
			}
		})
	}
}

// TestAfter asks for the first entry after times. There is one in each hour.
func TestAfter(t *testing.T) {
	l := opened(t, t.TempDir(), &clock{start})
	const n = 30 // in no more files than are read
	for hour := range n {
		at := start.Add(time.Duration(hour) * time.Hour)
		l.options.Now = func() time.Time { return at }
		l.options.Retention = 1000 * time.Hour
		appended(t, l, int64(100+hour), entry(int64(100+hour), "web", "a", "b", at))
	}
	if len(l.files) < 5 {
		t.Fatalf("%d files", len(l.files))
	}
	for name, c := range map[string]struct {
		at       time.Duration
		revision int64
		known    bool
	}{
		"before all":       {-time.Hour, 100, false},
		"at the first":     {0, 101, true},
		"in the middle":    {20*time.Hour + time.Minute, 121, true},
		"at an entry":      {20 * time.Hour, 121, true},
		"before the last":  {(n-1)*time.Hour - 1, 100 + n - 1, true},
		"at the last":      {(n - 1) * time.Hour, 0, true},
		"after everything": {1000 * time.Hour, 0, true},
	} {
		if revision, known := l.After(start.Add(c.at)); known != c.known || known && revision != c.revision {
			t.Errorf("%s: revision %d, %t, want %d, %t", name, revision, known, c.revision, c.known)
		}
	}
	if _, known := opened(t, t.TempDir(), &clock{start}).After(start); known {
		t.Error("an empty log knows")
	}
}

// TestTimesOfWhatIsWrittenLater has a server that was away: what it writes now was decided before.
func TestTimesOfWhatIsWrittenLater(t *testing.T) {
	c := &clock{start.Add(48 * time.Hour)}
	l := opened(t, t.TempDir(), c, func(o *Options) { o.Retention = 1000 * time.Hour })
	for revision := range int64(6) {
		appended(t, l, revision+1, entry(revision+1, "web", "a", "b", start.Add(time.Duration(revision)*time.Hour)))
	}
	entries, _ := pages(t, l, Query{Limit: 2, Since: start.Add(2 * time.Hour), Until: start.Add(4 * time.Hour)})
	if len(entries) != 2 || entries[0].Revision != 4 || entries[1].Revision != 3 {
		t.Errorf("%+v, want revisions 4 and 3", entries)
	}
}

// TestAQuietFleet has a decision now and then: files are begun by age, and marks are rare.
func TestAQuietFleet(t *testing.T) {
	dir, c := t.TempDir(), &clock{start}
	l := opened(t, dir, c)
	l.maxFile = maxFile
	appended(t, l, 1, entry(1, "web", "a", "b", c.at))
	before := l.files[0].size
	for revision := range int64(10) {
		c.at = c.at.Add(time.Second)
		appended(t, l, revision+2)
	}
	if l.files[0].size != before || l.complete() != 11 {
		t.Errorf("%d bytes of marks in ten seconds, complete up to %d", l.files[0].size-before, l.complete())
	}
	c.at = c.at.Add(time.Minute)
	appended(t, l, 12)
	if got := opened(t, dir, c).complete(); got != 12 {
		t.Errorf("complete up to %d after a start, want 12", got)
	}
	for range 20 {
		c.at = c.at.Add(2 * time.Hour)
		appended(t, l, l.complete()+1)
	}
	if entries, _ := pages(t, l, Query{Limit: 5}); len(entries) != 0 {
		t.Errorf("%+v, want that it is deleted by age", entries)
	}
}

// TestReadersMeetChanges reads files that were sealed or deleted since the reader learned of them.
func TestReadersMeetChanges(t *testing.T) {
	l := opened(t, t.TempDir(), &clock{start})
	appended(t, l, 1, entry(1, "web", "a", "b", start))
	stale := l.files[0]
	for revision := int64(2); revision <= 5; revision++ {
		appended(t, l, revision, entry(revision, "web", "a", "b", start))
	}
	if lines, err := l.read(stale); err != nil || len(lines) < 2 {
		t.Errorf("%d lines, %v, of a file that was sealed", len(lines), err)
	}
	if err := os.Remove(l.path(l.files[0].name())); err != nil {
		t.Fatal(err)
	}
	entries, gaps := pages(t, l, Query{Limit: 100})
	if len(entries) == 0 || entries[0].Revision != 5 || gaps != nil {
		t.Errorf("%+v, gaps %v, want what is left", entries, gaps)
	}
}

// TestLargeEntriesMakeShortPages has decisions of many clusters.
func TestLargeEntriesMakeShortPages(t *testing.T) {
	l := opened(t, t.TempDir(), &clock{start})
	many := make([]string, 100_000)
	for i := range many {
		many[i] = fmt.Sprintf("cluster-with-a-long-name-%06d", i)
	}
	for revision := range int64(5) {
		e := entry(revision+1, "web", "a", "b", start)
		e.Entry.Before, e.Entry.After = nil, &api.Where{Clusters: many}
		appended(t, l, revision+1, e)
	}
	page := l.Read(Query{Limit: 100})
	if len(page.Items) != 3 || page.Next == (Cursor{}) {
		t.Errorf("%d entries on a page, and more: %v; want 3 of 5", len(page.Items), page.Next)
	}
	if entries, _ := pages(t, l, Query{Limit: 100}); len(entries) != 5 {
		t.Errorf("%d entries, want 5", len(entries))
	}
}

// TestADamagedEnd starts with a damaged file at the end: what was in it is not written again.
func TestADamagedEnd(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, &clock{start})
	for revision := int64(1); len(l.files) < 3; revision++ {
		appended(t, l, revision, entry(revision, "web", "a", "b", start))
	}
	if err := os.Remove(l.path(l.files[2].name())); err != nil {
		t.Fatal(err)
	}
	first := l.files[1].first
	if err := os.WriteFile(l.path(l.files[1].name()), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := opened(t, dir, &clock{start}).complete(); got != first {
		t.Errorf("complete up to %d, want %d: it is not known how far the damaged file went", got, first)
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, seed := range []string{"1.0", "42.7", "", ".", "1", "1.", "-1.0", "1.-1", "01.0", "9223372036854775808.0", "1.0.0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if c, ok := ParseCursor(token); ok && (c.String() != token || c.revision < 1 || c.n < 0) {
			t.Errorf("%q is read as %+v", token, c)
		}
	})
}

// FuzzFile reads files with any content, as one that was written and as one that is sealed.
func FuzzFile(f *testing.F) {
	text, err := encodeLines([]line{entry(1, "web", "a", "b", start), {Gap: &api.HistoryGap{After: 1, Until: 3, Reason: "x"}}, {Through: 4}})
	if err != nil {
		f.Fatal(err)
	}
	packed, err := compressed(text)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add(packed)
	f.Add([]byte("{}\n{\"through\":-1}\nnull\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		for _, sealed := range []bool{false, true} {
			name := file{first: 1, since: start, sealed: sealed}.name()
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
			l := opened(t, dir, &clock{start})
			pages(t, l, Query{Limit: 3})
			appended(t, l, l.complete()+1, entry(l.complete()+1, "web", "a", "b", start))
			if got := l.Read(Query{Limit: 1}).Items; len(got) != 1 || got[0].Object.Name != "web" {
				t.Errorf("%+v after an append", got)
			}
			for _, name := range files(t, dir) {
				_ = os.Remove(filepath.Join(dir, name))
			}
		}
	})
}

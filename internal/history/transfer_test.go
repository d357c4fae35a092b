package history

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

// asking makes a log ask others.
func asking(others ...*Log) func(*Options) {
	return func(o *Options) {
		o.Others = func(_ context.Context, after, until int64) iter.Seq[[]byte] {
			return func(yield func([]byte) bool) {
				for _, other := range others {
					if !yield(other.Part(after, until)) {
						return
					}
				}
			}
		}
	}
}

// TestWhatWasMissedIsTakenFromOthers has logs with entries at every even revision.
func TestWhatWasMissedIsTakenFromOthers(t *testing.T) {
	// keeps returns a log with what is after some revisions and up to others.
	keeps := func(ranges ...[2]int64) *Log {
		l := opened(t, t.TempDir(), &clock{start})
		for _, r := range ranges {
			if l.complete() < r[0] {
				appended(t, l, r[0], line{Gap: &api.HistoryGap{After: l.complete(), Until: r[0], Reason: "away"}})
			}
			for revision := r[0] + 1; revision <= r[1]; revision++ {
				if revision%2 == 0 {
					appended(t, l, revision, entry(revision, "web", "a", "b", start))
				}
			}
			appended(t, l, r[1])
			if err := l.mark(); err != nil {
				t.Fatal(err)
			}
		}
		return l
	}
	for name, c := range map[string]struct {
		has    int64 // what the log has itself
		others []*Log
		gaps   [][2]int64 // after 40 has been missed
	}{
		"nobody else":               {has: 10, gaps: [][2]int64{{10, 40}}},
		"one that has all":          {has: 10, others: []*Log{keeps([2]int64{0, 50})}},
		"nothing of its own":        {others: []*Log{keeps([2]int64{0, 50})}},
		"one that is behind":        {has: 10, others: []*Log{keeps([2]int64{0, 20})}, gaps: [][2]int64{{20, 40}}},
		"one that is empty":         {has: 10, others: []*Log{keeps()}, gaps: [][2]int64{{10, 40}}},
		"one with a gap":            {has: 10, others: []*Log{keeps([2]int64{0, 15}, [2]int64{25, 50})}, gaps: [][2]int64{{15, 25}}},
		"one that began later":      {has: 10, others: []*Log{keeps([2]int64{20, 50})}, gaps: [][2]int64{{10, 20}}},
		"gaps that others fill":     {has: 10, others: []*Log{keeps([2]int64{0, 15}, [2]int64{25, 50}), keeps([2]int64{0, 50})}},
		"one behind, one with all":  {has: 10, others: []*Log{keeps([2]int64{0, 20}), keeps([2]int64{0, 50})}},
		"one is missing at the end": {has: 10, others: []*Log{keeps([2]int64{0, 39})}, gaps: [][2]int64{{39, 40}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := opened(t, t.TempDir(), &clock{start}, asking(c.others...))
			for revision := int64(1); revision <= c.has; revision++ {
				if revision%2 == 0 {
					appended(t, l, revision, entry(revision, "web", "a", "b", start))
				}
			}
			if err := l.missed(t.Context(), 40); err == nil {
				t.Error("the watch need not begin again")
			}
			appended(t, l, 42, entry(42, "web", "a", "b", start))
			entries, gaps := pages(t, l, Query{Limit: 3})
			seen := map[int64]int{}
			for _, e := range entries {
				seen[e.Revision]++
			}
			missing := func(revision int64) bool {
				return slices.ContainsFunc(c.gaps, func(g [2]int64) bool { return g[0] < revision && revision <= g[1] })
			}
			for revision := int64(1); revision <= 42; revision++ {
				want := 0
				if revision%2 == 0 && !missing(revision) {
					want = 1
				}
				inGap := slices.ContainsFunc(gaps, func(g api.HistoryGap) bool { return g.After < revision && revision <= g.Until })
				if seen[revision] != want || missing(revision) && !inGap {
					t.Errorf("revision %d is there %d times, want %d; in a gap %v; gaps %+v", revision, seen[revision], want, inGap, gaps)
				}
			}
			if !slices.EqualFunc(gaps, c.gaps, func(g api.HistoryGap, want [2]int64) bool { return g.After == want[0] && g.Until == want[1] }) {
				t.Errorf("gaps %+v, want %v", gaps, c.gaps)
			}
		})
	}
}

// TestPartsMakeTheSameLog sends a log with files of any size in parts.
func TestPartsMakeTheSameLog(t *testing.T) {
	root := t.TempDir()
	var n int
	rapid.Check(t, func(t *rapid.T) {
		n++
		from := opened(t, root+"/"+strings.Repeat("x", n)+"-from", &clock{start})
		from.maxFile = int64(rapid.IntRange(1, 3000).Draw(t, "file"))
		revision := int64(0)
		for range rapid.IntRange(1, 20).Draw(t, "appends") {
			var lines []line
			first := revision
			for range rapid.IntRange(0, 3).Draw(t, "lines") {
				revision = max(revision+int64(rapid.IntRange(0, 2).Draw(t, "more")), first+1)
				lines = append(lines, entry(revision, "web", "a", "b", start))
			}
			revision++
			appended(t, from, revision, lines...)
		}
		to := opened(t, root+"/"+strings.Repeat("x", n)+"-to", &clock{start}, asking(from))
		_ = to.missed(context.Background(), revision) // says so
		want, _ := pages(t, from, Query{Limit: 5})
		got, gaps := pages(t, to, Query{Limit: 4})
		if !slices.EqualFunc(got, want, func(a, b api.HistoryEntry) bool { return a.Revision == b.Revision && a.Object == b.Object }) || gaps != nil || to.complete() != revision {
			t.Fatalf("%+v, gaps %+v, up to %d; want %+v up to %d", got, gaps, to.complete(), want, revision)
		}
	})
}

// TestPartsThatCannotBeUsed has what a server should never send.
func TestPartsThatCannotBeUsed(t *testing.T) {
	text := func(lines ...line) string {
		encoded, err := encodeLines(lines)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	at := func(revision int64) line { return entry(revision, "web", "a", "b", start) }
	for name, sent := range map[string]string{
		"nothing":               "",
		"no mark":               text(at(12)),
		"half a line":           text(at(12), line{Through: 20})[:100],
		"a revision before":     text(at(10), line{Through: 20}),
		"a revision after":      text(at(21), line{Through: 20}),
		"another order":         text(at(14), at(12), line{Through: 20}),
		"more behind the mark":  text(line{Through: 20}, at(14)),
		"a mark that is old":    text(line{Through: 10}),
		"a mark that is new":    text(line{Through: 21}),
		"a mark before a line":  text(at(14), line{Through: 13}),
		"an empty line":         text(at(14)) + "{}\n" + text(line{Through: 20}),
		"something else":        "<html>",
		"a gap that is outside": text(line{Gap: &api.HistoryGap{After: 20, Until: 30}}, line{Through: 20}),
	} {
		t.Run(name, func(t *testing.T) {
			var logs logtest.Buffer
			l := opened(t, t.TempDir(), &clock{start}, func(o *Options) {
				o.Logger = slog.New(slog.NewTextHandler(&logs, nil))
				o.Others = func(context.Context, int64, int64) iter.Seq[[]byte] { return slices.Values([][]byte{[]byte(sent)}) }
			})
			appended(t, l, 10, at(2))
			_ = l.missed(t.Context(), 20) // says so
			entries, gaps := pages(t, l, Query{Limit: 5})
			if len(entries) != 1 || len(gaps) != 1 || gaps[0].After != 10 || gaps[0].Until != 20 || !strings.Contains(logs.String(), "cannot be used") {
				t.Errorf("%+v, gaps %+v\n%s", entries, gaps, logs.String())
			}
		})
	}
	if p, err := parsePart([]byte(text(at(12), at(12), at(20), line{Through: 20})), 10, 20); err != nil || len(p.lines) != 3 || !p.whole || p.through != 20 {
		t.Errorf("%+v, %v for what is right", p, err)
	}
}

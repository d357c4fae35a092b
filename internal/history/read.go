package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Query selects entries. The zero value of a field selects all.
type Query struct {
	Kinds           []api.Kind
	Namespace, Name string
	// Cluster selects what moved to it or from it.
	Cluster string
	// Since is included, Until is not.
	Since, Until time.Time
	// Visible reports whether the reader may see an object. Nil means all.
	Visible func(api.Key) bool
	// Before is where the previous page ended. The zero value is the end of the log.
	Before Cursor
	// Limit is the largest number of entries. It must be above 0.
	Limit int
}

const (
	// maxRead is how many files are read for one page at most, and maxPage how large about its
	// entries are in a file. What follows is on the next page.
	maxRead = 16
	maxPage = 8 << 20
)

// Page is a part of the log, the newest entries first.
type Page struct {
	Items []api.HistoryEntry
	Gaps  []api.HistoryGap
	// Next is where the next page begins; zero on the last one.
	Next Cursor
	// Since is the time of the oldest file; zero if there is none.
	Since time.Time
}

// slack is how much times of decisions may differ from the order of revisions: servers have clocks
// of their own.
const slack = time.Hour

// Read returns a page. A file that cannot be read is a gap in it.
func (l *Log) Read(query Query) Page {
	l.mu.RLock()
	files, through := slices.Clone(l.files), l.through
	l.mu.RUnlock()
	p := paging{query: query, page: Page{Items: []api.HistoryEntry{}}}
	if len(files) > 0 {
		p.page.Since = files[0].since
	}
	read := 0
	for n, f := range slices.Backward(files) {
		last := n+1 == len(files)
		switch {
		case query.Before != Cursor{} && f.first > query.Before.revision:
			continue
		case !query.Until.IsZero() && f.since.After(query.Until.Add(slack)):
			continue
		case !query.Since.IsZero() && !last && files[n+1].since.Add(slack).Before(query.Since):
			return p.page // nor is anything before it
		case read == maxRead:
			p.page.Next = Cursor{files[n+1].first, 0}
			return p.page
		}
		read++
		lines, err := l.read(f)
		if errors.Is(err, fs.ErrNotExist) {
			return p.page // deleted meanwhile, and what is before it as well
		}
		if err != nil {
			l.options.Logger.Error("a part of the history of decisions cannot be read", "file", f.name(), "error", err)
			until := through
			if !last {
				until = files[n+1].first - 1
			}
			p.gap(api.HistoryGap{After: f.first - 1, Until: until, Reason: fmt.Sprintf("the file %s is damaged", f.name())})
			continue
		}
		if p.lines(lines); p.page.Next != (Cursor{}) {
			return p.page
		}
	}
	return p.page
}

// read returns the lines of a file, which may have been sealed meanwhile.
func (l *Log) read(f file) ([][]byte, error) {
	lines, err := readFile(l.path(f.name()), f)
	if errors.Is(err, fs.ErrNotExist) && !f.sealed {
		f.sealed = true
		lines, err = readFile(l.path(f.name()), f)
	}
	return lines, err
}

// paging is a page in the making.
type paging struct {
	query Query
	page  Page
	bytes int
}

func (p *paging) gap(g api.HistoryGap) { p.page.Gaps = append(p.page.Gaps, g) }

// lines adds what the query selects of the lines of a file, until the page is full.
func (p *paging) lines(lines [][]byte) {
	lines = lines[:p.end(lines)]
	for n, text := range slices.Backward(lines) {
		if !p.mayMatch(text) {
			continue
		}
		l, damaged := decode(text)
		switch {
		case damaged != nil:
			p.gap(*damaged)
		case l.Gap != nil:
			p.gap(*l.Gap)
		case l.Entry == nil || !p.matches(l.Entry):
		case len(p.page.Items) == p.query.Limit || p.bytes > maxPage:
			p.page.Next = Cursor{l.Entry.Revision, ordinal(lines[:n], l.Entry.Revision) + 1}
			return
		default:
			p.bytes += len(text)
			l.Entry.Moved = api.Moves(l.Entry.Before, l.Entry.After)
			p.page.Items = append(p.page.Items, *l.Entry)
		}
	}
}

// decode returns a line, or the gap that a damaged one is.
func decode(text []byte) (l line, damaged *api.HistoryGap) {
	if err := json.Unmarshal(text, &l); err != nil {
		return line{}, &api.HistoryGap{Reason: "a line of the history is damaged"}
	}
	return l, nil
}

// end returns the number of lines that are before the cursor.
func (p *paging) end(lines [][]byte) int {
	before := p.query.Before
	if before == (Cursor{}) {
		return len(lines)
	}
	for n, text := range slices.Backward(lines) {
		l, _ := decode(text)
		if l.Entry == nil || l.Entry.Revision > before.revision {
			continue
		}
		if l.Entry.Revision < before.revision || ordinal(lines[:n], before.revision) < before.n {
			return n + 1
		}
	}
	return 0
}

// ordinal returns how many entries of a revision are at the end of some lines.
func ordinal(lines [][]byte, revision int64) (n int) {
	for _, text := range slices.Backward(lines) {
		switch l, _ := decode(text); {
		case l.Entry == nil:
			continue
		case l.Entry.Revision != revision:
			return n
		}
		n++
	}
	return n
}

// mayMatch reports whether a line may have what the query selects, so that few must be decoded. Names
// have no characters that JSON escapes.
func (p *paging) mayMatch(text []byte) bool {
	for _, name := range []string{p.query.Namespace, p.query.Name, p.query.Cluster} {
		if name != "" && !bytes.HasPrefix(text, []byte(`{"gap"`)) && !bytes.Contains(text, []byte(name)) {
			return false
		}
	}
	return true
}

func (p *paging) matches(e *api.HistoryEntry) bool {
	q := &p.query
	switch {
	case len(q.Kinds) > 0 && !slices.Contains(q.Kinds, e.Object.Kind):
	case q.Namespace != "" && q.Namespace != e.Object.Namespace:
	case q.Name != "" && q.Name != e.Object.Name:
	case !q.Since.IsZero() && e.Time.Before(q.Since):
	case !q.Until.IsZero() && !e.Time.Before(q.Until):
	case q.Visible != nil && !q.Visible(e.Object):
	case q.Cluster != "" && !slices.ContainsFunc(api.Moves(e.Before, e.After), func(m api.Move) bool { return m.From == q.Cluster || m.To == q.Cluster }):
	default:
		return true
	}
	return false
}

// String returns a cursor as a token.
func (c Cursor) String() string { return fmt.Sprintf("%d.%d", c.revision, c.n) }

// ParseCursor is the inverse of String; false for other texts.
func ParseCursor(token string) (c Cursor, ok bool) {
	revision, n, _ := strings.Cut(token, ".")
	var err error
	if c.revision, err = strconv.ParseInt(revision, 10, 64); err != nil {
		return Cursor{}, false
	}
	if c.n, err = strconv.Atoi(n); err != nil {
		return Cursor{}, false
	}
	return c, c.String() == token && c.revision > 0 && c.n >= 0
}

// After returns the revision of the first entry after a time, 0 if there is none. It is false if the log does not reach
// back that far, or if that is in more files than are read at once.
func (l *Log) After(at time.Time) (revision int64, known bool) {
	l.mu.RLock()
	files := slices.Clone(l.files)
	l.mu.RUnlock()
	for n, f := range slices.Backward(files) {
		if len(files)-n > maxRead {
			return 0, false
		}
		lines, err := l.read(f)
		if err != nil {
			return 0, false
		}
		for _, text := range slices.Backward(lines) {
			if l, _ := decode(text); l.Entry != nil && l.Entry.Time.After(at) {
				revision = l.Entry.Revision
			}
		}
		if f.since.Add(slack).Before(at) {
			return revision, true
		}
	}
	return revision, len(files) > 0 && !files[0].since.After(at)
}

package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

const (
	// defaultLimit is how many records a page has if the query has no limit.
	defaultLimit = 100
	// maxRead is how many chunks are decompressed for one page.
	maxRead = 50
)

// Read returns a page. A *GoneError says that After is no longer kept.
func (l *Log) Read(ctx context.Context, query Query) (Page, error) {
	if query.Limit <= 0 {
		query.Limit = defaultLimit
	}
	for tries := 0; ; tries++ {
		page, err := l.read(ctx, query)
		// While space is short, old revisions are not kept for as long as a page takes.
		if !errors.Is(err, store.ErrCompacted) || tries == 3 {
			return page, err
		}
	}
}

func (l *Log) read(ctx context.Context, query Query) (Page, error) {
	v, err := l.view(ctx, l.log)
	if err != nil {
		return Page{}, err
	}
	if !query.Newest && query.After != (Cursor{}) && query.After.Revision < v.span.Gone {
		return Page{}, v.gone()
	}
	p := &paging{query: query, page: Page{Revision: v.at, Items: []Item{}}}
	if query.Newest {
		p.values(backwards(v.hot))
	}
	for n := range v.chunks {
		i := &v.chunks[n]
		if query.Newest {
			i = &v.chunks[len(v.chunks)-1-n]
		}
		switch {
		case p.full():
		case !p.reaches(i):
			continue
		case !query.inChunk(i):
			p.passed(i)
			continue
		case p.read == maxRead:
			p.more = true
		}
		if p.full() {
			break
		}
		p.read++
		values, err := l.chunk(ctx, l.log, i.Number, v.at)
		switch {
		case isDamage(err):
			p.item(damagedChunk(i))
		case err != nil:
			return Page{}, err
		case query.Newest:
			p.values(backwards(values))
		default:
			p.values(values)
		}
		if !p.full() {
			p.passed(i)
		}
	}
	if !query.Newest && !p.full() {
		p.values(v.hot)
	}
	if p.full() {
		p.page.Next = p.at
	}
	return p.page, nil
}

// damagedChunk is what is read instead of a chunk.
func damagedChunk(i *index) Item {
	return Item{
		Cursor: Cursor{i.Last, math.MaxInt32},
		Gap:    &Gap{Since: i.First - 1, Reason: fmt.Sprintf("chunk %d of the history is damaged", i.Number), damaged: true},
	}
}

// gone says from where on a journal is kept.
func (v *view) gone() *GoneError {
	e := &GoneError{Kept: Cursor{v.span.Gone, math.MaxInt32}}
	switch {
	case len(v.chunks) > 0:
		e.Time = v.chunks[0].Since
	case len(v.hot) > 0:
		i := v.journal.index(0, v.hot[:1])
		e.Time = i.Since
	}
	return e
}

func backwards(values []value) []value {
	values = slices.Clone(values)
	slices.Reverse(values)
	return values
}

// paging is a page in the making.
type paging struct {
	query Query
	page  Page
	at    Cursor // up to where the log has been read
	read  int    // chunks
	more  bool   // the page is complete, and there may be more
}

func (p *paging) full() bool { return p.more }

// reaches reports whether a chunk has something after the cursor.
func (p *paging) reaches(i *index) bool {
	after := p.query.After
	switch {
	case after == Cursor{}:
		return true
	case p.query.Newest:
		return i.First <= after.Revision
	}
	return i.Last >= after.Revision
}

// passed says that a chunk has been read, or need not be.
func (p *paging) passed(i *index) {
	p.at = Cursor{i.Last, math.MaxInt32}
	if p.query.Newest {
		p.at = Cursor{i.First, 0}
	}
}

// values adds what the query selects of values, which are in the order of the page.
func (p *paging) values(values []value) {
	for _, v := range values {
		if p.more {
			return
		}
		items := itemsOf(v)
		if p.query.Newest {
			slices.Reverse(items)
		}
		for _, item := range items {
			if item.Gap != nil || p.query.selects(item.Record) {
				p.item(item)
			}
		}
	}
}

// itemsOf returns the records of a value, or a gap.
func itemsOf(v value) []Item {
	records, gap, err := store.HistoryRecords(v.data)
	switch {
	case err != nil:
		return []Item{{Cursor: Cursor{v.revision, 1}, Gap: &Gap{Since: v.revision - 1, Reason: "the records of this revision are damaged", damaged: true}}}
	case gap != nil:
		return []Item{{Cursor: Cursor{v.revision, 1}, Gap: &Gap{Since: gap.Since, Reason: "a server led that does not record decisions"}}}
	}
	items := make([]Item, len(records))
	for n, record := range records {
		items[n] = Item{Cursor: Cursor{v.revision, n + 1}, Record: record}
	}
	return items
}

// item adds an item that the query selects, if it is on the page.
func (p *paging) item(item Item) {
	after := p.query.After
	switch c := item.Cursor.Compare(after); {
	case p.more, after != Cursor{} && (c == 0 || c < 0 != p.query.Newest):
		return
	case len(p.page.Items) == p.query.Limit:
		p.more = true
		return
	}
	p.page.Items = append(p.page.Items, item)
	p.at = item.Cursor
}

// AtTime returns the revision of the last record at or before a time: the one to call Past with. A
// *GoneError says that nothing is kept from then.
func (l *Log) AtTime(ctx context.Context, at time.Time) (int64, error) {
	query := Query{Until: at.Add(1), Newest: true, Limit: 1}
	for {
		page, err := l.Read(ctx, query)
		if err != nil {
			return 0, err
		}
		for _, item := range page.Items {
			if item.Gap == nil {
				return item.Cursor.Revision, nil
			}
		}
		if page.Next == (Cursor{}) {
			break
		}
		query.After = page.Next
	}
	v, err := l.view(ctx, l.log)
	if err != nil {
		return 0, err
	}
	return 0, v.gone()
}

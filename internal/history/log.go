package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Store is what a log needs of the store: see *store.Store.
type Store interface {
	HistoryKey(prefix string) string
	ReadHistory(ctx context.Context, keys store.HistoryRange, limit int, at int64) ([]store.HistoryValue, int64, error)
	ChangeHistory(ctx context.Context, change store.HistoryChange) (int64, error)
	WatchHistory(ctx context.Context, prefix string, from int64) <-chan store.HistoryValue
	HistoryTakes(bytes int64)
	Leads() bool
}

// Options configures a log.
type Options struct {
	Store Store
	// Retention is how long records are kept. Zero turns the history off: nothing is recorded, and
	// what is kept is deleted.
	Retention time.Duration
	// Size is how many bytes the history may take: store.Options.HistoryBytes.
	Size int64
	// Logger receives messages. Nil discards them.
	Logger *slog.Logger
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Log is the history of a store. It is safe for concurrent use.
type Log struct {
	options     Options
	log, inputs *journal
	recorder    *recorder
	tail        *tail
	metrics     *metrics

	sealBytes int // tests have less
}

// New returns the log of a store.
func New(options Options) *Log {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	l := &Log{options: options, tail: newTail(), metrics: newMetrics(), sealBytes: sealBytes}
	l.log, l.inputs = newJournals()
	l.recorder = &recorder{log: l, due: make(chan checkpoint, 1)}
	return l
}

// Enabled reports whether decisions are recorded. If not, callers leave StatusWrite.History empty
// and need not call Record.
func (l *Log) Enabled() bool { return l.options.Retention > 0 && l.options.Size > 0 }

// tendInterval is how often the log is tended.
const tendInterval = 10 * time.Second

// Run seals and deletes old records while this server leads, and keeps count of what the history
// takes, until ctx is done.
func (l *Log) Run(ctx context.Context) error {
	var background sync.WaitGroup
	background.Go(func() { l.watch(ctx) })
	background.Go(func() { l.recorder.run(ctx) })
	defer background.Wait()
	ticker := time.NewTicker(tendInterval)
	defer ticker.Stop()
	for {
		l.tend(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// tend seals what is due, deletes what is too old, and looks what the history takes.
func (l *Log) tend(ctx context.Context) {
	if l.options.Store.Leads() {
		l.repeat(ctx, "seal", func() (bool, error) { return l.seal(ctx, l.log) })
		l.repeat(ctx, "seal", func() (bool, error) { return l.seal(ctx, l.inputs) })
		l.repeat(ctx, "retain", func() (bool, error) { return l.retain(ctx) })
	}
	if err := l.look(ctx); err != nil && ctx.Err() == nil {
		l.options.Logger.Debug("the size of the history is unknown", "error", err)
	}
}

// repeat repeats a step until it has nothing to do.
func (l *Log) repeat(ctx context.Context, step string, do func() (bool, error)) {
	for more := true; more && ctx.Err() == nil; {
		var err error
		more, err = do()
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, store.ErrFenced):
		default:
			l.metrics.failed(step)
			l.options.Logger.Warn("the history could not be tended; it is retried", "step", step, "error", err)
		}
		if err != nil {
			return
		}
	}
}

// look finds out what the history takes.
func (l *Log) look(ctx context.Context) error {
	v, err := l.view(ctx, l.log)
	if err != nil {
		return err
	}
	h, _, err := l.readHead(ctx, v.at)
	if err != nil {
		return err
	}
	l.options.Store.HistoryTakes(h.Log.Bytes + h.Inputs.Bytes)
	l.metrics.saw(h, v.chunks, len(v.hot), v.gone().Time)
	return nil
}

// Pass is what the decisions of one pass of the reconciler are made on.
type Pass struct {
	// Revision is that of the fleet.
	Revision int64
	// Time is for which the pass decides.
	Time time.Time
	// Changed are the parts of objects that have changed since the revision that Recorded returns:
	// with the Value that store.Codec.EncodeInputs makes of it, which has no secrets, or nil in the
	// Spec part if the object is gone. A status that was written together with a record which keeps
	// it may be left out: see Encode. If Recorded returned 0, these are all objects.
	Changed iter.Seq[store.Record]
	// Recorded is how many bytes the records have whose statuses are left out.
	Recorded int64
	// Keys are the keys of all objects, for the first pass of a term: it tells which of the recorded
	// ones are gone. Nil says that Changed has the deletions.
	Keys iter.Seq[api.Key]
	// All are both parts of all objects, as in Changed. A checkpoint is made of it in the
	// background, so it must remain usable after Record has returned.
	All iter.Seq[store.Record]
}

// Cursor is a position in the log: after the record with this number in the transaction with this
// revision. The zero value is the position before everything. As text, it is "revision.number".
type Cursor struct {
	Revision int64
	Number   int
}

// Compare returns -1 if c is before d, 0 if they are the same, and 1 otherwise.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.Revision, d.Revision), cmp.Compare(c.Number, d.Number))
}

// String returns the text of a cursor.
func (c Cursor) String() string { return fmt.Sprintf("%d.%d", c.Revision, c.Number) }

// ParseCursor is the inverse of String.
func ParseCursor(text string) (Cursor, error) {
	before, after, ok := strings.Cut(text, ".")
	revision, err := strconv.ParseInt(before, 10, 64)
	number, err2 := strconv.ParseInt(after, 10, 32)
	if !ok || err != nil || err2 != nil || revision < 0 || number < 0 {
		return Cursor{}, fmt.Errorf("%q is not a position in the history: it has the form revision.number, as the previous answer gave it", text)
	}
	return Cursor{revision, int(number)}, nil
}

// Item is one record, or a gap.
type Item struct {
	// Cursor is the position of the record. Its Revision is that of the decision.
	Cursor Cursor
	// Record is as it was given to the store; nil if this is a gap.
	Record []byte
	// Gap says that decisions after the revision Since and before Cursor.Revision may be missing: a
	// server led that records none, or a damaged part of the log was left out.
	Gap *Gap
}

// Gap is a part of the log in which decisions are missing.
type Gap struct {
	// Since is the last revision before the gap.
	Since int64
	// Reason says why, as a sentence without a full stop.
	Reason string

	damaged bool // records are lost that were written
}

// Query selects records. The zero value of a field selects all.
type Query struct {
	Kind      api.Kind
	Namespace string
	Name      string
	// Cluster selects what moved to it or from it, or was caused by it.
	Cluster string
	// Cause is the type of cause.
	Cause string
	// Since and Until select by time: Since included, Until not.
	Since, Until time.Time
	// Visible tells whether the caller may see decisions of an object. Nil: all.
	Visible func(api.Key) bool

	// Notices selects also what only notifications tell of.
	Notices bool

	// Newest reads from the newest record to the oldest.
	Newest bool
	// After is where the previous page ended.
	After Cursor
	// Limit is the maximum number of records. Zero means 100.
	Limit int
}

// Page is a part of what a query selects.
type Page struct {
	// Items are records and gaps.
	Items []Item
	// Next is where the next page begins; zero if this is the last one. A page may have fewer items
	// than the limit, or none, and still have a next one: a page reads a limited part of the log.
	Next Cursor
	// Revision is that of the store at which the page was read.
	Revision int64
}

// GoneError says that a part of the history is no longer kept.
type GoneError struct {
	// Kept is the position before the oldest that is kept. Time is its time; zero if nothing is kept.
	Kept Cursor
	Time time.Time
}

// Error implements error.
func (e *GoneError) Error() string {
	if e.Time.IsZero() {
		return "this part of the history is not kept: there is nothing that is"
	}
	return fmt.Sprintf("this part of the history is not kept: it is since %s, revision %d", e.Time.UTC().Format(time.RFC3339), e.Kept.Revision)
}

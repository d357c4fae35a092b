package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/wholefile"
)

// Options configures a log. All fields but Others and Logger are required.
type Options struct {
	// Dir is the directory of the files. It is created if it does not exist, and belongs to this log
	// alone.
	Dir   string
	Store Store
	// Others yields what each of the other servers on the store answers to Part. Nil if there are none.
	Others func(ctx context.Context, after, until int64) iter.Seq[[]byte]
	// Retention is how long entries are kept, and MaxBytes how much room the files take, about.
	Retention time.Duration
	MaxBytes  int64
	// Logger receives messages. Nil discards them.
	Logger *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// Log is the history of the decisions in a store, in files. It is safe for concurrent use.
type Log struct {
	options Options
	maxFile int64 // tests have smaller ones
	gaps    prometheus.Counter
	failed  prometheus.Counter

	mu sync.RWMutex
	// files are sorted. Lines are appended to the last one, if it is not sealed.
	files []file
	// through is the revision up to which the log is complete, and marked that of the last mark in
	// a file, which was written at markedAt.
	through, marked int64
	markedAt        time.Time
}

// Open opens the log in a directory.
func Open(options Options) (*Log, error) {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{
		options: options, maxFile: maxFile,
		gaps:   prometheus.NewCounter(prometheus.CounterOpts{Name: "scheduler_history_gaps_total", Help: "Gaps written to the history of decisions: changes that this server could not learn of."}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "scheduler_history_failures_total", Help: "Attempts to write the history of decisions that failed."}),
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open the history of decisions in %s: %w", options.Dir, err)
	}
	return l, nil
}

func (l *Log) open() error {
	if err := os.MkdirAll(l.options.Dir, 0o700); err != nil {
		return err
	}
	names, err := os.ReadDir(l.options.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, ok := parseName(name.Name())
		switch {
		case !ok && strings.HasPrefix(name.Name(), "."): // what was being compressed when the server was killed
			err = os.Remove(l.path(name.Name()))
		case ok:
			err = l.found(f, name)
		}
		if err != nil {
			return err
		}
	}
	if len(l.files) == 0 {
		return nil
	}
	return l.resume(&l.files[len(l.files)-1])
}

func (l *Log) path(name string) string { return filepath.Join(l.options.Dir, name) }

// found adds a file. In a directory, the compressed form of a file follows the other.
func (l *Log) found(f file, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	f.size = info.Size()
	if n := len(l.files); n > 0 && l.files[n-1].first == f.first {
		// The server was killed before it removed what it had compressed.
		err = os.Remove(l.path(l.files[n-1].name()))
		l.files = l.files[:n-1]
	}
	l.files = append(l.files, f)
	return err
}

// resume finds out up to where the log is complete. What is behind is overwritten.
func (l *Log) resume(last *file) error {
	if last.sealed {
		lines, err := readFile(l.path(last.name()), *last)
		if err == nil {
			_, l.through = complete(append(bytes.Join(lines, []byte{'\n'}), '\n'))
		}
		// If it is damaged, readers are told. What follows it is not known to be complete.
		l.through = max(l.through, last.first)
		l.marked = l.through
		return nil
	}
	text, err := os.ReadFile(l.path(last.name()))
	if err != nil {
		return l.setAside(last, err)
	}
	size, through := complete(text)
	if size == 0 {
		// Nothing in it is complete: it ends where the file before it does.
		if err := os.Remove(l.path(last.name())); err != nil {
			return err
		}
		if l.files = l.files[:len(l.files)-1]; len(l.files) == 0 {
			return nil
		}
		return l.resume(&l.files[len(l.files)-1])
	}
	last.size, l.through, l.marked = int64(size), through, through
	return nil
}

// setAside renames the newest file, which cannot be read. What it had is written again as far as the store or another
// server has it.
func (l *Log) setAside(last *file, cause error) error {
	aside := last.name() + ".unreadable"
	if err := os.Rename(l.path(last.name()), l.path(aside)); err != nil {
		return errors.Join(cause, err)
	}
	l.options.Logger.Error("the newest part of the history of decisions cannot be read", "file", aside, "error", cause)
	l.through, l.marked = last.first-1, last.first-1
	l.files = l.files[:len(l.files)-1]
	return nil
}

// append writes lines, in order, and says that the log is complete up to a revision.
func (l *Log) append(lines []line, through int64) error {
	now := l.options.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(lines) == 0 && (through <= l.marked || now.Sub(l.markedAt) < markInterval) {
		l.through = max(l.through, through)
		return nil
	}
	if err := l.write(lines, through, now); err != nil {
		l.failed.Inc()
		return fmt.Errorf("write the history of decisions to %s: %w", l.options.Dir, err)
	}
	for _, line := range lines {
		if line.Gap != nil && line.Gap.After > 0 { // what was before the first start is not missed
			l.gaps.Inc()
		}
	}
	l.through, l.marked, l.markedAt = through, through, now
	return nil
}

// markInterval is how long a server that was killed has to go back, at most, if nothing is decided.
const markInterval = time.Minute

// mark writes up to where the log is complete.
func (l *Log) mark() error {
	l.mu.Lock()
	l.markedAt = time.Time{}
	through := l.through
	l.mu.Unlock()
	return l.append(nil, through)
}

func (l *Log) write(lines []line, through int64, now time.Time) error {
	text, err := encodeLines(append(slices.Clip(lines), line{Through: through}))
	if err != nil {
		return err
	}
	last := l.last()
	// A file that has nothing but a mark is not sealed: the next one would have its name.
	if last != nil && last.first <= l.through && (last.size+int64(len(text)) > l.maxFile || now.Sub(last.since) > l.options.Retention/10) {
		if err := l.seal(last); err != nil {
			return err
		}
		last = nil
	}
	if last == nil {
		l.retain(now)
		l.files = append(l.files, file{first: l.through + 1, since: earliest(lines, now).UTC().Truncate(time.Second)})
		last = &l.files[len(l.files)-1]
	}
	if err := l.add(last, text); err != nil {
		if last.size == 0 {
			l.files = l.files[:len(l.files)-1]
		}
		return err
	}
	return nil
}

// earliest returns when the first of some lines was decided, or now: a server that was away writes later.
func earliest(lines []line, now time.Time) time.Time {
	for _, line := range lines {
		if line.Entry != nil && line.Entry.Time.Before(now) {
			now = line.Entry.Time
		}
	}
	return now
}

// last returns the file that lines are appended to, or nil.
func (l *Log) last() *file {
	if n := len(l.files); n > 0 && !l.files[n-1].sealed {
		return &l.files[n-1]
	}
	return nil
}

// add writes text behind what is complete in a file. It is not made durable: after a crash of the
// machine, the store still has it.
func (l *Log) add(f *file, text []byte) error {
	out, err := os.OpenFile(l.path(f.name()), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.Truncate(f.size); err != nil {
		return err
	}
	if _, err := out.WriteAt(text, f.size); err != nil {
		return err
	}
	f.size += int64(len(text))
	return out.Close()
}

// seal replaces a file by its compressed form.
func (l *Log) seal(f *file) error {
	path := l.path(f.name())
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	packed, err := compressed(text[:min(f.size, int64(len(text)))])
	if err != nil {
		return err
	}
	sealed := *f
	sealed.sealed, sealed.size = true, int64(len(packed))
	err = wholefile.Replace(l.path(sealed.name()), func(out *os.File) error {
		_, err := out.Write(packed)
		return err
	})
	if err != nil {
		return err
	}
	*f = sealed
	return os.Remove(path)
}

// retain deletes the oldest files, all of whose lines are too old, or that have no room.
func (l *Log) retain(now time.Time) {
	var bytes int64
	for _, f := range l.files {
		bytes += f.size
	}
	for len(l.files) > 0 {
		ended := l.options.Now()
		if len(l.files) > 1 {
			ended = l.files[1].since
		}
		if bytes <= l.options.MaxBytes && now.Sub(ended) < l.options.Retention {
			return
		}
		if err := os.Remove(l.path(l.files[0].name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.options.Logger.Warn("an old part of the history of decisions cannot be deleted", "file", l.files[0].name(), "error", err)
			return
		}
		bytes -= l.files[0].size
		l.files = slices.Clone(l.files[1:])
	}
}

// Collectors returns the metrics of the log. A nil log has none.
func (l *Log) Collectors() []prometheus.Collector {
	if l == nil {
		return nil
	}
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			l.mu.RLock()
			defer l.mu.RUnlock()
			return float64(value())
		})
	}
	return []prometheus.Collector{
		l.gaps, l.failed,
		gauge("scheduler_history_revision", "Store revision up to which this server has written the history of decisions.", func() int64 { return l.through }),
		gauge("scheduler_history_bytes", "Size of the files with the history of decisions.", func() (bytes int64) {
			for _, f := range l.files {
				bytes += f.size
			}
			return bytes
		}),
	}
}

// Cursor is a position in the log: before the n-th entry of a revision, counted from 0.
type Cursor struct {
	revision int64
	n        int
}

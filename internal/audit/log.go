package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/DeRuina/timberjack"
	"github.com/prometheus/client_golang/prometheus"
)

// Options configures a Log.
type Options struct {
	// File is the path of the log. It is created with mode 0600.
	File string
	// Output receives the lines if File is empty.
	Output io.Writer
	// MaxBytes is the size at which the file is renamed, with the time in its name, and another
	// one is begun. It is rounded up to MiB.
	MaxBytes int64
	// MaxFiles is how many of the renamed files are kept; the oldest are deleted.
	MaxFiles int
	// Required says that no write may happen without its line.
	Required bool
	// Server and Version are those of the first line.
	Server, Version string
	// Now is the clock.
	Now func() time.Time
}

// Log is an audit log. It may be used by several goroutines.
type Log struct {
	options Options
	failed  prometheus.Counter
	lines   prometheus.Counter

	mu  sync.Mutex // held while a line is written; nothing else is locked under it
	out io.Writer
	// torn says that the last line may have been written in part.
	torn bool
	err  error // of the last line
}

// mode is that of the file: it says who does what.
const mode os.FileMode = 0o600

// open opens the file of the log.
func (l *Log) open() error {
	path := l.options.File
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		l.out = l.rotated()
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular():
		l.out = l.rotated()
		l.torn, err = endsTorn(path)
		return err
	case info.Mode()&os.ModeCharDevice != 0:
		l.out, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0) // must never be renamed
		return err
	}
	return fmt.Errorf("%s is neither a regular file nor a device", path)
}

// rotated opens the file with the first write, and rotates it.
func (l *Log) rotated() io.WriteCloser {
	return &timberjack.Logger{
		Filename: l.options.File, FileMode: mode, MaxBackups: l.options.MaxFiles,
		MaxSize: int((l.options.MaxBytes + 1<<20 - 1) >> 20),
	}
}

// Open opens a log and writes its first line. The error says why it cannot be written.
func Open(options Options) (*Log, error) {
	l := &Log{
		options: options, out: options.Output,
		lines:  prometheus.NewCounter(prometheus.CounterOpts{Name: "scheduler_audit_lines_total", Help: "Lines written to the audit log."}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "scheduler_audit_failures_total", Help: "Lines that could not be written to the audit log."}),
	}
	if options.File != "" {
		if err := l.open(); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
	}
	if err := l.Write(Entry{Stage: StageStarted, Version: options.Version}); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// endsTorn reports whether a file ends within a line, as after a crash.
func endsTorn(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

// Required reports whether no write may happen without its line.
func (l *Log) Required() bool { return l != nil && l.options.Required }

// Write adds a line with the time and the server's name. A nil log has none.
func (l *Log) Write(e Entry) error {
	if l == nil {
		return nil
	}
	e.Time, e.Server = l.options.Now().UTC(), l.options.Server
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit log: %w", err) // of texts and numbers: does not happen
	}
	line = append(line, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow()
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.out.Write(line)
	l.torn = err != nil && (n > 0 || l.torn)
	l.err = err
	if err != nil {
		l.failed.Inc()
		l.err = fmt.Errorf("audit log: %w", err)
		return l.err
	}
	l.lines.Inc()
	return nil
}

// follow begins another file if this one was moved or deleted, as programs that rotate logs do.
// Otherwise lines would go to a file without a name. It must be called under mu.
func (l *Log) follow() {
	closer, ok := l.out.(io.Closer)
	if !ok || l.options.File == "" {
		return
	}
	if _, err := os.Stat(l.options.File); errors.Is(err, os.ErrNotExist) {
		_ = closer.Close() // of a file that is gone
		l.out, l.torn = l.rotated(), false
	}
}

// Check returns why lines cannot be written, or nil. If the last one could not, it tries another:
// a server that is not ready gets no requests that would try it.
func (l *Log) Check() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	err := l.err
	l.mu.Unlock()
	if err == nil {
		return nil
	}
	return l.Write(Entry{Stage: StageResumed})
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if closer, ok := l.out.(io.Closer); ok && l.options.File != "" {
		if err := closer.Close(); err != nil {
			return fmt.Errorf("close the audit log: %w", err)
		}
	}
	return nil
}

// Collectors returns the metrics of the log.
func (l *Log) Collectors() []prometheus.Collector {
	if l == nil {
		return nil
	}
	return []prometheus.Collector{l.lines, l.failed}
}

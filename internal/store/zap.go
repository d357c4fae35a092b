package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newZapLogger returns a logger for etcd that forwards warnings to logger. etcd terminates the
// process by logging at level fatal, in about 140 places; onFatal is called there instead, with the
// reason.
func newZapLogger(logger *slog.Logger, onFatal func(error)) *zap.Logger {
	hook := fatalHook{onFatal}
	return zap.New(&slogCore{logger: logger, fatal: hook}, zap.WithFatalHook(hook), zap.WithPanicHook(hook))
}

type fatalHook struct{ onFatal func(error) }

// OnWrite implements zapcore.CheckWriteHook. It must not return, because etcd relies on that: it
// may hold a mutex and its state is unknown.
func (h fatalHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	h.onFatal(entryError(entry.Message, fields))
	runtime.Goexit()
}

// entryError returns a log entry as an error: the message and the error in its fields.
func entryError(message string, fields []zapcore.Field) error {
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			return fmt.Errorf("%s: %w", message, err)
		}
	}
	return errors.New(message)
}

// slogCore is a zap core that writes entries of level warning and above to a slog logger.
type slogCore struct {
	logger *slog.Logger
	fields []zapcore.Field
	fatal  zapcore.CheckWriteHook
}

// Enabled implements zapcore.Core.
func (c *slogCore) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{c.logger, append(c.fields[:len(c.fields):len(c.fields)], fields...), c.fatal}
}

// groundless are warnings of etcd that do not apply here.
var groundless = map[string]bool{
	// A new member retries by itself until its database has been committed for the first time.
	"failed to update storage version": true,
	"Failed to detect schema version":  true,
	// The embedded member has no listener, and no users.
	"Running http and grpc server on single port. This is not recommended for production.": true,
	"simple token is not cryptographically signed":                                         true,
	// Consequences of a member stopping; the loss itself is logged separately.
	"closed TCP streaming connection with remote peer": true,
	"failed to find remote peer in cluster":            true,
	"server has stopped; skipping GoAttach":            true,
}

// campaignsTooEarly is how raft warns that a member which starts wants to lead before it has read which members there
// are. It tries again by itself.
const campaignsTooEarly = " since there are still pending configuration changes to apply"

// fatalWarnings are warnings after which etcd cannot continue but does not notice: its wal.Create
// then returns neither a log nor an error, and the first use of the log dereferences a nil pointer.
var fatalWarnings = map[string]bool{"failed to fsync the parent data directory file": true}

// Check implements zapcore.Core.
func (c *slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) || groundless[entry.Message] || strings.HasSuffix(entry.Message, campaignsTooEarly) {
		return checked
	}
	checked = checked.AddCore(entry, c)
	if fatalWarnings[entry.Message] {
		checked = checked.After(entry, c.fatal)
	}
	return checked
}

// Write implements zapcore.Core.
func (c *slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelWarn
	if entry.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range c.fields {
		field.AddTo(encoder)
	}
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && (errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled)) {
			return nil // it was canceled
		}
		field.AddTo(encoder)
	}
	attributes := make([]slog.Attr, 0, len(encoder.Fields)+1)
	attributes = append(attributes, slog.String("message", entry.Message))
	for name, value := range encoder.Fields {
		attributes = append(attributes, slog.Any(name, value))
	}
	c.logger.LogAttrs(context.Background(), level, "etcd reports a problem", attributes...)
	return nil
}

// Sync implements zapcore.Core.
func (c *slogCore) Sync() error { return nil }

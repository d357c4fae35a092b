package store

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"

	"go.uber.org/zap"
)

// lockedBuffer is a buffer that etcd's goroutines may write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A start without problems warns of none: a warning in the log is worth a look.
func TestAHealthyStartWarnsOfNothing(t *testing.T) {
	var logs lockedBuffer
	logger := slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	dir := t.TempDir()
	for range 2 { // new, and again
		s := open(t, func(o *Options) { o.DataDir, o.Logger = dir, logger })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := logs.String(); got != "" {
		t.Errorf("the log warns: %s", got)
	}
	newZapLogger(logger, func(error) {}).Warn("apply request took too long", zap.String("took", "3s"))
	if got := logs.String(); got == "" {
		t.Error("a warning with grounds is dropped, too")
	}
}

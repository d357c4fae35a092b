package store

import (
	"log/slog"
	"sync"
	"testing"

	"go.uber.org/zap"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

// A healthy start logs no warnings, so that every warning deserves attention.
func TestHealthyStartLogsNoWarnings(t *testing.T) {
	var logs logtest.Buffer
	logger := slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	dir := t.TempDir()
	for range 2 { // new, and again
		s := open(t, func(o *Options) { o.DataDir, o.Logger = dir, logger })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	newZapLogger(logger, func(error) {}).Warn("server has stopped; skipping GoAttach") // if it is closed soon enough
	newZapLogger(logger, func(error) {}).Warn("1a cannot campaign at term 2 since there are still pending configuration changes to apply")
	if got := logs.String(); got != "" {
		t.Errorf("an unfounded warning was logged: %s", got)
	}
	newZapLogger(logger, func(error) {}).Warn("apply request took too long", zap.String("took", "3s"))
	if got := logs.String(); got == "" {
		t.Error("a justified warning was dropped, too")
	}
}

// After this warning etcd goes on with a log that is nil: it is as fatal as what etcd
// ends the process for.
func TestAWarningThatIsFatal(t *testing.T) {
	var fatal error
	var returned bool
	var running sync.WaitGroup
	running.Go(func() {
		logger := newZapLogger(slog.New(slog.DiscardHandler), func(err error) { fatal = err }).With(zap.String("a", "b"))
		logger.Warn("failed to fsync the parent data directory file", zap.Error(nil))
		returned = true
	})
	running.Wait()
	if fatal == nil || returned {
		t.Errorf("returned: %v, reported %v", returned, fatal)
	}
}

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

func TestReloadTakesTheLevelFromTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log_level: warn\n")
	var c config
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.define(flags)
	if err := flags.Parse([]string{"--config", path, "--data-dir", "d"}); err != nil {
		t.Fatal(err)
	}
	nothing := func(string) string { return "" }
	if err := c.load(flags, nothing); err != nil {
		t.Fatal(err)
	}
	logs := &logtest.Buffer{}
	logger, level, err := newLogger(c, logs)
	if err != nil || level.Level() != slog.LevelWarn {
		t.Fatalf("level %s, %v", level.Level(), err)
	}
	write("log_level: debug\n")
	reload(flags, nothing, level, logger)
	if level.Level() != slog.LevelDebug {
		t.Fatalf("level %s", level.Level())
	}
	write("log_level: debug\nnonsense: 1\n")
	reload(flags, nothing, level, logger)
	if level.Level() != slog.LevelDebug || !strings.Contains(logs.String(), "was not reloaded") {
		t.Fatalf("level %s, log %s", level.Level(), logs)
	}

	// Command-line settings stay.
	if err := flags.Parse([]string{"--log-level", "error"}); err != nil {
		t.Fatal(err)
	}
	write("log_level: info\n")
	reload(flags, nothing, level, logger)
	if level.Level() != slog.LevelError {
		t.Fatalf("level %s", level.Level())
	}
}

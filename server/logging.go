package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// parseLevel accepts only the four plain levels; slog would also accept "info+3".
func parseLevel(text string) (slog.Level, error) {
	switch text {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log-level: %q is not one of debug, info, warn, error", text)
}

// newLogger returns the logger and its level, which may be changed while it is in use.
func newLogger(c config, w io.Writer) (*slog.Logger, *slog.LevelVar, error) {
	parsed, err := parseLevel(c.LogLevel)
	if err != nil {
		return nil, nil, err
	}
	level := &slog.LevelVar{}
	level.Set(parsed)
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: redacted}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if c.LogFormat == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(tracing.LogHandler(handler)), level, nil
}

// redacted returns a log attribute with misplaced secrets redacted.
func redacted(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		if text := api.Redact(a.Value.String()); text != a.Value.String() {
			a.Value = slog.StringValue(text)
		}
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(api.Redact(err.Error()))
		}
	default:
	}
	return a
}

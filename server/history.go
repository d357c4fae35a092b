package main

import (
	"cmp"
	"context"
	"iter"
	"net/url"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// checkHistory says what is wrong with the settings of the history.
func (c *config) checkHistory(wrong func(format string, args ...any)) {
	if c.HistoryRetention < 0 {
		wrong("history-retention: %s must not be negative", c.HistoryRetention)
	}
	if c.HistoryMaxSize <= 0 {
		wrong("history-max-size: %d must be above 0", c.HistoryMaxSize)
	}
}

// openHistory opens the history of decisions; it is nil if none is kept.
func (s *server) openHistory() (*history.Log, error) {
	c := &s.config
	dir := c.HistoryDir
	if c.DataDir != "" {
		dir = cmp.Or(dir, store.HistoryDir(c.DataDir))
	}
	if dir == "" || c.HistoryRetention == 0 {
		return nil, nil
	}
	options := history.Options{
		Dir: dir, Store: s.store, Retention: c.HistoryRetention, MaxBytes: int64(c.HistoryMaxSize), Logger: s.logger, Now: time.Now,
	}
	if s.leading.others() {
		options.Others = s.historyOfOthers
	}
	return history.Open(options)
}

// historyPatience is how long a server may take to answer.
const historyPatience = time.Minute

// historyOfOthers yields what each of the other servers has of a part of the history.
func (s *server) historyOfOthers(ctx context.Context, after, until int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		candidates, err := s.leading.candidates(ctx)
		if err != nil {
			s.logger.Warn("the other servers are not known, so this one cannot ask them for the history of decisions that it has missed", "error", err)
		}
		for _, c := range candidates {
			at, err := url.Parse(c.URL)
			if err != nil || s.store.Is(c) {
				continue
			}
			patience, cancel := context.WithTimeout(ctx, historyPatience)
			text, err := httpapi.FetchHistoryPart(patience, s.leading.transport, s.codec, at, after, until)
			cancel()
			if err != nil {
				s.logger.Warn("another server cannot be asked for its history of decisions", "server", c.Name, "error", err)
				continue
			}
			if !yield(text) {
				return
			}
		}
	}
}

package main

import (
	"log/slog"
	"sync"
	"time"
)

// quietStart is how long a start may take before it logs what it is doing, and the interval at
// which it repeats that.
const quietStart = 3 * time.Second

// starting logs what a slow start is doing.
type starting struct {
	logger *slog.Logger
	began  time.Time
	timer  *time.Timer

	mu    sync.Mutex
	phase string // guarded by mu
	ended bool   // guarded by mu
}

// beginStarting begins a start; end ends it.
func beginStarting(logger *slog.Logger) *starting {
	s := &starting{logger: logger, began: time.Now()}
	s.mu.Lock() // the timer may fire before its field is set
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(quietStart, s.say)
	return s
}

// doing sets what the start is doing now, as in "loading the objects".
func (s *starting) doing(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phase
}

// end ends the start; nothing more is logged.
func (s *starting) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.timer.Stop()
}

func (s *starting) say() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.logger.Warn("the server is still starting", "doing", s.phase, "seconds", int(time.Since(s.began).Seconds()))
	notifySystemd(s.logger, "STATUS="+s.phase, extendTimeout(systemdPatience))
	s.timer.Reset(quietStart)
}

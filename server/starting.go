package main

import (
	"log/slog"
	"sync"
	"time"
)

// quietStart is how long a start may take before it says what it is doing, and
// how long until it says so again.
const quietStart = 3 * time.Second

// starting tells what a start that takes long is doing, so that none is silent.
type starting struct {
	logger *slog.Logger
	began  time.Time
	timer  *time.Timer

	mu    sync.Mutex
	phase string // guarded by mu
	ended bool   // guarded by mu
}

// beginStarting begins a start; ended says when it is over.
func beginStarting(logger *slog.Logger) *starting {
	s := &starting{logger: logger, began: time.Now()}
	s.mu.Lock() // the timer may fire before its field is set
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(quietStart, s.say)
	return s
}

// doing says what the start does from now on, as in "loading the objects".
func (s *starting) doing(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phase
}

// end ends the start; nothing is said any more.
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
	s.timer.Reset(quietStart)
}

package serve

import (
	"context"
	"sync"
	"time"
)

const (
	// pauseCheck is the interval in which a running process notices that it runs.
	pauseCheck = 100 * time.Millisecond
	// pauseAtLeast is the gap from which on a process counts as paused. Clients that give up
	// sooner are not protected; on a busy machine, shorter gaps are common.
	pauseAtLeast = 500 * time.Millisecond
	// pauseSettle is how long after a pause it takes to read what has arrived meanwhile: that a
	// client has closed its connection is read after its request.
	pauseSettle = 250 * time.Millisecond
)

// Pauses notices when the process has not run for a while: it was stopped (SIGSTOP), its virtual
// machine was suspended, or it got no CPU.
//
// Requests that arrived meanwhile are read afterwards, although their clients may have given up,
// repeated them through another server, and written more since. Carried out now, such a write would
// undo what was acknowledged later. Therefore writes after a pause wait until the server knows
// which clients are still there.
//
// The zero value is ready for use.
type Pauses struct {
	clock func() time.Time // nil = time.Now; set by tests

	mu      sync.Mutex // nothing is locked under it
	last    time.Time  // when the process was last known to run
	resumed time.Time  // end of the last pause
}

// Run notices pauses until ctx is done.
func (p *Pauses) Run(ctx context.Context) {
	ticker := time.NewTicker(pauseCheck)
	defer ticker.Stop()
	p.begin()
	for {
		select {
		case <-ticker.C:
			p.remaining()
		case <-ctx.Done():
			p.end()
			return
		}
	}
}

// begin starts the observation: before, gaps mean nothing.
func (p *Pauses) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = p.now()
}

func (p *Pauses) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Time{}
}

func (p *Pauses) now() time.Time {
	if p.clock != nil {
		return p.clock()
	}
	return time.Now()
}

// remaining returns how long writes must still wait.
func (p *Pauses) remaining() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.IsZero() {
		return 0 // not observed
	}
	now := p.now()
	// The monotonic clock of a virtual machine may stand still while it is suspended; the other
	// one may be set back.
	gap := max(now.Sub(p.last), now.Round(0).Sub(p.last.Round(0)))
	p.last = now
	if gap >= pauseAtLeast {
		p.resumed = now
	}
	return pauseSettle - now.Sub(p.resumed)
}

// Wait returns when a request may be carried out, or the error of its context: the client has gone
// away. Without a pause it returns at once.
func (p *Pauses) Wait(ctx context.Context) error {
	for {
		remaining := p.remaining()
		if remaining <= 0 {
			return ctx.Err()
		}
		select {
		case <-time.After(remaining):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

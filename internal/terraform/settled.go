package terraform

import (
	"context"
	"sync"
	"time"
)

const (
	// longestSettling bounds how long an apply waits for what else it writes.
	longestSettling = 10 * time.Second
	// pauseTime is how long nothing must have been written for it to be over. It is
	// only waited for where something was written beside a decision.
	pauseTime = 500 * time.Millisecond
	// startTime is how long an apply takes to begin with all that waits for nothing. A
	// decision that is made sooner may be the first of several writes.
	startTime = 300 * time.Millisecond
)

// changes are the writes of this run that move the decisions of others. The zero
// value has seen none.
type changes struct {
	mu      sync.Mutex
	begun   int
	running int
	last    time.Time // when the latest ended
	first   time.Time // when the run began to write anything
}

// begin says that an object which moves others is being written; the function it
// returns that it has been.
func (c *changes) begin() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start()
	c.begun++
	c.running++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		c.last = time.Now()
	}
}

func (c *changes) start() {
	if c.first.IsZero() {
		c.first = time.Now()
	}
}

// mark is a moment among the changes: those that were running then count as later.
func (c *changes) mark() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start()
	return c.begun - c.running
}

// standing says how many changes there are since a mark, and how long to wait at
// least until they may be over; 0 = they are.
func (c *changes) standing(mark int) (since int, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since = c.begun - mark
	switch {
	case c.running > 0 && since > 0:
		return since, pauseTime
	case since == 0 && !c.first.IsZero():
		return 0, max(startTime-time.Since(c.first), 0)
	}
	return since, max(pauseTime-time.Since(c.last), 0)
}

// settled waits until the changes since a mark are over, for a while at most, and
// reports whether there were any. A decision that was made meanwhile was made over
// half of what the same apply writes, where nothing makes it wait for the rest.
func (c *changes) settled(ctx context.Context, mark int) bool {
	ctx, cancel := context.WithTimeout(ctx, longestSettling)
	defer cancel()
	for {
		since, wait := c.standing(mark)
		if wait == 0 {
			return since > 0
		}
		select {
		case <-ctx.Done():
			return true
		case <-time.After(wait):
		}
	}
}

package terraform

import (
	"context"
	"sync"
	"time"
)

const (
	// longestSettling limits how long an apply waits for its other writes.
	longestSettling = 10 * time.Second
	// pauseTime is how long there must be no writes for them to count as finished. An apply waits
	// for it only if there were other writes besides the decision.
	pauseTime = 500 * time.Millisecond
	// startTime is how long an apply takes to start all operations without dependencies. A decision
	// made earlier may be the first of several writes.
	startTime = 300 * time.Millisecond
)

// changes tracks the writes of this run that affect decisions of other objects. The zero value is
// empty.
type changes struct {
	mu      sync.Mutex
	begun   int
	running int
	last    time.Time // when the last one ended
	first   time.Time // when the first write of the run began
}

// begin records the start of a write that affects others; end records its end.
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

// mark returns a position among the changes; running ones count as later.
func (c *changes) mark() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start()
	return c.begun - c.running
}

// standing returns the number of changes since a mark, and how long to wait until they may be
// finished; 0 = they are.
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

// settled waits until the changes since a mark are finished, for a limited time, and reports
// whether there were any. A decision made in the meantime was based on only part of what the apply
// writes, unless dependencies order them.
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

package store

import (
	"slices"
	"sync"
)

// proof says that at some time the store held nothing newer than a revision.
type proof struct{ at, revision int64 }

// maxProofs is how many proofs wait for the picture in memory to reach them. It
// is many only while the watch is behind.
const maxProofs = 64

// currency knows since when the store has possibly been ahead of what somebody
// has read of it. Times are those of the guard's clock.
type currency struct {
	mu sync.Mutex
	// pending are in the order of their times and revisions.
	pending []proof
	// current is the newest time of a proof that a reader has reached.
	current int64
}

// prove notes that a question asked at a time was answered with a revision: what
// was acknowledged before that time is part of it.
func (c *currency) prove(at, revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.pending); n > 0 {
		switch last := &c.pending[n-1]; {
		case revision < last.revision || at < last.at:
			return // answers may overtake each other
		case revision == last.revision:
			last.at = at
			return
		}
	}
	if len(c.pending) == maxProofs {
		// Every other one is enough for a reader that is far behind.
		kept := c.pending[:0]
		for i := 1; i < maxProofs; i += 2 {
			kept = append(kept, c.pending[i])
		}
		c.pending = kept
	}
	c.pending = append(c.pending, proof{at, revision})
}

// provenAt is the newest time at which the store is known to have held nothing
// newer than a revision.
func (c *currency) provenAt(revision int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	reached := 0
	for reached < len(c.pending) && c.pending[reached].revision <= revision {
		c.current = max(c.current, c.pending[reached].at)
		reached++
	}
	// The newest one that was reached stays: the same revision is proven again as
	// long as nothing changes.
	if reached > 1 {
		c.pending = slices.Delete(c.pending, 0, reached-1)
	}
	return c.current
}

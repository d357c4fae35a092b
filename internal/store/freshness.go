package store

import (
	"slices"
	"sync"
)

// proof says that the store had nothing newer than a revision at some time.
type proof struct{ at, revision int64 }

// maxProofs is the maximum number of proofs that wait for the in-memory copy to reach them. There
// are many only while the watch is behind.
const maxProofs = 64

// freshness tracks how long the store may have been ahead of a reader. Times are those of the
// guard's clock.
type freshness struct {
	mu sync.Mutex
	// pending is ordered by time and revision.
	pending []proof
	// current is the latest time of a proof that a reader has reached.
	current int64
}

// prove records that a request sent at a time was answered with a revision, which therefore
// includes everything acknowledged before that time.
func (c *freshness) prove(at, revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.pending); n > 0 {
		switch last := &c.pending[n-1]; {
		case revision < last.revision || at < last.at:
			return // responses may overtake each other
		case revision == last.revision:
			last.at = at
			return
		}
	}
	if len(c.pending) == maxProofs {
		// For a reader that is far behind, every other proof is enough.
		kept := c.pending[:0]
		for i := 1; i < maxProofs; i += 2 {
			kept = append(kept, c.pending[i])
		}
		c.pending = kept
	}
	c.pending = append(c.pending, proof{at, revision})
}

// provenAt returns the latest time at which the store is known to have had nothing newer than a
// revision.
func (c *freshness) provenAt(revision int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	reached := 0
	for reached < len(c.pending) && c.pending[reached].revision <= revision {
		c.current = max(c.current, c.pending[reached].at)
		reached++
	}
	// Keep the newest reached proof: the same revision is proven repeatedly while nothing changes.
	if reached > 1 {
		c.pending = slices.Delete(c.pending, 0, reached-1)
	}
	return c.current
}

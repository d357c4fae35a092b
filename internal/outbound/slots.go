package outbound

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// dialTimeout is how long connecting may take, the wait for a slot included.
const dialTimeout = 10 * time.Second

// slots are the connections that all Dialers of the process may have open at once.
// There is one number of them for the process, as there is for the file descriptors
// that they take.
type slots struct {
	free  *semaphore.Weighted // nil = there is no limit
	total int
	taken atomic.Int64
}

// process are the slots of this process. There is no limit until one is set.
var process atomic.Pointer[slots]

func init() { process.Store(&slots{}) }

// LimitConnections bounds how many connections all Dialers of this process may have
// open at once, from now on. Who wants one more waits until one is closed, and fails
// when that takes too long.
func LimitConnections(n int) {
	process.Store(&slots{free: semaphore.NewWeighted(int64(n)), total: n})
}

// Collectors are the metrics of the connections of the process.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scheduler_outbound_connections", Help: "Open connections of the server's own, to metrics providers, clusters and clouds.",
		}, func() float64 { return float64(process.Load().taken.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scheduler_outbound_connections_limit", Help: "How many of them may be open at once, by the limit of open files.",
		}, func() float64 { return float64(process.Load().total) }),
	}
}

// errNoSlot is the error of who waited for a slot in vain.
const errNoSlot = Error("the server has as many connections of its own open as its limit of open files allows: raise it (ulimit -n, LimitNOFILE=)")

// held is a slot that is taken.
type held struct {
	of   *slots
	once sync.Once
}

// take takes a slot, waiting until ctx ends.
func take(ctx context.Context) (*held, error) {
	s := process.Load()
	if s.free != nil {
		if err := s.free.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoSlot, err)
		}
	}
	s.taken.Add(1)
	return &held{of: s}, nil
}

// release gives the slot back, once.
func (h *held) release() {
	h.once.Do(func() {
		h.of.taken.Add(-1)
		if h.of.free != nil {
			h.of.free.Release(1)
		}
	})
}

// slotted is a connection that gives its slot back when it is closed.
type slotted struct {
	net.Conn
	slot *held
}

// Close implements net.Conn.
func (c *slotted) Close() error {
	defer c.slot.release()
	return c.Conn.Close()
}

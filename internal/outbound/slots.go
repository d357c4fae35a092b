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

// dialTimeout is the timeout of connecting, including the wait for a slot.
const dialTimeout = 10 * time.Second

// slots limits the open connections of all Dialers. There is one limit for the process, as for the
// file descriptors that they use.
type slots struct {
	free  *semaphore.Weighted // nil = no limit
	total int
	taken atomic.Int64
}

// process holds the slots of this process. There is no limit until one is set.
var process atomic.Pointer[slots]

func init() { process.Store(&slots{}) }

// LimitConnections limits the number of open connections of all Dialers in this process from now
// on. Further ones wait until a connection is closed, and fail if that takes too long.
func LimitConnections(n int) {
	process.Store(&slots{free: semaphore.NewWeighted(int64(n)), total: n})
}

// Collectors returns the metrics of the process's connections.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scheduler_outbound_connections", Help: "Open outbound connections to metrics providers, clusters and clouds.",
		}, func() float64 { return float64(process.Load().taken.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scheduler_outbound_connections_limit", Help: "Largest number of open outbound connections, which follows from the limit of open files.",
		}, func() float64 { return float64(process.Load().total) }),
	}
}

// errNoSlot is returned if no slot became free in time.
const errNoSlot = Error("the server has reached the number of outbound connections that its limit of open files allows: raise it (ulimit -n, LimitNOFILE=)")

// held is an acquired slot.
type held struct {
	of   *slots
	once sync.Once
}

// take acquires a slot, waiting until ctx is done.
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

// release releases the slot once.
func (h *held) release() {
	h.once.Do(func() {
		h.of.taken.Add(-1)
		if h.of.free != nil {
			h.of.free.Release(1)
		}
	})
}

// slotted is a connection that releases its slot when it is closed.
type slotted struct {
	net.Conn
	slot *held
}

// Close implements net.Conn.
func (c *slotted) Close() error {
	defer c.slot.release()
	return c.Conn.Close()
}

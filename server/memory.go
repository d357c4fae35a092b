package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// An idle server returns memory to the operating system, which the runtime itself does only over
// many minutes: after the first decisions of a large fleet most of the heap is free.
const (
	restInterval = 10 * time.Second
	// restBytes is the maximum that an idle server allocates in an interval.
	restBytes = 16 << 20
	// leastGiven is the minimum amount that is worth returning. Returning memory costs a garbage
	// collection, so half of the memory in use must also have been allocated since the last time:
	// collections of an idle server are then at most twice as frequent.
	leastGiven = 64 << 20
	// Garbage may equal the memory in use, which is the runtime's default, up to muchGarbage. Beyond,
	// it may be half as much as the memory in use: the first decisions of a large fleet must fit as
	// well. GOGC takes precedence.
	usualPercent = 100
	leastPercent = 50
	muchGarbage  = 448 << 20
	heapInterval = time.Second
	// What a server reads when it starts stays in memory. From largeHeap on, garbage is then limited
	// to what a restart needs to take little more memory than the objects.
	startPercent  = 15
	largeHeap     = 128 << 20
	startInterval = 100 * time.Millisecond
)

// garbagePercent returns the GOGC percentage for an amount of live memory.
func garbagePercent(live uint64, started bool) int {
	switch {
	case !started && live >= largeHeap:
		return startPercent
	case live <= muchGarbage:
		return usualPercent
	}
	return max(leastPercent, int(100*muchGarbage/live))
}

// boundMemory limits garbage, and returns free memory to the operating system whenever the server
// becomes idle, until ctx is done. ready is closed when the server has started.
func boundMemory(ctx context.Context, ready <-chan struct{}) error {
	var r rest
	percent, started := usualPercent, false
	resting, growing := time.NewTicker(restInterval), time.NewTicker(startInterval)
	defer resting.Stop()
	defer growing.Stop()
	limit := func() {
		if now := garbagePercent(readMemory().live, started); now != percent && os.Getenv("GOGC") == "" {
			percent = now
			debug.SetGCPercent(percent)
		}
	}
	for {
		select {
		case <-resting.C:
			if r.begins(readMemory()) {
				debug.FreeOSMemory()
			}
		case <-ready:
			ready, started = nil, true
			growing.Reset(heapInterval)
			limit()
		case <-growing.C:
			limit()
		case <-ctx.Done():
			return nil
		}
	}
}

// memory holds statistics of the runtime, in bytes.
type memory struct {
	allocated uint64 // since the start
	live      uint64 // at the last collection
	heap      uint64 // in use, garbage or free
}

func readMemory() memory {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return memory{samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64() + samples[3].Value.Uint64()}
}

// rest detects when the server becomes idle.
type rest struct {
	allocated uint64 // at the last check
	given     uint64 // allocated when memory was last returned
}

// begins reports, from one check to the next, whether to return memory: little is being allocated
// now, and enough was since the last time.
func (r *rest) begins(now memory) bool {
	quiet := now.allocated-r.allocated <= restBytes
	r.allocated = now.allocated
	if !quiet || now.allocated-r.given < max(leastGiven, now.live/2) || now.heap < now.live+leastGiven {
		return false
	}
	r.given = now.allocated
	return true
}

package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A server at rest gives memory back to the system, which the runtime by itself does
// over many minutes: after the first decisions of a large fleet most of what it holds
// is free.
const (
	restInterval = 10 * time.Second
	// restBytes is how much a server at rest allocates in an interval at most.
	restBytes = 16 << 20
	// leastGiven is how much it has to be worth. Giving back costs a collection, so
	// half of what is in use has to be allocated since the last time, too: collections of
	// a server with little to do come at most twice as often then.
	leastGiven = 64 << 20
	// Garbage may be as much as what is in use, which is the runtime's own rule, until
	// largeHeap is in use, and half as much from then on: the first decisions of a large
	// fleet have to fit beside it. That costs collections, which a small server is spared.
	// GOGC goes before.
	largeHeap    = 128 << 20
	usualPercent = 100
	largePercent = 50
	heapInterval = time.Second
)

// garbagePercent is how much garbage there may be beside what is in use.
func garbagePercent(live uint64) int {
	if live >= largeHeap {
		return largePercent
	}
	return usualPercent
}

// boundMemory keeps garbage in bounds, and returns what is free to the system whenever
// the server has come to rest, until ctx ends.
func boundMemory(ctx context.Context) error {
	var r rest
	percent := usualPercent
	resting, growing := time.NewTicker(restInterval), time.NewTicker(heapInterval)
	defer resting.Stop()
	defer growing.Stop()
	for {
		select {
		case <-resting.C:
			if r.begins(readMemory()) {
				debug.FreeOSMemory()
			}
		case <-growing.C:
			if now := garbagePercent(readMemory().live); now != percent && os.Getenv("GOGC") == "" {
				percent = now
				debug.SetGCPercent(percent)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// memory is what the runtime says of its memory, in bytes.
type memory struct {
	allocated uint64 // since the start
	live      uint64 // by the last collection
	heap      uint64 // that the process has: in use, dead or free
}

func readMemory() memory {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return memory{samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64() + samples[3].Value.Uint64()}
}

// rest tells when the server comes to rest.
type rest struct {
	allocated uint64 // at the last look
	given     uint64 // how much was allocated when memory was given back last
}

// begins reports, from one look to the next, whether memory is to be given back: little
// is allocated, and enough was since the last time.
func (r *rest) begins(now memory) bool {
	quiet := now.allocated-r.allocated <= restBytes
	r.allocated = now.allocated
	if !quiet || now.allocated-r.given < max(leastGiven, now.live/2) || now.heap < now.live+leastGiven {
		return false
	}
	r.given = now.allocated
	return true
}

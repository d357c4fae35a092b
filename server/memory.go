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
	// garbagePercent is how much garbage there may be beside what is in use. Nearly all
	// memory of a server is what it knows of its fleet, so less than the runtime's 100:
	// the first decisions of a large fleet have to fit beside it. GOGC goes before.
	garbagePercent = 50
)

// collectMemory has the garbage of the server collected before it is as much as what is
// in use.
func collectMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

// giveBackMemory returns what is free to the system whenever the server has come to
// rest, until ctx ends.
func giveBackMemory(ctx context.Context) error {
	var r rest
	ticker := time.NewTicker(restInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		if r.begins(readMemory()) {
			debug.FreeOSMemory()
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

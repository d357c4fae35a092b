package main

import (
	"runtime/debug"
	"testing"
)

func TestMemoryIsGivenBackAtRest(t *testing.T) {
	const mebi = 1 << 20
	for _, tt := range []struct {
		name string
		// readings of the server's memory, of which the last is decided on
		looks []memory
		want  bool
	}{
		{"at rest after much work", []memory{{1000 * mebi, 300 * mebi, 900 * mebi}, {1001 * mebi, 300 * mebi, 900 * mebi}}, true},
		{"busy", []memory{{1000 * mebi, 300 * mebi, 900 * mebi}, {1100 * mebi, 300 * mebi, 900 * mebi}}, false},
		{"released already", []memory{{1000 * mebi, 300 * mebi, 900 * mebi}, {1001 * mebi, 300 * mebi, 900 * mebi}, {1002 * mebi, 300 * mebi, 900 * mebi}}, false},
		{"a fifth is free", []memory{{1000 * mebi, 300 * mebi, 375 * mebi}, {1001 * mebi, 300 * mebi, 375 * mebi}}, true},
		{"little memory is free", []memory{{1000 * mebi, 300 * mebi, 350 * mebi}, {1001 * mebi, 300 * mebi, 350 * mebi}}, false},
		{"small process", []memory{{100 * mebi, 10 * mebi, 60 * mebi}, {101 * mebi, 10 * mebi, 60 * mebi}}, false},
		{"first reading", []memory{{1000 * mebi, 300 * mebi, 900 * mebi}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r rest
			got := false
			for _, now := range tt.looks {
				got = r.begins(now)
			}
			if got != tt.want {
				t.Errorf("released = %v, want %v", got, tt.want)
			}
		})
	}
}

// A small server is spared the collections that a large one needs to fit.
func TestInvalidRequestsBesideALargeFleet(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 100 << 20: 100, 128 << 20: 50, 8 << 30: 50} {
		if got := garbagePercent(live); got != want {
			t.Errorf("beside %d MiB there may be %d %% of garbage, want %d", live>>20, got, want)
		}
	}
}

// Memory that the runtime reports as free is returned to the system.
func TestReadMemory(t *testing.T) {
	garbage = make([]byte, 256<<20)
	clear(garbage)
	before := readMemory()
	if before.allocated < 256<<20 || before.heap < 256<<20 {
		t.Fatalf("readMemory() = %+v with 256 MiB allocated", before)
	}
	garbage = nil
	debug.FreeOSMemory()
	if after := readMemory(); after.heap > before.heap-200<<20 || after.live > after.heap+1<<20 { // the two readings are not from the same time
		t.Errorf("readMemory() = %+v, previously %+v", after, before)
	}
}

var garbage []byte

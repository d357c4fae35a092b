// Package cputime measures the CPU time of benchmarks, including garbage collection: wall time on a
// shared machine means little. It is test code.
package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Used returns the user and system time of the process so far.
func Used(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Measure runs op as a benchmark and reports its CPU time and allocations.
func Measure(b *testing.B, op func()) {
	b.Helper()
	b.ReportAllocs()
	before := Used(b)
	for b.Loop() {
		op()
	}
	b.ReportMetric(float64(Used(b)-before)/float64(b.N), "cpu-ns/op")
}

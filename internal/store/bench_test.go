package store

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// measure runs fn as the measured part of a benchmark, and reports the rate and the CPU time per operation.
func measure(b *testing.B, what string, count func() int, fn func()) {
	began := cputime.Used(b)
	b.ResetTimer()
	fn()
	b.StopTimer()
	n := float64(count())
	b.ReportMetric(n/b.Elapsed().Seconds(), what+"/s")
	b.ReportMetric(float64(cputime.Used(b)-began)/n, "cpu-ns/"+what)
}

func durable(o *Options) { o.NoFsync = false }

// BenchmarkCommit64Writers measures durable single writes of 1 KiB from 64 clients.
func BenchmarkCommit64Writers(b *testing.B) {
	s := open(b, durable)
	value := bytes.Repeat([]byte("v"), 1024)
	measure(b, "write", func() int { return b.N }, func() {
		var wg sync.WaitGroup
		var n atomic.Int64
		for range 64 {
			wg.Go(func() {
				for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
					if _, err := s.Commit(context.Background(), Write{Key: placement(int(i) % 10000), Value: value, Expect: Any}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// BenchmarkCommitSingle measures one client that waits for each durable write.
func BenchmarkCommitSingle(b *testing.B) {
	s := open(b, durable)
	value := bytes.Repeat([]byte("v"), 1024)
	measure(b, "write", func() int { return b.N }, func() {
		for i := range b.N {
			if _, err := s.Commit(context.Background(), Write{Key: placement(i % 10000), Value: value, Expect: Any}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDeriveBatched measures durable decisions of 300 bytes, each guarded by the revision of its spec, 2,000 in a
// call.
func BenchmarkDeriveBatched(b *testing.B) {
	s := open(b, durable)
	const batch = 2000
	writes := statuses(fill(b, s, batch), string(bytes.Repeat([]byte("v"), 300)))
	measure(b, "decision", func() int { return b.N * batch }, func() {
		for range b.N {
			if _, err := s.Derive(context.Background(), writes); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBatcher measures the same from 64 goroutines with one decision each.
func BenchmarkBatcher(b *testing.B) {
	s := open(b, durable)
	batcher := runBatcher(b, s)
	const writers = 64
	writes := statuses(fill(b, s, writers), string(bytes.Repeat([]byte("v"), 300)))
	measure(b, "decision", func() int { return b.N }, func() {
		var wg sync.WaitGroup
		var n atomic.Int64
		for w := range writers {
			wg.Go(func() {
				for n.Add(1) <= int64(b.N) {
					if _, err := batcher.Submit(context.Background(), writes[w]); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// BenchmarkRead measures linearizable reads of both parts of an object.
func BenchmarkRead(b *testing.B) {
	s := open(b)
	writes := statuses(fill(b, s, 1000), "status")
	if _, err := s.Derive(context.Background(), writes); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		if _, _, err := s.Read(context.Background(), placement(i%1000)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen measures the time from an empty directory to the first durable write.
func BenchmarkOpen(b *testing.B) {
	for n := range b.N {
		s, err := Open(context.Background(), Options{DataDir: fmt.Sprintf("%s/%d", b.TempDir(), n)})
		if err != nil {
			b.Fatal(err)
		}
		put(b, s, placement(1), "v")
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

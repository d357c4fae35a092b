package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// BenchmarkPutPlacement writes placements from 64 clients at once. Decisions
// settle at once here, so this is what the path itself costs: HTTP, checks,
// durable compare-and-set in the store, and the fleet seeing the write.
func BenchmarkPutPlacement(b *testing.B) {
	s := startServerOn(b, store.Options{DataDir: b.TempDir()})
	putPlacements(b, s, func(answer) bool { return true })
}

// putPlacements writes b.N placements from 64 clients and checks every answer.
func putPlacements(b *testing.B, s *testServer, good func(answer) bool) {
	const clients = 64
	var n, failed atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for {
				i := n.Add(1)
				if i > int64(b.N) {
					return
				}
				a, err := s.try(context.Background(), http.MethodPut, fmt.Sprintf("/v1/namespaces/shop/placements/p%d", i%1000),
					fmt.Sprintf(`{"spec":{"number_of_clusters":%d,"label_constraints":["location is DE"]}}`, 1+i/1000%3))
				if err != nil || a.StatusCode >= 300 || !good(a) {
					failed.Add(1)
				}
			}
		})
	}
	running.Wait()
	b.StopTimer()
	if failed.Load() > 0 {
		b.Errorf("%d of %d writes failed", failed.Load(), b.N)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkGetPlacement reads one placement from 64 clients at once.
func BenchmarkGetPlacement(b *testing.B) {
	s := startServer(b)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if a, err := s.try(context.Background(), http.MethodGet, "/v1/namespaces/shop/placements/web", ""); err != nil || a.StatusCode != 200 {
				b.Errorf("%v %d", err, a.StatusCode)
				return
			}
		}
	})
}

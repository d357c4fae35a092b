package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// BenchmarkPutPlacement writes placements from 64 clients at once. Decisions are immediate, so that it measures the
// request path: HTTP, checks, a durable compare-and-set in the store, and the fleet seeing the write.
func BenchmarkPutPlacement(b *testing.B) {
	s := startServerOn(b, store.Options{DataDir: b.TempDir()})
	putPlacements(b, s, func(answer) bool { return true })
}

// putPlacements writes b.N placements from 64 clients and checks every response.
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

// BenchmarkRenewScore does what 10,000 agents do: each extends the expiry of its cluster's scores, and waits for the
// response. Decisions, signals and fsync are real, and a placement ranks by the scores.
func BenchmarkRenewScore(b *testing.B) {
	const clusters, clients = 10_000, 64
	s := startEndToEnd(b, store.Options{DataDir: b.TempDir()})
	score := func(i, second int) (path, body string) {
		valid := time.Now().Add(time.Hour + time.Duration(second)*time.Second).UTC().Format(time.RFC3339)
		return fmt.Sprintf("/v1/clusters/c%05d/placement-scores/load", i), fmt.Sprintf(`{"spec":{"scores":{"cpu":%d,"memory":%d},"valid_until":%q}}`, i%100, i%37, valid)
	}
	inParallel(b, clients, clusters, func(i int) (string, string) {
		return fmt.Sprintf("/v1/clusters/c%05d?wait=0s", i), `{"spec":{}}`
	}, s)
	inParallel(b, clients, clusters, func(i int) (string, string) {
		path, body := score(i, 0)
		return path + "?wait=0s", body
	}, s)
	s.mustPut("/v1/namespaces/shop/placements/web?wait=60s", `{"spec":{"number_of_clusters":10,"strategy":"prioritizers","prioritizer_policy":{"mode":"exact","configurations":[
		{"type":"addon","resource_name":"load","score_name":"cpu","weight":1}]}}}`)
	cpu := cputime.Used(b)
	b.ReportAllocs()
	b.ResetTimer()
	inParallel(b, clients, b.N, func(i int) (string, string) { return score(i%clusters, 1+i/clusters) }, s)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64((cputime.Used(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/request")
}

// inParallel sends n writes from several clients and checks every response.
func inParallel(b *testing.B, clients, n int, request func(i int) (path, body string), s *testServer) {
	b.Helper()
	var next, failed atomic.Int64
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				path, body := request(i)
				if a, err := s.try(context.Background(), http.MethodPut, path, body); err != nil || a.StatusCode >= 300 {
					failed.Add(1)
				}
			}
		})
	}
	running.Wait()
	if failed.Load() > 0 {
		b.Errorf("%d of %d writes failed", failed.Load(), n)
	}
}

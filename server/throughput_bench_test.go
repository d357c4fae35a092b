package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// benchmarkServer starts a server with a fleet of rated clusters.
func benchmarkServer(b *testing.B, clusters int) *runningServer {
	b.Helper()
	c := testConfig(b.TempDir())
	c.LogLevel = "error"
	s := start(b, c)
	values := map[string]float64{}
	for i := range clusters {
		values[fmt.Sprintf("m%d", i)] = float64(i % 90)
	}
	put(s, staticProvider("rates", values))
	for i := range clusters {
		name := fmt.Sprintf("m%d", i)
		put(s, metric(name, "rates", name))
		put(s, cluster("c"+strconv.Itoa(i), name))
	}
	return s
}

// BenchmarkPlacementWrites writes placements from many clients. Each response contains the durable decision. The
// results include the clients, which run in the same process.
func BenchmarkPlacementWrites(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s := benchmarkServer(b, 100)
			var next, failed atomic.Int64
			done := make(chan struct{})
			cpu := cputime.Used(b)
			b.ResetTimer()
			for range clients {
				go func() {
					defer func() { done <- struct{}{} }()
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						p := placement("shop", fmt.Sprintf("p%d", n))
						p.SetDefaults()
						stored, err := s.client.Put(context.Background(), p, client.PutOptions{})
						if err != nil || stored.(*api.Placement).Status.ObservedGeneration != 1 {
							failed.Add(1)
						}
					}
				}()
			}
			for range clients {
				<-done
			}
			b.StopTimer()
			if n := failed.Load(); n > 0 {
				b.Fatalf("%d of %d writes failed or were not decided", n, b.N)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			b.ReportMetric((cputime.Used(b)-cpu).Seconds()/float64(b.N)*1e6, "cpu-µs/op")
		})
	}
}

// BenchmarkMetricChangeToWatch measures the time from writing a metric's value until a watch delivers the resulting
// decision, with a thousand placements that do not depend on the metric.
func BenchmarkMetricChangeToWatch(b *testing.B) {
	s := benchmarkServer(b, 100)
	for i := range 1000 {
		p := placement("others", fmt.Sprintf("p%d", i))
		p.SetDefaults()
		if _, err := s.client.Put(b.Context(), p, client.PutOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	put(s, staticProvider("watched", map[string]float64{"left": 10, "right": 20}))
	for _, side := range []string{"left", "right"} {
		put(s, metric(side, "watched", side))
		c := cluster(side, side)
		c.Metadata.Labels = map[string]string{"side": side}
		put(s, c)
	}
	p := placement("shop", "watched")
	p.Spec.LabelConstraints, p.Spec.Metrics = []string{"side in (left, right)"}, &api.MetricsStrategy{Stickiness: number(0.0)}
	put(s, p)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	moved := make(chan string, 16)
	go func() {
		defer close(moved)
		for event, err := range s.client.Watch(ctx, "", api.KindPlacement) {
			if err != nil {
				return
			}
			if p := event.Object.(*api.Placement); p.Metadata.Name == "watched" && len(p.Status.Clusters) == 1 {
				moved <- p.Status.Clusters[0]
			}
		}
	}()
	time.Sleep(100 * time.Millisecond) //nolint:forbidigo // nothing shows that the watch is open
	took := make([]time.Duration, 0, b.N)
	for i := range b.N {
		want, values := "left", map[string]float64{"left": 30, "right": 20}
		if i%2 == 1 {
			want, values = "right", map[string]float64{"left": 10, "right": 20}
		}
		provider := staticProvider("watched", values)
		provider.SetDefaults()
		began := time.Now()
		if _, err := s.client.Put(b.Context(), provider, client.PutOptions{Wait: number(time.Duration(0))}); err != nil {
			b.Fatal(err)
		}
		for at := range moved {
			if at == want {
				break
			}
		}
		took = append(took, time.Since(began))
	}
	b.StopTimer()
	cancel()
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
}

//go:build integration

package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// fleetSizes are the sizes in the growth chart.
var fleetSizes = []fleetSize{
	{clusters: 10_000, placements: 25_000},
	{clusters: 10_000, placements: 100_000},
	{clusters: 10_000, placements: 300_000},
	{clusters: 100_000, placements: 1_000_000},
}

// BenchmarkGrowth reports what the built server needs as a fleet grows: CPU and memory
// until every decision of a new fleet is made and durable, for a restart, and for a list
// of all placements. "make growth" draws its figures.
//
//	go test -tags integration -run '^$' -bench 'Growth/placements=25000$' -benchtime 1x -timeout 60m ./integration
func BenchmarkGrowth(b *testing.B) {
	for _, size := range fleetSizes {
		b.Run(fmt.Sprintf("clusters=%d/placements=%d", size.clusters, size.placements), func(b *testing.B) {
			for b.Loop() {
				measureGrowth(b, size)
			}
		})
	}
}

func measureGrowth(b *testing.B, size fleetSize) {
	dir := b.TempDir()
	loadFleet(b, dir, size)
	report := func(when string, p *process) {
		b.ReportMetric(p.figure(b, "process_cpu_seconds_total"), when+"-cpu-s")
		for what, bytes := range p.memories() {
			if what == "peak" || what == "rest" {
				b.ReportMetric(bytes/(1<<20), when+"-"+what+"-MiB")
			}
		}
	}
	p := startServer(b, dir, "--log-level", "error")
	eventually.Within(b, time.Hour, "every placement is decided", func() bool {
		return p.figure(b, `scheduler_decisions_total{result="moved"}`) == float64(size.placements)
	})
	report("first-pass", p)
	b.ReportMetric(p.figure(b, "scheduler_store_in_use_bytes")/(1<<20), "database-MiB")
	p.stop()

	began := time.Now()
	p = startServer(b, dir, "--log-level", "error")
	b.ReportMetric(time.Since(began).Seconds(), "restart-s")
	report("restart", p)
	before := p.figure(b, "process_cpu_seconds_total")
	listed := 0
	for _, err := range p.client.List(context.Background(), api.KindPlacement, client.ListOptions{}) {
		if err != nil {
			b.Fatal(err)
		}
		listed++
	}
	if listed != size.placements {
		b.Fatalf("%d placements listed", listed)
	}
	b.ReportMetric(p.figure(b, "process_cpu_seconds_total")-before, "list-cpu-s")
	b.ReportMetric(0, "ns/op")
	p.stop()
}

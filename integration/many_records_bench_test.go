//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// The objects of BenchmarkManyRecords: once everything is decided each has a spec
// and a status, which makes 1,040,000 records.
const (
	manyClusters   = 20_000
	manyPlacements = 500_000
)

// BenchmarkManyRecords reports what the start of the built server costs with
// 1,040,000 records in its store. Target: 30 CPU seconds until it is ready.
//
//	go test -tags integration -run '^$' -bench ManyRecords -benchtime 1x -timeout 60m ./integration
func BenchmarkManyRecords(b *testing.B) {
	dir := b.TempDir()
	load := newLoader(b, dir)
	for i := range manyClusters {
		load.write(cluster(fmt.Sprintf("c%d", i), fmt.Sprintf("g%d", i%20)), false)
	}
	for i := range manyPlacements {
		p := placement(fmt.Sprintf("p%d", i), fmt.Sprintf("g%d", i%20))
		p.Metadata.Namespace = fmt.Sprintf("team-%d", i%100)
		load.write(p, false)
	}
	load.close()
	p := startServer(b, dir, "--log-level", "error")
	eventually.Within(b, 30*time.Minute, "every placement is decided", func() bool {
		return p.figure(b, `scheduler_decisions_total{result="moved"}`) == manyPlacements
	})
	p.stop()
	b.ResetTimer()
	for b.Loop() {
		p = startServer(b, dir, "--log-level", "error")
		b.ReportMetric(p.figure(b, "process_cpu_seconds_total"), "cpu-s/start")
		b.ReportMetric(p.figure(b, "process_resident_memory_bytes")/(1<<20), "resident-MiB")
		p.stop()
	}
}

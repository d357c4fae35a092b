//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// BenchmarkLargePage reports how the page does on 10,000 clusters and 100,000 placements, in a real browser: CPU time of the
// first view, the longest task, the time from the arrival of an event to the frame that shows it, and the memory while things
// move for UI_CHURN seconds.
//
//	UI_CHURN=1800 go test -tags integration -run '^$' -bench LargePage -benchtime 1x -timeout 60m ./internal/integration
func BenchmarkLargePage(b *testing.B) {
	dir := b.TempDir()
	loadFleet(b, dir, largeFleet)
	p := startServer(b, dir, "--log-level", "error")
	eventually.Within(b, 10*time.Minute, "every placement is decided", func() bool {
		return p.figure(b, `scheduler_decisions_total{result="moved"}`) == float64(largeFleet.placements)
	})
	p.putWatched()
	b.ResetTimer()
	out, err := p.node(nil, "test/browser/large.js")
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		var name string
		var value float64
		if _, err := fmt.Sscan(line, &name, &value); err != nil {
			b.Fatalf("%q: %v", line, err)
		}
		b.ReportMetric(value, name)
	}
}

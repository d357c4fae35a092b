//go:build integration

package integration

import (
	"fmt"
	"testing"
)

// BenchmarkPageChurn has a browser look at the page for b.N minutes, while decisions move all the time, and prints the
// memory of the page in each. It fails if that grows. Target: flat over an hour.
//
//	go test -tags integration -run '^$' -bench PageChurn -benchtime 60x -timeout 90m ./integration
func BenchmarkPageChurn(b *testing.B) {
	const clusters, placements = 200, 1000
	p := startServer(b, b.TempDir(), "--log-level", "error")
	values := map[string]float64{}
	for i := range clusters {
		values[fmt.Sprintf("c%d", i)] = float64(i % 101)
	}
	put(p, staticProvider("static", values))
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		put(p, metric(name, "static", name, "exclude"))
		put(p, cluster(name, fmt.Sprintf("g%d", i%20), name))
	}
	for i := range placements {
		put(p, placement(fmt.Sprintf("p%d", i), fmt.Sprintf("g%d", i%20)))
	}
	b.ResetTimer()
	p.browse("churn.js", fmt.Sprintf("UI_MINUTES=%d", b.N), fmt.Sprintf("UI_CLUSTERS=%d", clusters))
}

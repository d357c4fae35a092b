package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// BenchmarkHeldByBudget has 10,000 placements wait for a budget of which one more move is left in each
// pass.
func BenchmarkHeldByBudget(b *testing.B) {
	const placements = 10_000
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, budget("", "1", "1m"))
	value := [2]float64{0.9, 0.1}
	turn := func() {
		for i := range 2 {
			w.write(p, metric(fmt.Sprint("m", i), value[i]))
		}
		value[0], value[1] = value[1], value[0]
	}
	for i := range 2 {
		w.write(p, cluster(fmt.Sprint("c", i), nil, api.MetricRef{Name: fmt.Sprint("m", i), Weight: ptr(1.0)}))
	}
	turn()
	for i := range placements {
		w.write(p, newPlacement(fmt.Sprintf("p%05d", i), 1))
	}
	now := epoch
	p.pass(now)
	turn()
	p.pass(now)
	moved := 0
	for b.Loop() {
		now = now.Add(time.Minute)
		for _, write := range p.pass(now) {
			if write.moved {
				moved++
			}
		}
		if p.waits.held[api.HeldByBudget] < placements/2 {
			b.StopTimer()
			w.remove(p, key(api.KindMoveBudget, "", "slowly"))
			p.pass(now)
			w.write(p, budget("", "1", "1m"))
			turn()
			p.pass(now)
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(moved)/float64(b.N), "moves/op")
}

package reconcile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/cputime"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/jsonform"
)

// BenchmarkEverythingMoves gives every cluster's metric another value, which moves most of 20,000 placements, and encodes what
// is written: without causes and records, and with them. Target (issue 18): at most 5 % of the throughput of decisions,
// which is 30,000/s.
func BenchmarkEverythingMoves(b *testing.B) {
	for _, told := range []bool{false, true} {
		b.Run(fmt.Sprintf("told=%v", told), func(b *testing.B) {
			w, p := benchWorld(b, 2_000, 20_000, 2_000)
			p.tells = told
			w.stored(p, p.pass(epoch))
			random := rand.New(rand.NewPCG(3, 4))
			moved := 0
			b.ReportAllocs()
			b.ResetTimer()
			var used int64
			for b.Loop() {
				b.StopTimer()
				for i := range 2_000 {
					w.write(p, metric(fmt.Sprintf("m-c%05d", i), random.Float64()))
				}
				b.StartTimer()
				begin := cputime.Used(b)
				writes := p.pass(epoch)
				for _, write := range writes {
					value, err := jsonform.Marshal(write.verdict())
					if err != nil {
						b.Fatal(err)
					}
					move := write.queued().move
					if move == nil {
						continue
					}
					moved++
					if _, _, err := history.Encode(w.objects[write.key()], write.result(), history.Move{Time: move.at, Cause: move.cause, Margin: move.margin}, value); err != nil {
						b.Fatal(err)
					}
				}
				used += int64(cputime.Used(b) - begin)
				b.StopTimer()
				for _, write := range writes {
					write.queued().move = nil
				}
				w.stored(p, writes)
				p.pass(epoch)
				b.StartTimer()
			}
			b.ReportMetric(float64(used)/float64(b.N)/20_000, "cpu-ns/placement")
			b.ReportMetric(float64(moved)/float64(b.N), "moved/op")
		})
	}
}

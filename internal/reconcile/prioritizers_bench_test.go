package reconcile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// rankedWorld is benchWorld with a placement score for every cluster, by which every placement ranks. With the additive
// mode, placements also count each other's decisions.
func rankedWorld(b *testing.B, clusters, placements, selectors int, mode api.PrioritizerMode) (*world, *planner) {
	b.Helper()
	w, p := benchWorld(b, clusters, 0, selectors)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range clusters {
		w.write(p, newScore(fmt.Sprintf("c%05d", i), random.Int64N(201)-100, epoch.Add(time.Hour)))
	}
	for i := range placements {
		n := i % selectors
		w.write(p, newPlacement(fmt.Sprintf("p%06d", i), 3, byScore, func(s *api.PlacementSpec) {
			s.PrioritizerPolicy.Mode = mode
			s.LabelConstraints = []string{
				fmt.Sprintf("region in (r%d, r%d, r%d)", n%20, (n+7)%20, (n+13)%20),
				fmt.Sprintf("rack != k%d", n/20),
			}
		}))
	}
	return w, p
}

// BenchmarkRankedPass makes the first decisions of 100,000 placements that rank 10,000 clusters by a score, and then
// decides all of them again. Target of the second: at most 1 s.
func BenchmarkRankedPass(b *testing.B) {
	for _, mode := range []api.PrioritizerMode{api.ModeExact, api.ModeAdditive} {
		_, p := rankedWorld(b, 10_000, 100_000, 2_000, mode)
		begin, used := time.Now(), cputime.Used(b)
		p.pass(epoch)
		b.Logf("%s: the first pass took %s (CPU %s)", mode, time.Since(begin).Round(time.Millisecond), (cputime.Used(b) - used).Round(time.Millisecond))
		b.Run(string(mode), func(b *testing.B) {
			b.ReportAllocs()
			begin := cputime.Used(b)
			for b.Loop() {
				for _, placed := range p.placer.placements {
					p.queue.mark(placed)
				}
				p.pass(epoch)
			}
			b.ReportMetric(float64(cputime.Used(b)-begin)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkOneScore changes the score of one cluster among 10,000, with 100,000 placements that rank by it. Target
// (for a metric): at most 1 ms to find and decide again what it affects.
func BenchmarkOneScore(b *testing.B) {
	for _, mode := range []api.PrioritizerMode{api.ModeExact, api.ModeAdditive} {
		w, p := rankedWorld(b, 10_000, 100_000, 2_000, mode)
		p.pass(epoch)
		random := rand.New(rand.NewPCG(3, 4))
		b.Run(string(mode), func(b *testing.B) {
			written := 0
			var took []time.Duration
			b.ReportAllocs()
			begin := cputime.Used(b)
			for b.Loop() {
				name := fmt.Sprintf("c%05d", random.IntN(10_000))
				was := w.objects[api.Key{Kind: api.KindPlacementScore, Namespace: name, Name: "s"}].(*api.PlacementScore).Spec.Scores["a"]
				w.write(p, newScore(name, min(max(was+random.Int64N(7)-3, -100), 100), epoch.Add(time.Hour)))
				start := time.Now()
				written += len(p.pass(epoch))
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "p50-ns/op")
			b.ReportMetric(float64(cputime.Used(b)-begin)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(written)/float64(b.N), "decisions/op")
		})
	}
}

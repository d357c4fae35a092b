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

// benchWorld creates 100,000 placements on 10,000 clusters, with 2,000 different selectors, and a metric for each
// cluster.
func benchWorld(b *testing.B, clusters, placements, selectors int) (*world, *planner) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	for i := range clusters {
		name := fmt.Sprintf("c%05d", i)
		w.write(p, metric("m-"+name, random.Float64()))
		w.write(p, cluster(name, map[string]string{
			"region": fmt.Sprintf("r%d", random.IntN(20)),
			"tier":   fmt.Sprintf("t%d", random.IntN(10)),
			"rack":   fmt.Sprintf("k%d", random.IntN(100)),
			"vendor": fmt.Sprintf("v%d", random.IntN(3)),
		}, api.MetricRef{Name: "m-" + name}))
	}
	for i := range placements {
		n := i % selectors
		w.write(p, newPlacement(fmt.Sprintf("p%06d", i), 3, func(s *api.PlacementSpec) {
			s.LabelConstraints = []string{
				fmt.Sprintf("region in (r%d, r%d, r%d)", n%20, (n+7)%20, (n+13)%20),
				fmt.Sprintf("rack != k%d", n/20),
			}
		}))
	}
	return w, p
}

// BenchmarkFullPass decides every placement again. Target: at most 1 s for 100,000 placements on
// 10,000 clusters.
func BenchmarkFullPass(b *testing.B) {
	_, p := benchWorld(b, 10_000, 100_000, 2_000)
	p.pass(epoch)
	b.ReportAllocs()
	begin := cputime.Used(b)
	for b.Loop() {
		for _, placed := range p.placer.placements {
			p.queue.mark(placed)
		}
		p.pass(epoch)
	}
	b.ReportMetric(float64(cputime.Used(b)-begin)/float64(b.N), "cpu-ns/op")
}

// BenchmarkFirstPass builds the fleet and makes every first decision.
func BenchmarkFirstPass(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		_, p := benchWorld(b, 10_000, 100_000, 2_000)
		b.StartTimer()
		p.pass(epoch)
	}
}

// BenchmarkOneMetric changes the metric of one cluster among 10,000, with 100,000 placements. Target: at most
// 1 ms to find and decide again what it affects. "drift" changes the metric by up to 2 %, as live values do. "jump" sets any value, which sometimes makes a cluster the best of all and moves thousands of placements at once.
func BenchmarkOneMetric(b *testing.B) {
	for _, selectors := range []int{100, 2_000, 10_000} {
		for _, change := range []string{"drift", "jump"} {
			b.Run(fmt.Sprintf("selectors=%d/%s", selectors, change), func(b *testing.B) {
				w, p := benchWorld(b, 10_000, 100_000, selectors)
				p.pass(epoch)
				random := rand.New(rand.NewPCG(3, 4))
				written := 0
				var took []time.Duration
				b.ReportAllocs()
				b.ResetTimer()
				begin := cputime.Used(b)
				for b.Loop() {
					key := api.Key{Kind: api.KindMetric, Name: fmt.Sprintf("m-c%05d", random.IntN(10_000))}
					value := random.Float64()
					if was, ok := w.objects[key].(*api.Metric); ok && change == "drift" {
						value = min(max(*was.Status.Value+(value-0.5)*0.04, 0), 1)
					}
					w.write(p, metric(key.Name, value))
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
}

// BenchmarkWaiting changes one metric while placements of 100 classes wait for a cluster. It is either a metric that
// one of 10,000 clusters lists, or the one that they all wait for, which a thousand list. Target:
// 0.4 ms.
func BenchmarkWaiting(b *testing.B) {
	for _, change := range []string{"own", "shared"} {
		b.Run(change, func(b *testing.B) {
			w, p := newWorld(), newPlanner(discard())
			w.write(p, provider())
			w.write(p, metric("shared", 0.5))
			for i := range 10_000 {
				name := fmt.Sprintf("c%05d", i)
				refs := []api.MetricRef{{Name: "m-" + name}}
				if i%10 == 0 {
					refs = append(refs, api.MetricRef{Name: "shared"})
				}
				w.write(p, metric("m-"+name, 0.5))
				w.write(p, cluster(name, map[string]string{"region": fmt.Sprintf("r%d", i%20)}, refs...))
			}
			for i := range 1_000 {
				w.write(p, newPlacement(fmt.Sprintf("p%06d", i), 3, func(s *api.PlacementSpec) {
					s.LabelConstraints = []string{fmt.Sprintf("region != r%d", i%20)}
					s.MetricConstraints = []string{fmt.Sprintf("shared > 1.%d", i%100)}
				}))
			}
			p.pass(epoch)
			if n := len(p.placer.classes.of); n != 100 {
				b.Fatalf("%d classes, want 100", n)
			}
			random, name := rand.New(rand.NewPCG(3, 4)), ""
			written := 0
			b.ReportAllocs()
			begin := cputime.Used(b)
			for b.Loop() {
				if name = "shared"; change == "own" {
					name = fmt.Sprintf("m-c%05d", random.IntN(1_000)*10)
				}
				w.write(p, metric(name, random.Float64()))
				written += len(p.pass(epoch))
			}
			b.ReportMetric(float64(cputime.Used(b)-begin)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(written)/float64(b.N), "decisions/op")
		})
	}
}

// BenchmarkTimedViews runs passes in which nothing has changed, with 20,000 classes whose tolerations will expire.
// Target: no cost per class.
func BenchmarkTimedViews(b *testing.B) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	c := cluster("c1", nil)
	c.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelect}}
	c.Status.Taints = []api.ClusterTaint{{Key: "k", Effect: api.EffectNoSelect, TimeAdded: &epoch}}
	w.write(p, c)
	for i := range 20_000 {
		w.write(p, newPlacement(fmt.Sprintf("p%06d", i), 1, func(s *api.PlacementSpec) {
			s.Tolerations = []api.Toleration{{Key: "k", Operator: api.TolerationExists, TolerationSeconds: ptr(int64(1_000 + i))}}
		}))
	}
	p.pass(epoch)
	if n := len(p.placer.classes.of); n != 20_000 {
		b.Fatalf("%d classes, want 20,000", n)
	}
	cputime.Measure(b, func() {
		p.pass(epoch)
		p.nextAt()
	})
}

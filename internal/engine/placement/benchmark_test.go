package placement

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// The benchmarks report process CPU time per operation (cpu-ns/op, garbage
// collection included) beside wall time, because wall time on a shared machine
// says little. Targets, for 10,000 clusters:
//
//	Decide warm     10 µs, 10 allocations; the same where all are equal
//	Decide cold     10 ms, from raw objects
//	Explain         50 µs
//	With            part of "one cluster's metric changes: 1 ms to find and
//	                re-make what it affects"

// benchWorld creates a fleet of n clusters with six labels and four of 40 metrics each, so that scores differ. Plain
// clusters have no metrics.
func benchWorld(n int, plain bool) *enginetest.World {
	w := enginetest.NewWorld()
	for i := range 40 {
		w.Gauge(fmt.Sprintf("m%02d", i), 0, 1, float64(i*17%40)/40)
	}
	for i := range n {
		name := fmt.Sprintf("cluster%06d", i)
		c := w.Cluster(name, nil)
		hash := int(columns.HashText(name) >> 1)
		c.Metadata.Labels = map[string]string{
			"env":    []string{"prod", "prod", "prod", "prod", "test"}[hash%5], // prod: 80 %
			"region": fmt.Sprintf("r%d", hash/5%8),
			"tier":   []string{"gold", "silver", "bronze"}[hash/40%3],
			"arch":   []string{"amd64", "amd64", "amd64", "amd64", "arm64"}[hash/120%5], // amd64: 80 %
			"team":   fmt.Sprintf("team%d", hash/600%50),
			"host":   name,
		}
		if plain {
			continue
		}
		for k := range 4 {
			weight := 1 + float64(hash/7%100*(k+1))/100
			c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: fmt.Sprintf("m%02d", (hash/13+k*11)%40), Weight: &weight})
		}
		c.Spec.Allocatable = api.Quantities{"cpu": "64", "memory": "256Gi"}
		c.Spec.Allocated = api.Quantities{"cpu": "16", "memory": "64Gi"}
	}
	return w
}

// benchSpecs has a wide spec, which about 64 % of the clusters satisfy, and a narrow one (about 7 %).
var benchSpecs = []struct {
	name   string
	labels []string
}{
	{"wide", []string{"env is prod", "arch != arm64"}},
	{"narrow", []string{"env is prod", "arch is amd64", "region in (r1, r3)", "tier in (gold, silver)", "team not in (team0, team1, team2, team3, team4, team5, team6, team7, team8, team9, team10, team11, team12, team13, team14)"}},
}

func benchPlacement(labels []string, k int64) *api.Placement {
	p := enginetest.NewPlacement("web")
	p.Spec.LabelConstraints = labels
	p.Spec.NumberOfClusters = &k
	return p
}

// benchPresent turns an outcome into the present decision. Usually, re-evaluating a placement moves nothing.
func benchPresent(f *columns.Fleet, out Outcome) Present {
	p := Present{Answered: true, ScheduledAt: f.Now().Add(-time.Hour)}
	for _, c := range out.Choices {
		p.Decisions = append(p.Decisions, api.Decision{Cluster: f.Name(c.Row)})
	}
	return p
}

var benchSizes = []int{1_000, 10_000, 100_000}

// BenchmarkDecideWarm decides with a cached fleet and class mask. Target at 10,000: 10 µs, 10 allocations.
func BenchmarkDecideWarm(b *testing.B) {
	for _, n := range benchSizes {
		f := benchWorld(n, false).Fleet()
		for _, spec := range benchSpecs {
			for _, k := range []int64{3, 100} {
				q := enginetest.Compile(b, NewQuery, benchPlacement(spec.labels, k))
				mask := maskOf(f, q, nil)
				present := benchPresent(f, Decide(f, q, &View{Mask: mask}, ledger.Others{}, Present{}, f.Now()))
				b.Run(fmt.Sprintf("n=%d/%s/k=%d", n, spec.name, k), func(b *testing.B) {
					cputime.Measure(b, func() { Decide(f, q, &View{Mask: mask}, ledger.Others{}, present, f.Now()) })
					b.ReportMetric(100*float64(mask.Count())/float64(n), "%fit")
				})
			}
		}
	}
}

// BenchmarkDecideMask also computes the mask, as for a new class.
func BenchmarkDecideMask(b *testing.B) {
	for _, n := range benchSizes {
		f := benchWorld(n, false).Fleet()
		for _, spec := range benchSpecs {
			p := benchPlacement(spec.labels, 3)
			b.Run(fmt.Sprintf("n=%d/%s/k=3", n, spec.name), func(b *testing.B) {
				cputime.Measure(b, func() {
					q, err := NewQuery(p)
					if err != nil {
						b.Fatal(err)
					}
					Decide(f, q, NewView(f, q, ledger.Others{}, nil), ledger.Others{}, Present{}, f.Now())
				})
			})
		}
	}
}

// BenchmarkDecideCold builds the fleet from raw objects for one decision.
// Target at 10,000: 10 ms.
func BenchmarkDecideCold(b *testing.B) {
	for _, n := range benchSizes {
		w := benchWorld(n, false)
		p := benchPlacement(benchSpecs[0].labels, 3)
		b.Run(fmt.Sprintf("n=%d/wide/k=3", n), func(b *testing.B) {
			cputime.Measure(b, func() {
				f := w.Fleet()
				q, err := NewQuery(p)
				if err != nil {
					b.Fatal(err)
				}
				Decide(f, q, NewView(f, q, ledger.Others{}, nil), ledger.Others{}, Present{}, f.Now())
			})
		})
	}
}

// naive reads every object: parsed constraints on label maps, metrics by name, one sort. It caches nothing, so both the
// warm and the cold decision are compared with it.
func naive(w *enginetest.World, labels []constraint.Label, k int) []seat {
	var fit []seat
	for name, c := range w.Clusters {
		if !slices.ContainsFunc(labels, func(l constraint.Label) bool { return !l.Match(c.Metadata.Labels) }) {
			products, weights := 0.0, 0.0
			for _, ref := range c.Spec.Metrics {
				m := w.Metrics[ref.Key()]
				value, err := columns.Normalize(m.Spec, *m.Status.Value)
				if err != nil {
					continue
				}
				products += *ref.Weight * value
				weights += *ref.Weight
			}
			fit = append(fit, seat{name, products / weights})
		}
	}
	slices.SortFunc(fit, func(x, y seat) int { return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.cluster, y.cluster)) })
	return fit[:min(k, len(fit))]
}

func BenchmarkDecideNaive(b *testing.B) {
	for _, n := range benchSizes {
		w := benchWorld(n, false)
		for _, spec := range benchSpecs {
			var labels []constraint.Label
			for _, text := range spec.labels {
				l, err := constraint.ParseLabel(text)
				if err != nil {
					b.Fatal(err)
				}
				labels = append(labels, l)
			}
			b.Run(fmt.Sprintf("n=%d/%s/k=3", n, spec.name), func(b *testing.B) {
				cputime.Measure(b, func() { naive(w, labels, 3) })
			})
		}
	}
}

// BenchmarkDecideTies is the worst case of the ranking: clusters without metrics are all equal, so that each placement
// orders all of them by its own hash. Target at 10,000 and k=3: 10 µs.
func BenchmarkDecideTies(b *testing.B) {
	for _, n := range benchSizes {
		f := benchWorld(n, true).Fleet()
		for _, k := range []int64{3, 100} {
			q := enginetest.Compile(b, NewQuery, benchPlacement(nil, k))
			mask := maskOf(f, q, nil)
			b.Run(fmt.Sprintf("n=%d/k=%d", n, k), func(b *testing.B) {
				cputime.Measure(b, func() { Decide(f, q, &View{Mask: mask}, ledger.Others{}, Present{}, f.Now()) })
			})
		}
	}
}

// BenchmarkDecideAll requests every cluster that fits.
func BenchmarkDecideAll(b *testing.B) {
	for _, n := range benchSizes {
		f := benchWorld(n, false).Fleet()
		p := benchPlacement(benchSpecs[0].labels, 0)
		p.Spec.NumberOfClusters = nil
		q := enginetest.Compile(b, NewQuery, p)
		mask := maskOf(f, q, nil)
		present := benchPresent(f, Decide(f, q, &View{Mask: mask}, ledger.Others{}, Present{}, f.Now()))
		for name, present := range map[string]Present{"new": {}, "standing": present} {
			b.Run(fmt.Sprintf("n=%d/%s", n, name), func(b *testing.B) {
				cputime.Measure(b, func() { Decide(f, q, &View{Mask: mask}, ledger.Others{}, present, f.Now()) })
			})
		}
	}
}

// BenchmarkExplain measures a decision with the verdict on every cluster. Target at 10,000: 50 µs.
func BenchmarkExplain(b *testing.B) {
	for _, n := range benchSizes {
		f := benchWorld(n, false).Fleet()
		for _, spec := range benchSpecs {
			q := enginetest.Compile(b, NewQuery, benchPlacement(spec.labels, 3))
			present := benchPresent(f, Decide(f, q, NewView(f, q, ledger.Others{}, nil), ledger.Others{}, Present{}, f.Now()))
			b.Run(fmt.Sprintf("n=%d/%s/k=3", n, spec.name), func(b *testing.B) {
				cputime.Measure(b, func() { Explain(f, q, nil, ledger.Others{}, present, f.Now()) })
			})
		}
	}
}

// BenchmarkRender renders the sentences of an explanation.
func BenchmarkRender(b *testing.B) {
	for _, n := range benchSizes[:2] {
		f := benchWorld(n, false).Fleet()
		for _, spec := range benchSpecs {
			e := Explain(f, enginetest.Compile(b, NewQuery, benchPlacement(spec.labels, 3)), nil, ledger.Others{}, Present{}, f.Now())
			b.Run(fmt.Sprintf("n=%d/%s/k=3", n, spec.name), func(b *testing.B) {
				cputime.Measure(b, func() { e.Render() })
			})
		}
	}
}

// BenchmarkWith derives the next fleet after a change: a metric that one cluster lists, one that a tenth of all list, a
// report of one cluster, and a new cluster.
func BenchmarkWith(b *testing.B) {
	for _, n := range benchSizes[1:] {
		w := benchWorld(n, false)
		own := w.Gauge("own", 0, 1, 0.5)
		first := w.Clusters["cluster000000"]
		first.Spec.Metrics = append(first.Spec.Metrics, api.MetricRef{Name: "own", Weight: new(5.0)})
		f := w.Fleet()
		moved := func(m *api.Metric, value float64) columns.Changes {
			c := *m
			c.Status.Value = &value
			return columns.Changes{Metrics: map[api.Key]*api.Metric{api.KeyOf(m): &c}}
		}
		report := *first
		report.Status.Allocated = api.Quantities{"cpu": "17"}
		added := *first
		added.Metadata.Name = "new"
		for _, step := range []struct {
			name    string
			changes columns.Changes
		}{
			{"own-metric", moved(own, 0.9)},
			{"shared-metric", moved(w.Metrics[metricKey("m07")], 0.99)},
			{"report", enginetest.Clusters(&report)},
			{"new-cluster", enginetest.Clusters(&added)},
		} {
			b.Run(fmt.Sprintf("n=%d/%s", n, step.name), func(b *testing.B) {
				cputime.Measure(b, func() { f.With(step.changes, f.Now()) })
			})
		}
	}
}

// BenchmarkFits renders the message of a placement that no cluster fits because of a metric. It is rendered again
// whenever values change.
func BenchmarkFits(b *testing.B) {
	for _, n := range benchSizes {
		f := benchWorld(n, false).Fleet()
		p := benchPlacement(benchSpecs[0].labels, 3)
		p.Spec.MetricConstraints = []string{"m07 > 2"}
		q := enginetest.Compile(b, NewQuery, p)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			cputime.Measure(b, func() { Sentence(f, q, ledger.Others{}) })
		})
	}
}

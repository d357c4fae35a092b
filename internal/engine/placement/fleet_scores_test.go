package placement

import (
	"fmt"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// BenchmarkScorePush pushes the score of one cluster in a large fleet. If 10,000 clusters do so every minute, there are
// 167 pushes a second.
func BenchmarkScorePush(b *testing.B) {
	for _, n := range benchSizes {
		w := benchWorld(n, false)
		for name := range w.Clusters {
			s := enginetest.Score(name, 1, 5*time.Minute)
			w.Scores[api.KeyOf(s)] = s
		}
		f := w.Fleet()
		names := w.Names()
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			i := 0
			cputime.Measure(b, func() {
				at := time.Duration(i) * time.Minute / time.Duration(n)
				f, _ = f.With(enginetest.Scores(enginetest.Score(names[i%n], int64(i%100), at+5*time.Minute)), enginetest.Epoch.Add(at))
				i++
			})
		})
	}
}

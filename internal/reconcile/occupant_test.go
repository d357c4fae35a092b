package reconcile

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestPlannerSkipsOnlyStableDecisions checks that, if no decision moves after some scores have changed, none moves when
// all are made again. It includes placements that count the decisions of others, which
// TestPlannerDecisionsEqualFreshOnes cannot check: others may have moved since.
func TestPlannerSkipsOnlyStableDecisions(t *testing.T) {
	again := func(p *planner) (moved bool) {
		for _, placed := range p.placer.placements {
			p.queue.mark(placed)
		}
		for _, w := range p.pass(epoch) {
			moved = moved || w.moved
		}
		return moved
	}
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		clusters := rapid.IntRange(2, 30).Draw(t, "clusters")
		value := rapid.Int64Range(-8, 8)
		score := func(i int) *api.PlacementScore {
			return &api.PlacementScore{
				Metadata: api.Metadata{Cluster: fmt.Sprintf("c%d", i), Name: rapid.SampledFrom([]string{"s", "s", "s", "t"}).Draw(t, "name")},
				Spec:     api.PlacementScoreSpec{Scores: map[string]int64{"a": value.Draw(t, "a") * 12}},
			}
		}
		for i := range clusters {
			c := cluster(fmt.Sprintf("c%d", i), map[string]string{"zone": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone")})
			c.Spec.Region = rapid.SampledFrom([]string{"eu", "us"}).Draw(t, "region")
			w.write(p, c)
			w.write(p, score(i))
		}
		for i := range rapid.IntRange(1, 30).Draw(t, "placements") {
			w.write(p, newPlacement(fmt.Sprintf("p%d", i), rapid.Int64Range(1, 4).Draw(t, "wanted"), func(s *api.PlacementSpec) {
				if prioritize(t, s); rapid.Bool().Draw(t, "plain") {
					s.SpreadConstraints, s.ResourceRequests = nil, nil
					byScore(s)
					s.PrioritizerPolicy.Mode = api.ModeAdditive
				}
				s.ClusterSets = nil
				s.LabelConstraints = rapid.SampledFrom([][]string{nil, nil, {"zone in (a, b)"}, {"zone != c"}}).Draw(t, "labels")
			}))
		}
		p.pass(epoch)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			rest := 0
			for again(p) {
				if rest++; rest > 30 {
					return
				}
			}
			moved := false
			for range rapid.IntRange(1, 4).Draw(t, "passes") {
				for range rapid.IntRange(1, 2).Draw(t, "changes") {
					w.write(p, score(rapid.IntRange(0, clusters-1).Draw(t, "cluster")))
				}
				for _, write := range p.pass(epoch) {
					moved = moved || write.moved
				}
			}
			if moved {
				continue // so that others may move, too
			}
			was := map[api.Key]string{}
			for key, placed := range p.placer.placements {
				was[key] = fmt.Sprint(placed.status.Clusters)
			}
			if again(p) {
				for key, placed := range p.placer.placements {
					if now := fmt.Sprint(placed.status.Clusters); now != was[key] {
						t.Fatalf("%s kept %s, but a fresh decision is %s", key, was[key], now)
					}
				}
			}
		}
	})
}

// TestScoreThatDoesNotChangeAnOccupant covers a placement that counts the decisions of others. It is not decided again
// when the score of its own cluster changes slightly. It is when another cluster is better both by its own score and
// including the decisions of others.
func TestScoreThatDoesNotChangeAnOccupant(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	score := func(cluster string, value int64) { w.write(p, newScore(cluster, value, epoch.Add(3600e9))) }
	for i := range 4 {
		w.write(p, cluster(fmt.Sprintf("c%d", i), nil))
		score(fmt.Sprintf("c%d", i), 10)
	}
	w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) {
		byScore(s)
		s.PrioritizerPolicy.Mode = api.ModeAdditive
	}))
	p.pass(epoch)
	web := webOf(p)
	if got := fmt.Sprint(web.status.Clusters); got != "[c0]" {
		t.Fatalf("on %s, want c0", got)
	}
	for _, value := range []int64{50, 11, -80} {
		score("c0", value)
		p.advance(epoch)
		if web.stale {
			t.Fatalf("a score of %d makes the placement stale, want it skipped", value)
		}
	}
	score("c0", -95) // and the advantage of the present cluster: 5
	if p.pass(epoch); fmt.Sprint(web.status.Clusters) != "[c1]" {
		t.Fatalf("on %v, want c1, which is better", web.status.Clusters)
	}
}

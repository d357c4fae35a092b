package reconcile

import (
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestScoresValidOfHeldClusters covers expired scores on clusters that only the present decision may keep, because of a
// taint or a pause. They count, too.
func TestScoresValidOfHeldClusters(t *testing.T) {
	for name, hold := range map[string]func(c *api.Cluster){
		"free":          func(*api.Cluster) {},
		"NoSelectIfNew": func(c *api.Cluster) { c.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelectIfNew}} },
		"paused":        func(c *api.Cluster) { c.Spec.Paused = true },
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			until := epoch.Add(time.Minute)
			roomy := func(c *api.Cluster) { c.Spec.Allocatable = api.Quantities{"cpu": "4"} }
			with := func(name string, change func(*api.Cluster)) *api.Cluster {
				c := cluster(name, nil)
				roomy(c)
				change(c)
				return c
			}
			w.write(p, with("c1", roomy))
			w.write(p, with("c2", roomy))
			w.write(p, newScore("c1", 90, until))
			w.write(p, newScore("c2", -50, time.Time{}))
			w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) {
				byScore(s)
				s.ResourceRequests = api.Quantities{"cpu": "2"}
			}))
			valid := func(when string, want api.ConditionStatus) {
				t.Helper()
				wantClusters(t, p, when, "c1")
				if c := api.FindCondition(webOf(p).status.Conditions, api.ConditionScoresValid); c.Status != want {
					t.Errorf("%s: condition %+v, want %s", when, c, want)
				}
			}
			p.pass(epoch)
			valid("at first", api.ConditionTrue)
			w.write(p, with("c1", hold))
			p.pass(epoch.Add(time.Second))
			valid("held", api.ConditionTrue)
			if at := p.nextAt(); !at.Equal(until.Add(1)) {
				t.Errorf("nextAt() = %v, want the expiry", at)
			}
			p.pass(until.Add(1))
			valid("expired", api.ConditionFalse)
			w.write(p, with("c1", roomy))
			p.pass(until.Add(time.Second))
			valid("free again", api.ConditionFalse)
			w.write(p, with("c1", hold))
			p.pass(until.Add(2 * time.Second))
			valid("held again", api.ConditionFalse)
			w.write(p, newScore("c1", 90, until.Add(time.Hour)))
			p.pass(until.Add(3 * time.Second))
			valid("with a fresh score", api.ConditionTrue)
		})
	}
}

// TestPlannerReDecidesWhenAScoreInAnExpressionExpires checks that it does so exactly then, without another event, even
// if no score is used for ranking.
func TestPlannerReDecidesWhenAScoreInAnExpressionExpires(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	until := epoch.Add(time.Minute)
	w.write(p, cluster("c1", nil))
	w.write(p, cluster("c2", nil))
	w.write(p, newScore("c1", 90, until))
	w.write(p, newScore("c2", 80, until.Add(time.Hour)))
	w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) {
		s.Predicates = []api.Predicate{{CEL: []string{`managedCluster.scores("s").exists(s, s.name == "a" && s.value > 50)`}}}
	}))
	p.pass(epoch)
	first := webOf(p).status.Clusters
	if len(first) != 1 {
		t.Fatalf("clusters %v, want one", first)
	}
	p.pass(until)
	wantClusters(t, p, "at valid_until", first...)
	if at := p.nextAt(); !at.Equal(until.Add(1)) {
		t.Fatalf("nextAt() = %s, want right after %s", at, until)
	}
	p.pass(until.Add(1))
	wantClusters(t, p, "after valid_until", "c2")
	p.pass(until.Add(time.Hour + 1))
	wantClusters(t, p, "when both have expired")
}

// TestScoresValidOfClustersThatWereLeft checks that an expired score no longer counts once the decision has left its
// cluster, if only the decision kept that cluster.
func TestScoresValidOfClustersThatWereLeft(t *testing.T) {
	for name, hold := range map[string]func(c *api.Cluster){
		"NoSelectIfNew": func(c *api.Cluster) { c.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelectIfNew}} },
		"NoSelect":      func(c *api.Cluster) { c.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelect}} },
		"paused":        func(c *api.Cluster) { c.Spec.Paused = true },
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			until := epoch.Add(time.Minute)
			w.write(p, cluster("c1", nil))
			w.write(p, cluster("c2", nil))
			w.write(p, newScore("c1", 90, until))
			w.write(p, newScore("c2", 80, time.Time{}))
			w.write(p, newPlacement("web", 1, byScore))
			p.pass(epoch)
			wantClusters(t, p, "at first", "c1")
			held := cluster("c1", nil)
			hold(held)
			w.write(p, held)
			p.pass(until.Add(1))
			wantClusters(t, p, "expired", "c2")
			if c := api.FindCondition(webOf(p).status.Conditions, api.ConditionScoresValid); c.Status != api.ConditionTrue {
				t.Errorf("condition %+v, want True: c1 was left, and does not fit", c)
			}
			checkSettled(t, p, until.Add(1))
		})
	}
}

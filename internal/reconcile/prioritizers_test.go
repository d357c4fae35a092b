package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func newScore(cluster string, value int64, until time.Time) *api.PlacementScore {
	s := &api.PlacementScore{
		Metadata: api.Metadata{Cluster: cluster, Name: "s"},
		Spec:     api.PlacementScoreSpec{Scores: map[string]int64{"a": value}},
	}
	if !until.IsZero() {
		s.Spec.ValidUntil = &until
	}
	return s
}

// byScore ranks only by the score s/a.
func byScore(s *api.PlacementSpec) {
	s.Strategy, s.RescheduleAfter = api.StrategyPrioritizers, ""
	s.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{
		{Type: api.PrioritizerAddon, ResourceName: "s", ScoreName: "a"},
	}}
}

func webOf(p *planner) *placementDecision {
	return p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}]
}

func wantClusters(t *testing.T, p *planner, when string, want ...string) {
	t.Helper()
	if got := webOf(p).status.Clusters; !slices.Equal(got, want) {
		t.Fatalf("%s: clusters %v, want %v", when, got, want)
	}
}

// TestPlannerReDecidesWhenAScoreExpires checks that it does so exactly then, without another event.
func TestPlannerReDecidesWhenAScoreExpires(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	until := epoch.Add(time.Minute)
	for name, value := range map[string]int64{"c1": 90, "c2": 10} {
		w.write(p, cluster(name, nil))
		if name == "c1" {
			w.write(p, newScore(name, value, until))
		} else {
			w.write(p, newScore(name, value, time.Time{}))
		}
	}
	w.write(p, newPlacement("web", 1, byScore))
	p.pass(epoch)
	wantClusters(t, p, "at first", "c1")
	if at := p.nextAt(); !at.Equal(until.Add(1)) {
		t.Fatalf("nextAt() = %s, want right after %s", at, until)
	}
	p.pass(until) // valid up to and including
	wantClusters(t, p, "at valid_until", "c1")
	p.pass(until.Add(1))
	wantClusters(t, p, "after valid_until", "c2")
	if c := api.FindCondition(webOf(p).status.Conditions, api.ConditionScoresValid); c.Status != api.ConditionFalse || c.Reason != api.ReasonExpired {
		t.Errorf("condition %+v, want Expired", c)
	}
	w.write(p, newScore("c1", 90, until.Add(time.Hour)))
	p.pass(until.Add(time.Second))
	wantClusters(t, p, "with a fresh score", "c1")
	if c := api.FindCondition(webOf(p).status.Conditions, api.ConditionScoresValid); c.Status != api.ConditionTrue {
		t.Errorf("condition %+v, want True", c)
	}
}

// TestPlannerReDecidesWhenATolerationEnds checks that the cluster is left at that time, and that no other placement
// goes there afterwards.
func TestPlannerReDecidesWhenATolerationEnds(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	added := epoch.Add(-10 * time.Second)
	down := func() *api.Cluster {
		c := cluster("c1", nil)
		c.Status.State = api.StateOffline
		c.Status.Taints = []api.ClusterTaint{{Key: api.TaintUnreachable, Effect: api.EffectNoSelect, TimeAdded: &added}}
		return c
	}
	w.write(p, cluster("c1", nil))
	w.write(p, cluster("c2", nil))
	w.write(p, newScore("c1", 90, time.Time{}))
	patient := func(s *api.PlacementSpec) {
		byScore(s)
		s.Tolerations = []api.Toleration{{Key: api.TaintUnreachable, Operator: api.TolerationExists, TolerationSeconds: ptr(int64(60))}}
	}
	w.write(p, newPlacement("web", 1, patient))
	p.pass(epoch.Add(-20 * time.Second))
	wantClusters(t, p, "at first", "c1")
	w.write(p, down())
	p.pass(epoch)
	wantClusters(t, p, "unreachable for 10 s", "c1")
	end := added.Add(time.Minute)
	if at := p.nextAt(); !at.Equal(end) {
		t.Fatalf("nextAt() = %s, want %s", at, end)
	}
	p.pass(end.Add(-1))
	wantClusters(t, p, "just before the end", "c1")
	p.pass(end)
	wantClusters(t, p, "at the end", "c2")
	checkSettled(t, p, end)
	w.write(p, cluster("c1", nil))
	p.pass(end.Add(time.Second))
	wantClusters(t, p, "back online", "c1")
}

// TestPlannerReDecidesWhenOnlyCELReadsTheScore covers scores and metrics that no
// prioritizer uses.
func TestPlannerReDecidesWhenOnlyCELReadsTheScore(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, metric("m1", 0.9))
	w.write(p, cluster("c1", nil, api.MetricRef{Name: "m1"}))
	w.write(p, cluster("c2", nil))
	w.write(p, newScore("c1", 90, time.Time{}))
	w.write(p, newScore("c2", -1, time.Time{}))
	w.write(p, newPlacement("web", -1, func(s *api.PlacementSpec) {
		s.Predicates = []api.Predicate{
			{CEL: []string{`cluster.scores("s").exists(s, s.value > 50)`}},
			{CEL: []string{`cluster.metric("m1") < 0.5`}},
		}
	}))
	p.pass(epoch)
	wantClusters(t, p, "at first", "c1")
	w.write(p, newScore("c2", 51, time.Time{}))
	p.pass(epoch.Add(time.Second))
	if got := webOf(p).status.Clusters; len(got) != 2 {
		t.Fatalf("clusters %v, want two: c2 scores 51 now", got)
	}
	w.write(p, newScore("c1", 0, time.Time{}))
	p.pass(epoch.Add(2 * time.Second))
	wantClusters(t, p, "c1 scores 0", "c2")
	w.write(p, metric("m1", 0.4))
	p.pass(epoch.Add(3 * time.Second))
	if got := webOf(p).status.Clusters; len(got) != 2 {
		t.Fatalf("clusters %v, want two: m1 is 0.4 now", got)
	}
}

// TestPlannerSettlesBalance checks that placements that count each other's decisions settle, and do not move when
// everything is evaluated again, as after a restart.
func TestPlannerSettlesBalance(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	for _, name := range []string{"c1", "c2", "c3"} {
		w.write(p, cluster(name, nil))
	}
	w.write(p, newScore("c1", 80, time.Time{}))
	balanced := func(s *api.PlacementSpec) {
		byScore(s)
		s.PrioritizerPolicy.Mode = api.ModeAdditive
	}
	names := []string{"a", "b", "c", "d", "e", "f", "web"}
	for _, name := range names {
		w.write(p, newPlacement(name, 1, balanced))
	}
	p.pass(epoch)
	count := map[string]int{}
	for _, placed := range p.placer.placements {
		count[placed.status.Clusters[0]]++
	}
	if len(count) != 3 {
		t.Fatalf("new placements are on %v, want them on 3 clusters", count)
	}
	if n := len(p.pass(epoch.Add(time.Hour))); n != 0 {
		t.Errorf("a later pass wrote %d placements", n)
	}
	again := newPlanner(discard())
	for _, name := range []string{"c1", "c2", "c3"} {
		again.put(w.objects[api.Key{Kind: api.KindCluster, Name: name}], 1)
	}
	again.put(w.objects[api.Key{Kind: api.KindPlacementScore, Namespace: "c1", Name: "s"}], 1)
	for _, name := range names {
		placed := p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name}]
		object := *placed.object
		object.Status = *placed.status
		again.put(&object, 1)
	}
	for _, w := range again.pass(epoch.Add(time.Hour)) {
		if w.moved {
			t.Errorf("a restart moved %s", w.key())
		}
	}
}

// TestPlannerTakesACommittedDecision checks that the planner takes over a decision that was committed together with a
// new spec.
func TestPlannerTakesACommittedDecision(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	for _, name := range []string{"c1", "c2"} {
		w.write(p, cluster(name, nil))
	}
	w.write(p, newPlacement("web", 1, byScore))
	p.pass(epoch)
	wantClusters(t, p, "at first", "c1")
	next := newPlacement("web", 1, byScore, func(s *api.PlacementSpec) { s.Predicates = []api.Predicate{{}} })
	next.SetDefaults()
	next.Metadata.UID, next.Metadata.Generation = webOf(p).object.Metadata.UID, 2
	next.Status = *webOf(p).status
	next.Status.ObservedGeneration, next.Status.DecisionRevision = 2, next.Status.DecisionRevision+1
	next.Status.Clusters = []string{"c2"}
	next.Status.Decisions = []api.Decision{{Cluster: "c2", Rank: 1, Since: ptr(epoch)}}
	w.revision++
	p.put(next, w.revision)
	for _, written := range p.pass(epoch.Add(time.Second)) {
		if written.moved {
			t.Errorf("the committed decision was moved to %v", placedOf(written).status.Clusters)
		}
	}
	wantClusters(t, p, "as committed", "c2")
	checkSettled(t, p, epoch.Add(time.Second))
}

// TestPlannerDropsDecisionsOvertakenByACommit checks that a decision about the previous spec is dropped if it was not
// written before a previewed decision was committed.
func TestPlannerDropsDecisionsOvertakenByACommit(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	for _, name := range []string{"c1", "c2"} {
		w.write(p, cluster(name, nil))
	}
	w.write(p, newPlacement("web", 1, byScore))
	p.pass(epoch)
	wantClusters(t, p, "at first", "c1")
	stored := *webOf(p).status
	w.write(p, newScore("c2", 50, time.Time{}))
	p.pass(epoch.Add(time.Second))
	wantClusters(t, p, "after the score", "c2")
	next := newPlacement("web", 1, byScore, func(s *api.PlacementSpec) { s.RescheduleAfter = "1h" })
	next.SetDefaults()
	next.Metadata.UID, next.Metadata.Generation = webOf(p).object.Metadata.UID, 2
	next.Status = stored
	next.Status.ObservedGeneration = 2
	w.revision++
	p.put(next, w.revision)
	p.pass(epoch.Add(2 * time.Second))
	wantClusters(t, p, "as committed", "c1")
}

// TestPlannerRanksAPresentClusterLast covers a cluster with two taints: one that excludes new placements must not hide
// one that ranks the cluster last among equals.
func TestPlannerRanksAPresentClusterLast(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cluster("c1", nil))
	w.write(p, newPlacement("web", 1, byScore))
	p.pass(epoch)
	wantClusters(t, p, "at first", "c1")
	tainted := cluster("c1", nil)
	tainted.Spec.Taints = []api.Taint{{Key: "full", Effect: api.EffectNoSelectIfNew}, {Key: "old", Effect: api.EffectPreferNoSelect}}
	w.write(p, tainted)
	w.write(p, cluster("c2", nil))
	w.write(p, newPlacement("web", 2, byScore))
	p.pass(epoch.Add(time.Second))
	wantClusters(t, p, "with two wanted", "c2", "c1")
}

// TestPlannerKeepsAMisconfiguredDecision checks that deleting a metric that the policy names ends no decision, even if
// the cluster lists the metric, too.
func TestPlannerKeepsAMisconfiguredDecision(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, metric("load", 0.5))
	for _, name := range []string{"c1", "c2"} {
		w.write(p, cluster(name, nil, api.MetricRef{Name: "load"}))
	}
	w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) {
		byScore(s)
		s.PrioritizerPolicy.Configurations[0] = api.PrioritizerConfig{Type: api.PrioritizerMetric, Name: "load"}
	}))
	p.pass(epoch)
	wantClusters(t, p, "at first", "c1")
	w.remove(p, api.Key{Kind: api.KindMetric, Name: "load"})
	p.pass(epoch.Add(time.Second))
	wantClusters(t, p, "without the metric", "c1")
	if c := api.FindCondition(webOf(p).status.Conditions, api.ConditionMisconfigured); c.Status != api.ConditionTrue {
		t.Errorf("condition %+v, want Misconfigured to be True", c)
	}
}

// TestPlacementFollowsTheDecisionsOfOthers covers a cluster that others leave, so that a placement prefers it. It moves
// there, because the cluster is also better without regard to others, and at once: after a restart, nothing is left to
// move.
func TestPlacementFollowsTheDecisionsOfOthers(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cluster("c1", nil))
	w.write(p, cluster("c2", nil))
	w.write(p, newScore("c1", 100, time.Time{}))
	w.write(p, newScore("c2", 50, time.Time{}))
	for _, name := range []string{"a", "b"} {
		w.write(p, newPlacement(name, 1, func(s *api.PlacementSpec) { s.ClusterNames = []string{"c1"} }))
	}
	w.write(p, newPlacement("web", 1, byScore, func(s *api.PlacementSpec) {
		s.PrioritizerPolicy.Configurations = append(s.PrioritizerPolicy.Configurations, api.PrioritizerConfig{Type: api.PrioritizerBuiltin, Name: api.PrioritizerBalance})
	}))
	p.pass(epoch)
	wantClusters(t, p, "while others are on c1", "c2")
	w.remove(p, api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "a"})
	p.pass(epoch.Add(time.Minute))
	wantClusters(t, p, "while another is on c1", "c2")
	if kept := p.placer.explain(webOf(p), epoch.Add(time.Minute)).Render().Kept; kept != "" {
		t.Errorf("kept by %q, want nothing: c2 is better because of the other", kept)
	}
	w.remove(p, api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "b"})
	all := w.afterPass(p)
	p.pass(epoch.Add(2 * time.Minute))
	wantClusters(t, p, "when all have left c1", "c1")
	again, _ := replay(all, p.started, epoch.Add(2*time.Minute))
	wantClusters(t, again, "after a restart when all had left c1", "c1")
}

// TestRestartTakesInWhatWasWritten covers a score that was written just before the server was killed: the placement moves
// after the start, as it would have without the kill. Balance counts in its score by default.
func TestRestartTakesInWhatWasWritten(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	for _, name := range []string{"c0", "c3"} {
		w.write(p, cluster(name, nil))
	}
	w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) {
		byScore(s)
		s.PrioritizerPolicy.Mode = api.ModeAdditive
		s.PrioritizerPolicy.Configurations[0].Weight = ptr(int64(3))
	}))
	p.pass(epoch)
	wantClusters(t, p, "at first", "c0")
	all := w.afterPass(p)
	better := newScore("c3", 100, time.Time{})
	w.write(p, better)
	all[api.KeyOf(better)] = better
	p.pass(epoch.Add(time.Minute))
	wantClusters(t, p, "with the score", "c3")
	again, _ := replay(all, p.started, epoch.Add(time.Minute))
	wantClusters(t, again, "after the start", "c3")
}

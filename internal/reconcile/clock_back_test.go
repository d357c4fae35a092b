package reconcile

import (
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestClockSetBack checks that a cluster whose taint was tolerated for 100 seconds is chosen again when the clock is set
// back to before their end: by what has waited since, and by what is written now.
func TestClockSetBack(t *testing.T) {
	tolerated := []api.Toleration{{Key: "k", Operator: api.TolerationExists, TolerationSeconds: ptr[int64](100)}}
	web := func(name string) []api.Object {
		return []api.Object{
			newPlacement(name, 1, func(s *api.PlacementSpec) { s.Tolerations = tolerated }),
			workload(name, 1),
		}
	}
	w, p := newWorld(), newPlanner(discard())
	put := func(objects ...api.Object) {
		for _, o := range objects {
			w.write(p, o)
		}
	}
	chosen := func(name string) (of []string) {
		for _, kind := range []api.Kind{api.KindPlacement, api.KindWorkload} {
			at, _ := whereIs(p.known(api.Key{Kind: kind, Namespace: "shop", Name: name}).result())
			of = append(of, at.clusters...)
		}
		return of
	}
	tainted := cluster("c1", nil)
	tainted.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelect}}
	tainted.Status.Taints = []api.ClusterTaint{{Key: "k", Effect: api.EffectNoSelect, TimeAdded: &epoch}}
	put(tainted, policy("p", func(s *api.PropagationPolicySpec) { s.Placement.ClusterTolerations = tolerated }))
	put(web("first")...)
	p.pass(epoch.Add(101 * time.Second))
	if got := chosen("first"); len(got) > 0 {
		t.Fatalf("after the toleration has expired, %v were chosen", got)
	}

	put(web("second")...)
	now := epoch.Add(50 * time.Second)
	p.pass(now)
	for _, name := range []string{"first", "second"} {
		if got := chosen(name); len(got) != 2 {
			t.Errorf("after the clock was set back, the placement and the workload %q have %v, want c1 for both", name, got)
		}
	}
	checkSettled(t, p, now)
	checkBound(t, p, now)
}

// TestClockSetBackPrefersABetterCluster checks that a placement that has what it wants moves to a better cluster that it
// tolerates again because the clock is set back.
func TestClockSetBackPrefersABetterCluster(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, metric("good", 1))
	best := cluster("best", nil, api.MetricRef{Name: "good", Weight: ptr(2.0)})
	best.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelect}}
	best.Status.Taints = []api.ClusterTaint{{Key: "k", Effect: api.EffectNoSelect, TimeAdded: &epoch}}
	w.write(p, best)
	w.write(p, cluster("plain", nil))
	w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) {
		s.Tolerations = []api.Toleration{{Key: "k", Operator: api.TolerationExists, TolerationSeconds: ptr[int64](100)}}
	}))
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{101 * time.Second, "plain"}, {50 * time.Second, "best"}} {
		now := epoch.Add(step.after)
		p.pass(now)
		got := p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}].status.Clusters
		if len(got) != 1 || got[0] != step.want {
			t.Errorf("after %s: %v, want %s", step.after, got, step.want)
		}
		checkSettled(t, p, now)
	}
}

// TestMonotonicClockIsNotUsed checks that a reconciler notices that the clock was set back, which times with a monotonic
// reading hide.
func TestMonotonicClockIsNotUsed(t *testing.T) {
	for _, clock := range []func() time.Time{nil, time.Now} {
		y := New(Options{Now: clock})
		if now := y.now(); now != now.Round(0) {
			t.Errorf("a pass would be at %s", now)
		}
	}
}

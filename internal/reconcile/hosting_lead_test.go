package reconcile

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestLeaderKeepsTheScoreOfAHost checks that a server that followed the choice of a host with another value of a metric
// takes over the stored score with the lead, and writes nothing.
func TestLeaderKeepsTheScoreOfAHost(t *testing.T) {
	w, follower := newWorld(), newPlanner(discard())
	follower.following = true
	w.write(follower, provider())
	w.write(follower, metric("green", 0.9))
	w.write(follower, cloud("north", "", nil, api.MetricRef{Name: "green"}))
	w.write(follower, project("north", nil, api.MetricRef{Name: "green"}))
	w.write(follower, wishing("edge"))
	w.write(follower, magnum("web", nil))
	ahead := map[api.Key]struct{}{}
	for _, write := range follower.pass(epoch) {
		ahead[write.key()] = struct{}{}
	}

	// The leader chose the same hosts with another value, which has changed since.
	leader := newPlanner(discard())
	other := *w.objects[api.KeyOf(metric("green", 0))].(*api.Metric)
	other.Status.Value = ptr(0.4)
	all := w.afterPass(leader)
	all[api.KeyOf(&other)] = &other
	for key, object := range all {
		leader.put(object, w.specs[key])
	}
	stored := map[api.Key]api.Object{}
	for _, write := range leader.pass(epoch) {
		stored[write.key()] = write.result()
	}
	if len(stored) != 2 {
		t.Fatalf("the leader decided %d objects, want a cluster and a Magnum cluster", len(stored))
	}

	follower.lead(ahead, w.entries(stored))
	for _, write := range follower.pass(epoch) {
		t.Errorf("becoming the leader writes %s: %+v, previously %+v", write.key(), write.result().StatusPart(), stored[write.key()].StatusPart())
	}
}

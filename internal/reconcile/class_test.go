package reconcile

import (
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Placements with the same requirements in the same words share one request. Others of the class keep their own words.
func TestClassSharesRequests(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	asking := func(name, constraint string, wanted int64) *placementDecision {
		object := newPlacement(name, wanted, func(s *api.PlacementSpec) { s.LabelConstraints = []string{constraint} })
		w.write(p, object)
		return p.placer.placements[api.KeyOf(object)]
	}
	first, alike, worded, other := asking("a", "tier is gold", 1), asking("b", "tier is gold", 2), asking("c", "tier == gold", 1), asking("d", "tier is silver", 1)
	if first.class != worded.class || first.class == other.class {
		t.Fatal("the classes are not those that the test needs")
	}
	shares := func(x *placementDecision) bool { return &x.query.Checks.All[0] == &first.query.Checks.All[0] }
	if !shares(alike) || alike.query.Wanted != 2 || alike.query.Key.Name != "b" {
		t.Errorf("%+v does not share its checks, or shares more than them", alike.query)
	}
	if shares(worded) || worded.query.Wording() == first.query.Wording() {
		t.Error("a different wording is lost")
	}
}

// Equal decisions of a class are stored once. A decision that differs, or was made at another time, is stored on its
// own.
func TestClassSharesDecisions(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cluster("c1", nil))
	w.write(p, cluster("c2", nil))
	decided := func(name string, wanted int64, now time.Time) *api.Condition {
		object := newPlacement(name, wanted)
		w.write(p, object)
		p.pass(now)
		return &p.placer.placements[api.KeyOf(object)].status.Conditions[0]
	}
	first, alike := decided("a", 1, epoch), decided("b", 1, epoch)
	later, short := decided("c", 1, epoch.Add(time.Second)), decided("d", 3, epoch.Add(time.Second))
	if first != alike {
		t.Error("equal decisions do not share their conditions")
	}
	if later == first || !later.LastTransitionAt.Equal(epoch.Add(time.Second)) {
		t.Errorf("condition of a later decision %+v, want its own, with a later time", later)
	}
	missing := api.FindCondition(p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "d"}].status.Conditions, api.ConditionSatisfied)
	if short == later || missing == nil || missing.Status != api.ConditionFalse {
		t.Errorf("one that gets less than it wants says %+v", missing)
	}
}

package reconcile

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Placements that ask for the same in the same words keep what they ask once; others
// of their class keep their own words.
func TestAClassKeepsWhatIsAskedOnce(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	asking := func(name, constraint string, wanted int64) *placementDecision {
		object := newPlacement(name, wanted, func(s *api.PlacementSpec) { s.LabelConstraints = []string{constraint} })
		w.write(p, object)
		return p.placements[api.KeyOf(object)]
	}
	first, alike, worded, other := asking("a", "tier is gold", 1), asking("b", "tier is gold", 2), asking("c", "tier == gold", 1), asking("d", "tier is silver", 1)
	if first.class != worded.class || first.class == other.class {
		t.Fatal("the classes are not what the test is about")
	}
	shares := func(x *placementDecision) bool { return &x.query.Checks.All[0] == &first.query.Checks.All[0] }
	if !shares(alike) || alike.query.Wanted != 2 || alike.query.Key.Name != "b" {
		t.Errorf("%+v does not share what is asked, or not only that", alike.query)
	}
	if shares(worded) || worded.query.Wording() == first.query.Wording() {
		t.Error("one in other words has lost its own")
	}
}

package reconcile

import (
	"fmt"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance/ocm"
)

// TestOCMEnqueues checks that exactly the decisions that a change affects are made again. No placement counts the
// decisions of others, so that only the change matters.
func TestOCMEnqueues(t *testing.T) {
	cases, err := ocm.Cases(ocm.Enqueue)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			decided, again := enqueued(t, &c)
			for _, wrong := range c.CompareDecided(decided) {
				t.Errorf("%s: %s", c.Name, wrong)
			}
			for _, name := range *c.Expect.Enqueued {
				if !slices.Contains(again, name) {
					t.Errorf("%s: %s was not decided again, only %q", c.Name, name, again)
				}
			}
			others, err := c.Expecting()
			if err != nil {
				t.Fatal(err)
			}
			for what, other := range others {
				if other.CompareDecided(decided) == nil {
					t.Errorf("expect%s: a wrong expectation is not noticed", what)
				}
			}
		})
	}
}

// enqueued applies a change, and returns the placements whose decision has changed, and those that were evaluated
// again.
func enqueued(t *testing.T, c *ocm.Case) (decided, again []string) {
	t.Helper()
	change, err := c.Change()
	if err != nil {
		t.Fatal(err)
	}
	w, p := newWorld(), newPlanner(discard())
	for _, object := range change.Before {
		w.write(p, object)
	}
	p.pass(epoch)
	chosen := func() map[string]string {
		out := map[string]string{}
		for key, placed := range p.placer.placements {
			policy := placed.object.Spec.PrioritizerPolicy
			balances := func(c api.PrioritizerConfig) bool { return c.Name == api.PrioritizerBalance }
			if policy.Mode != api.ModeExact || slices.ContainsFunc(policy.Configurations, balances) {
				t.Fatalf("%s depends on other decisions", key)
			}
			out[key.Path()] = fmt.Sprint(placed.status.Clusters)
		}
		return out
	}
	before := chosen()
	if extra := p.pass(epoch); len(extra) > 0 {
		t.Fatalf("%d decisions are still pending before the change", len(extra))
	}
	w.write(p, change.After)
	p.pass(epoch)
	for name, is := range chosen() {
		if is != before[name] {
			decided = append(decided, name)
		}
	}
	for key, placed := range p.placer.placements {
		if int(placed.rounds.pass) == p.passes {
			again = append(again, key.Path())
		}
	}
	return decided, again
}

package placement

import (
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance/ocm"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// TestOCM runs the cases of Open Cluster Management against the engine.
func TestOCM(t *testing.T) {
	cases, err := ocm.Cases(ocm.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range cases {
		known[c.ID] = true
		t.Run(c.ID, func(t *testing.T) {
			answer := answerOCM(t, &c)
			for _, wrong := range c.Compare(answer) {
				t.Errorf("%s: %s", c.Name, wrong)
			}
			others, err := c.Expecting()
			if err != nil {
				t.Fatal(err)
			}
			for what, other := range others {
				if len(other.Compare(answer)) == 0 {
					t.Errorf("expect/%s: a wrong expectation is not noticed", what)
				}
			}
		})
	}
	for id, d := range ocm.Differences {
		if !known[id] || len(d.Expectations) == 0 || d.Reason == "" {
			t.Errorf("difference %s: no such case, no expectations or no reason", id)
		}
	}
	for id := range ocm.Refusals {
		if !known[id] {
			t.Errorf("refusal %s: no such case", id)
		}
	}
}

func answerOCM(t *testing.T, c *ocm.Case) *ocm.Answer {
	t.Helper()
	given := c.World()
	p := given.Placement
	for _, o := range given.Objects() {
		errs := o.Validate()
		switch {
		case errs != nil && o == api.Object(p):
			return &ocm.Answer{Refused: errs}
		case errs != nil:
			t.Fatalf("%s: %s", api.KeyOf(o), errs)
		}
	}
	w := enginetest.NewWorld()
	w.Now = c.Now
	for _, o := range given.Clusters {
		w.Clusters[o.Metadata.Name] = o
	}
	for _, o := range given.Sets {
		w.Sets[o.Metadata.Name] = o
	}
	for _, o := range given.Scores {
		w.Scores[api.KeyOf(o)] = o
	}
	f, delta := (&columns.Fleet{}).With(w.Changes(), w.Now)
	others := ledger.Others{Load: ledger.NewLoad()}
	others.Load.Sync(f, delta)
	for _, o := range append(slices.Clone(given.Others), p) {
		for _, name := range o.Status.Clusters {
			others.Load.Add(f, name)
		}
	}
	present := Present{Decisions: p.Status.Decisions, Answered: p.Status.ObservedGeneration == p.Metadata.Generation}
	if p.Status.ScheduledAt != nil {
		present.ScheduledAt = *p.Status.ScheduledAt
	}
	q := enginetest.Compile(t, NewQuery, p)
	v := NewView(f, q, others, nil)
	e := Explain(f, q, nil, others, present, w.Now)
	status, _ := NewStatus(f, q, v, &p.Metadata, &p.Status, Decide(f, q, v, others, present, w.Now), w.Now, e.Summary)
	var sets []string
	if in, ok := filter.First[filter.Confining](&q.Checks); ok {
		sets, _ = in.Usable(f)
	}
	return &ocm.Answer{Status: status, Explanation: e.Render(), EligibleSets: append([]string{}, sets...)}
}

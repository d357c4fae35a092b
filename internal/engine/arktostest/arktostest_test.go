package arktostest

import (
	"context"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Every listed case exists, and is listed once.
func TestLists(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range cases {
		if known[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		known[c.ID] = true
	}
	for _, list := range []map[string]string{Differences, Inexpressible} {
		for id, reason := range list {
			if !known[id] {
				t.Errorf("%s is listed, and there is no such case", id)
			}
			if reason == "" {
				t.Errorf("%s is listed without a reason", id)
			}
		}
	}
	for id := range Differences {
		if _, both := Inexpressible[id]; both {
			t.Errorf("%s is on both lists", id)
		}
	}
}

// A case that does not hold says so: all are laid before a server that places
// nothing, rates nothing and counts nothing.
func TestIdleServer(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	// What is asked for in these is that nothing happens.
	idle := map[string]bool{"A040": true, "A065": true, "A067": true, "A081": true, "A083": true}
	for _, c := range cases {
		if _, none := Inexpressible[c.ID]; none {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			wrong, err := c.Play(t.Context(), func(_ context.Context, request api.Simulation) (*api.SimulationResult, error) {
				return idleAnswer(request)
			})
			if err != nil {
				t.Fatal(err)
			}
			if holds := len(wrong) == 0; holds != idle[c.ID] {
				t.Errorf("it holds: %t", holds)
			}
		})
	}
}

func idleAnswer(request api.Simulation) (*api.SimulationResult, error) {
	result := &api.SimulationResult{}
	for _, raw := range request.Objects {
		object, err := api.Decode(raw)
		if err != nil {
			return nil, err
		}
		if w, ok := object.(*api.Workload); ok {
			w.Status.Conditions = []api.Condition{{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: api.ReasonNoClusterFit}}
			result.Explanations = append(result.Explanations, api.Explanation{Name: w.Metadata.Name, Candidates: []api.Candidate{{Cluster: theSite}}})
		}
		result.Objects = append(result.Objects, object)
	}
	return result, nil
}

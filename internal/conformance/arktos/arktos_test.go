package arktos

import (
	"context"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestIdleServer runs all cases against a server that places, scores and counts nothing. Each case must fail.
func TestIdleServer(t *testing.T) {
	// These cases expect that nothing happens.
	idle := map[string]bool{"A040": true, "A065": true, "A067": true, "A081": true, "A083": true}
	suite := Suite(func(_ context.Context, request api.Simulation) (*api.SimulationResult, error) {
		return idleAnswer(request)
	})
	for id, wrong := range suite.Verdicts(t) {
		if holds := len(wrong) == 0; holds != idle[id] {
			t.Errorf("%s agrees: %t, want the opposite", id, holds)
		}
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

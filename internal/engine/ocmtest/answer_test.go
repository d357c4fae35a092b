package ocmtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// notCompared are expectations that have no counterpart here: there are no pages
// of decisions. What is decided again is not a matter of one decision.
var notCompared = []string{"num_placement_decisions", "enqueued"}

// TestEveryExpectationIsCompared: an answer that is wrong in everything
// disagrees in all that a case tells.
func TestEveryExpectationIsCompared(t *testing.T) {
	told := map[string]map[string]json.RawMessage{}
	for _, data := range [][]byte{observed, documented} {
		var file struct {
			Cases []struct {
				ID     string
				Expect map[string]json.RawMessage
			}
		}
		if err := json.Unmarshal(data, &file); err != nil {
			t.Fatal(err)
		}
		for _, c := range file.Cases {
			if told[c.ID] != nil {
				t.Errorf("%s is there twice", c.ID)
			}
			told[c.ID] = c.Expect
		}
	}
	cases, err := Cases(Schedule)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		at, score := time.Unix(1, 0), 12345.0
		a := &Answer{EligibleSets: []string{"nonsense"}, Explanation: &api.Explanation{NextAt: &at}}
		for i := range 99 {
			a.Status.Clusters = append(a.Status.Clusters, fmt.Sprint("nonsense-", i))
		}
		a.Explanation.Candidates = []api.Candidate{{Cluster: "nonsense", Score: &score, Scores: []api.ScorePart{{Name: "nonsense"}}}}
		if c.Expect.StatusCode != nil && *c.Expect.StatusCode == codeSuccess {
			a.Status.Conditions = []api.Condition{{Type: api.ConditionScoresValid, Status: api.ConditionFalse}}
		}
		found := c.Disagreements(a)
		for expectation := range told[c.ID] {
			if expectation == "unscheduled" && c.Placement.NumberOfClusters == nil {
				continue // who wants all that fit never lacks one
			}
			if found[expectation] == "" && !slices.Contains(notCompared, expectation) {
				t.Errorf("%s: %s is not compared", c.ID, expectation)
			}
		}
	}
}

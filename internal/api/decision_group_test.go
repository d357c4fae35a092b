package api

import (
	"encoding/json"
	"testing"
)

func TestGroupSizeUnmarshal(t *testing.T) {
	for text, want := range map[string]GroupSize{`5`: "5", `"5"`: "5", `"25%"`: "25%", `null`: "100%"} {
		object, err := Decode([]byte(`{"kind":"placement","metadata":{"name":"web"},"spec":{"decision_strategy":{"clusters_per_decision_group":` + text + `}}}`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		p, ok := object.(*Placement)
		if !ok || p.Spec.DecisionStrategy.ClustersPerDecisionGroup != want {
			shown, _ := json.Marshal(object)
			t.Errorf("%s is read as %s, want %q", text, shown, want)
		}
	}
}

// TestDecisionGroupsMayShareAName checks that two groups of one name are valid, as in Open Cluster Management.
func TestDecisionGroupsMayShareAName(t *testing.T) {
	object, err := Decode([]byte(`{"kind":"placement","metadata":{"name":"web"},"spec":{"decision_strategy":{"decision_groups":[
		{"name":"canary","label_selector":{"match_labels":{"stage":"canary"}}},
		{"name":"canary","label_selector":{"match_labels":{"stage":"preview"}}}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if errs := object.Validate(); errs.Err() != nil {
		t.Errorf("refused: %v", errs.Err())
	}
}

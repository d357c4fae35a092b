package api

import (
	"strings"
	"testing"
)

// TestPredicateCEL checks that a CEL expression that does not compile is rejected when the
// placement is written, with its path.
func TestPredicateCEL(t *testing.T) {
	p := &Placement{Metadata: Metadata{Name: "p"}, Spec: PlacementSpec{Predicates: []Predicate{
		{CEL: []string{`managedCluster.metadata.labels["env"] == "prod"`}},
		{CEL: []string{`cluster.metric("latency") < 20.0`, `tier == "gold"`, `cluster.spec.region`}},
	}}}
	p.SetDefaults()
	errs := p.Validate()
	want := []FieldError{
		{Field: "spec.predicates[1].cel[1]", Message: `the CEL expression is not valid at line 1, column 1: "tier" is not known`},
		{Field: "spec.predicates[1].cel[2]", Message: `the CEL expression gives a string; it must give true or false`},
	}
	if len(errs) != len(want) {
		t.Fatalf("errors: %v", errs)
	}
	for i, w := range want {
		if errs[i].Field != w.Field || !strings.HasPrefix(errs[i].Message, w.Message) {
			t.Errorf("error %d: %v, want %v", i, errs[i], w)
		}
	}
}

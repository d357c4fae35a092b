package api

import "testing"

// TestFirstDifference compares versions of a spec.
func TestFirstDifference(t *testing.T) {
	type spec struct {
		Name   string            `json:"name"`
		Count  *int64            `json:"count,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
		Within *MetricsStrategy  `json:"within,omitempty"`
		List   []string          `json:"list,omitempty"`
		Hidden Secret            `json:"hidden,omitzero"`
	}
	two, half := int64(2), 0.5
	for name, c := range map[string]struct {
		before, after spec
		want          Difference
	}{
		"text":         {spec{Name: "a"}, spec{Name: "b"}, Difference{"name", "a", "b"}},
		"added number": {spec{}, spec{Count: &two}, Difference{"count", "", "2"}},
		"key":          {spec{Labels: map[string]string{"a": "1", "b": "2"}}, spec{Labels: map[string]string{"a": "1"}}, Difference{"labels.b", "2", ""}},
		"within":       {spec{Within: &MetricsStrategy{}}, spec{Within: &MetricsStrategy{Stickiness: &half}}, Difference{"within.stickiness", "", "0.5"}},
		"block":        {spec{}, spec{Within: &MetricsStrategy{Stickiness: &half}}, Difference{"within", "", `{"stickiness":0.5}`}},
		"list":         {spec{List: []string{"a"}}, spec{List: []string{}}, Difference{"list", `["a"]`, ""}},
		"first":        {spec{Name: "a", Count: &two}, spec{Name: "b"}, Difference{"name", "a", "b"}},
		"secret":       {spec{Hidden: NewSecret("one")}, spec{Hidden: NewSecret("two")}, Difference{"hidden", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := FirstDifference(&c.before, &c.after); !ok || got != c.want {
				t.Errorf("got %+v (%v), want %+v", got, ok, c.want)
			}
			if got, ok := FirstDifference(&c.before, &c.before); ok {
				t.Errorf("a spec differs from itself: %+v", got)
			}
		})
	}
}

package constraint

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
)

// conformanceCase is one fact of testdata/krake.json: an input and what this
// language must answer. The few answers of the reference that are settled
// otherwise here carry them under "ref".
type conformanceCase struct {
	ID    string `json:"id"`
	Group string `json:"grp"`
	In    struct {
		Expr           string                       `json:"expr"`
		Exprs          []string                     `json:"exprs"`
		Labels         []map[string]string          `json:"labels"`
		Clusters       map[string]map[string]string `json:"clusters"`
		Weight         float64                      `json:"weight"`
		Raw            *float64                     `json:"raw"`
		Min            float64                      `json:"min"`
		Max            float64                      `json:"max"`
		ClusterMetrics []string                     `json:"cluster_metrics"`
	} `json:"in"`
	Out struct {
		Operator        string          `json:"op"`
		Key             string          `json:"key"`
		Metric          string          `json:"metric"`
		Values          []string        `json:"values"`
		Value           string          `json:"value"`
		Match           json.RawMessage `json:"match"`
		Matching        []string        `json:"matching"`
		MatchRaw        bool            `json:"match_raw"`
		MatchNormalized bool            `json:"match_normalized"`
		MatchWeighted   bool            `json:"match_weighted"`
		Error           string          `json:"error"`
	} `json:"out"`
}

var conformanceOperators = map[string]Operator{
	"eq": Equal, "ne": NotEqual, "in": In, "notin": NotIn,
	"gt": Greater, "gte": GreaterOrEqual, "lt": Less, "lte": LessOrEqual,
}

// TestConformance runs every case. None of them is answered differently: where
// the reference is defective, the case's expectation is already the settled one.
func TestConformance(t *testing.T) {
	raw, err := os.ReadFile("testdata/krake.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []conformanceCase }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for _, c := range file.Cases {
		ran[c.Group]++
		t.Run(c.ID, func(t *testing.T) {
			switch {
			case c.Group == "label_constraint" && c.In.Exprs != nil:
				conformLabels(t, c)
			case c.Group == "label_constraint":
				conformLabel(t, c)
			case c.Group == "metric_constraint":
				conformMetric(t, c)
			case c.Group == "metric_constraint_match":
				conformMetricMatch(t, c)
			default:
				t.Fatalf("unknown group %q", c.Group)
			}
		})
	}
	want := map[string]int{"label_constraint": 31, "metric_constraint": 29, "metric_constraint_match": 6}
	for group, n := range want {
		if ran[group] != n {
			t.Errorf("ran %d cases of %s, want %d", ran[group], group, n)
		}
	}
}

func conformLabel(t *testing.T, c conformanceCase) {
	l, err := ParseLabel(c.In.Expr)
	if conformError(t, c, err) {
		return
	}
	if l.Key() != c.Out.Key || l.Operator() != conformanceOperators[c.Out.Operator] || !slices.Equal(l.Values(), c.Out.Values) {
		t.Errorf("ParseLabel(%q) = %q %q %q, want %+v", c.In.Expr, l.Key(), l.Operator(), l.Values(), c.Out)
	}
	if c.In.Labels == nil {
		return
	}
	var match []bool
	if err := json.Unmarshal(c.Out.Match, &match); err != nil {
		t.Fatal(err)
	}
	for i, labels := range c.In.Labels {
		if got := l.Match(labels); got != match[i] {
			t.Errorf("%q on %v: %t, want %t", c.In.Expr, labels, got, match[i])
		}
	}
}

func conformLabels(t *testing.T, c conformanceCase) {
	var matching []string
	for name, labels := range c.In.Clusters {
		all := true
		for _, expr := range c.In.Exprs {
			l, err := ParseLabel(expr)
			if err != nil {
				t.Fatal(err)
			}
			all = all && l.Match(labels)
		}
		if all {
			matching = append(matching, name)
		}
	}
	slices.Sort(matching)
	if !slices.Equal(matching, c.Out.Matching) {
		t.Errorf("%q match %q, want %q", c.In.Exprs, matching, c.Out.Matching)
	}
}

func conformMetric(t *testing.T, c conformanceCase) {
	m, err := ParseMetric(c.In.Expr)
	if conformError(t, c, err) {
		return
	}
	value, err := strconv.ParseFloat(c.Out.Value, 64)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name() != c.Out.Metric || m.Operator() != conformanceOperators[c.Out.Operator] || m.Value() != value {
		t.Errorf("ParseMetric(%q) = %q %q %v, want %+v", c.In.Expr, m.Name(), m.Operator(), m.Value(), c.Out)
	}
}

func conformMetricMatch(t *testing.T, c conformanceCase) {
	m, err := ParseMetric(c.In.Expr)
	if err != nil {
		t.Fatal(err)
	}
	var match bool
	if err := json.Unmarshal(c.Out.Match, &match); err != nil {
		t.Fatal(err)
	}
	if c.In.Raw == nil {
		present := slices.Contains(c.In.ClusterMetrics, m.Name())
		if got := m.Match(0, present); got != match {
			t.Errorf("%q without its metric: %t, want %t", c.In.Expr, got, match)
		}
		return
	}
	// Values are compared to six decimals, as the cases are written.
	round := func(v float64) float64 { return math.Round(v*1e6) / 1e6 }
	normalized := round((*c.In.Raw - c.In.Min) / (c.In.Max - c.In.Min))
	for _, basis := range []struct {
		name  string
		value float64
		want  bool
	}{
		{"default", *c.In.Raw, match},
		{"raw", *c.In.Raw, c.Out.MatchRaw},
		{"normalized", normalized, c.Out.MatchNormalized},
		{"weighted", round(normalized * c.In.Weight), c.Out.MatchWeighted},
	} {
		if got := m.Match(basis.value, true); got != basis.want {
			t.Errorf("%q on %s %v: %t, want %t", c.In.Expr, basis.name, basis.value, got, basis.want)
		}
	}
}

// conformError compares the error and reports whether the case ends with it.
func conformError(t *testing.T, c conformanceCase, err error) bool {
	t.Helper()
	if c.Out.Error == "" {
		if err != nil {
			t.Fatalf("%q: %v, want no error", c.In.Expr, err)
		}
		return false
	}
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("%q: %v, want a %s error", c.In.Expr, err, c.Out.Error)
	}
	if string(syntax.Kind) != c.Out.Error {
		t.Errorf("%q: %s error (%v), want %s", c.In.Expr, syntax.Kind, err, c.Out.Error)
	}
	return true
}

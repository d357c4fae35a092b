package constraint

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// conformanceIn and conformanceOut are the input and the expected result of the cases about the language.
type conformanceIn struct {
	Expr           conformance.Field[string]                       `json:"expr"`
	Exprs          conformance.Field[[]string]                     `json:"exprs"`
	Labels         conformance.Field[[]map[string]string]          `json:"labels"`
	Clusters       conformance.Field[map[string]map[string]string] `json:"clusters"`
	Weight         conformance.Field[float64]                      `json:"weight"`
	Raw            conformance.Field[*float64]                     `json:"raw"`
	Min            conformance.Field[float64]                      `json:"min"`
	Max            conformance.Field[float64]                      `json:"max"`
	ClusterMetrics conformance.Field[[]string]                     `json:"cluster_metrics"`
}

type conformanceOut struct {
	Operator string          `json:"op"`
	Key      string          `json:"key"`
	Metric   string          `json:"metric"`
	Values   []string        `json:"values"`
	Value    string          `json:"value"`
	Match    json.RawMessage `json:"match"`
	Matching []string        `json:"matching"`
	Error    string          `json:"error"`

	// The metric's value in each basis, and whether it matches.
	Basis           string   `json:"basis"`
	Norm            *float64 `json:"norm"`
	Weighted        *float64 `json:"weighted"`
	MatchRaw        *bool    `json:"match_raw"`
	MatchNormalized *bool    `json:"match_normalized"`
	MatchWeighted   *bool    `json:"match_weighted"`
}

var conformanceOperators = map[string]Operator{
	"eq": Equal, "ne": NotEqual, "in": In, "notin": NotIn,
	"gt": Greater, "gte": GreaterOrEqual, "lt": Less, "lte": LessOrEqual,
}

// TestConformance runs every case. There are no deviations: where the reference is wrong, the case already expects the
// corrected result.
func TestConformance(t *testing.T) {
	suite := conformance.Suite{
		Driver: "internal/constraint",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"label_constraint":        conformance.Player(conformLabel),
			"metric_constraint":       conformance.Player(conformMetric),
			"metric_constraint_match": conformance.Player(conformMetricMatch),
		},
	}
	suite.Run(t)
}

func conformLabel(t *conformance.T, in *conformanceIn, out *conformanceOut) {
	if in.Exprs.Has() {
		conformLabels(t, in, out)
		return
	}
	l, err := ParseLabel(in.Expr.Get())
	if conformError(t, in, out, err) {
		return
	}
	if l.Key() != out.Key || l.Operator() != conformanceOperators[out.Operator] || !slices.Equal(l.Values(), out.Values) {
		t.Errorf("ParseLabel(%q) = %q %q %q, want %+v", in.Expr.Get(), l.Key(), l.Operator(), l.Values(), out)
	}
	if in.Labels.Get() == nil {
		return
	}
	var match []bool
	if err := json.Unmarshal(out.Match, &match); err != nil || len(match) != len(in.Labels.Get()) {
		t.Fatalf("%d results for %d labels: %v", len(match), len(in.Labels.Get()), err)
	}
	for i, labels := range in.Labels.Get() {
		if got := l.Match(labels); got != match[i] {
			t.Errorf("%q on %v: Match() = %t, want %t", in.Expr.Get(), labels, got, match[i])
		}
	}
}

func conformLabels(t *conformance.T, in *conformanceIn, out *conformanceOut) {
	var matching []string
	for name, labels := range in.Clusters.Get() {
		all := true
		for _, expr := range in.Exprs.Get() {
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
	if !slices.Equal(matching, out.Matching) {
		t.Errorf("%q match %q, want %q", in.Exprs.Get(), matching, out.Matching)
	}
}

func conformMetric(t *conformance.T, in *conformanceIn, out *conformanceOut) {
	m, err := ParseMetric(in.Expr.Get())
	if conformError(t, in, out, err) {
		return
	}
	value, err := strconv.ParseFloat(out.Value, 64)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name() != out.Metric || m.operator != conformanceOperators[out.Operator] || m.value != value {
		t.Errorf("ParseMetric(%q) = %q %q %v, want %+v", in.Expr.Get(), m.Name(), m.operator, m.value, out)
	}
}

func conformMetricMatch(t *conformance.T, in *conformanceIn, out *conformanceOut) {
	m, err := ParseMetric(in.Expr.Get())
	if err != nil {
		t.Fatal(err)
	}
	var match bool
	if err := json.Unmarshal(out.Match, &match); err != nil {
		t.Fatal(err)
	}
	if in.Raw.Get() == nil {
		present := slices.Contains(in.ClusterMetrics.Get(), m.Name())
		if got := m.Match(0, present); got != match {
			t.Errorf("%q without its metric: Match() = %t, want %t", in.Expr.Get(), got, match)
		}
		return
	}
	// Values are compared to six decimals, the precision of the cases.
	round := func(v float64) float64 { return math.Round(v*1e6) / 1e6 }
	raw := *in.Raw.Get()
	normalized := round((raw - in.Min.Get()) / (in.Max.Get() - in.Min.Get()))
	weighted := round(normalized * in.Weight.Get())
	if out.Norm == nil || *out.Norm != normalized || out.Weighted == nil || *out.Weighted != weighted {
		t.Errorf("normalized %v, weighted %v, want %v, %v", normalized, weighted, out.Norm, out.Weighted)
	}
	values := map[string]float64{"raw": raw, "normalized": normalized, "weighted": weighted}
	for basis, want := range map[string]*bool{
		out.Basis: &match, "raw": out.MatchRaw, "normalized": out.MatchNormalized, "weighted": out.MatchWeighted,
	} {
		if got := m.Match(values[basis], true); want == nil || got != *want {
			t.Errorf("%q on %s %v: Match() = %t, want %v", in.Expr.Get(), basis, values[basis], got, want)
		}
	}
	if out.Basis != "raw" || match != *out.MatchRaw { // the language compares the value it is given; rule 2 says which one
		t.Errorf("match on basis %q is %t, want the same as on raw", out.Basis, match)
	}
}

// conformError compares the error and reports whether the case ends with it.
func conformError(t *conformance.T, in *conformanceIn, out *conformanceOut, err error) bool {
	t.Helper()
	if out.Error == "" {
		if err != nil {
			t.Fatalf("%q: got %v, want no error", in.Expr.Get(), err)
		}
		return false
	}
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("%q: got %v, want a %s error", in.Expr.Get(), err, out.Error)
	}
	if string(syntax.Kind) != out.Error {
		t.Errorf("%q: %s error (%v), want %s", in.Expr.Get(), syntax.Kind, err, out.Error)
	}
	return true
}

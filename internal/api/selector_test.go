package api

import (
	"slices"
	"strings"
	"testing"
)

// TestSelectorsNameOnlyWhatLabelsMayBe refuses what Kubernetes refuses. Claims may have any value.
func TestSelectorsNameOnlyWhatLabelsMayBe(t *testing.T) {
	long := strings.Repeat("x", 64)
	in := func(key string, values ...string) *LabelSelector {
		return &LabelSelector{MatchExpressions: []SelectorRequirement{{Key: key, Operator: SelectorIn, Values: values}}}
	}
	for _, tt := range []struct {
		name           string
		selector       *LabelSelector
		labels, claims []string // the fields that are refused
	}{
		{"as usual", in("example.com/tier", "", "prod", "A_b.c"), nil, nil},
		{"a blank", in("tier", "prod", "x y"), []string{"s.match_expressions[0].values[1]"}, nil},
		{"too long", in("tier", long), []string{"s.match_expressions[0].values[0]"}, nil},
		{"in match_labels", &LabelSelector{MatchLabels: map[string]string{"tier": "x y"}}, []string{`s.match_labels["tier"]`}, nil},
		{"prefix in upper case", in("Example.com/tier", "prod"), []string{"s.match_expressions[0].key"}, []string{"s.match_expressions[0].key"}},
		{"name in upper case", in("example.com/Tier", "prod"), nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fields := func(validate func(errs *FieldErrors, field string)) (out []string) {
				var errs FieldErrors
				validate(&errs, "s")
				for _, e := range errs {
					out = append(out, e.Field)
				}
				return out
			}
			if got := fields(tt.selector.validate); !slices.Equal(got, tt.labels) {
				t.Errorf("of labels: refused %q, want %q", got, tt.labels)
			}
			if got := fields(tt.selector.validateOfClaims); !slices.Equal(got, tt.claims) {
				t.Errorf("of claims: refused %q, want %q", got, tt.claims)
			}
		})
	}
}

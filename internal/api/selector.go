package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// LabelSelector matches labels or claims, as Kubernetes label selectors do: all conditions must
// hold, and an empty selector matches everything.
type LabelSelector struct {
	MatchLabels      map[string]string     `json:"match_labels,omitempty" doc:"Keys that must have exactly these values."`
	MatchExpressions []SelectorRequirement `json:"match_expressions,omitempty" doc:"Conditions on individual keys, all of which must hold."`
}

// SelectorOperator compares the value of a label with a list of values.
type SelectorOperator string

// Selector operators. NotIn and DoesNotExist also match if the label is absent, unlike the
// operators of the constraint language.
const (
	SelectorIn           SelectorOperator = "In"
	SelectorNotIn        SelectorOperator = "NotIn"
	SelectorExists       SelectorOperator = "Exists"
	SelectorDoesNotExist SelectorOperator = "DoesNotExist"
)

// SelectorRequirement is one condition on one label.
type SelectorRequirement struct {
	Key      string           `json:"key" doc:"Key that the condition applies to."`
	Operator SelectorOperator `json:"operator" enum:"In,NotIn,Exists,DoesNotExist" doc:"How the value is compared. 'NotIn' and 'DoesNotExist' also match if the key is absent."`
	Values   []string         `json:"values,omitempty" doc:"Values that 'In' and 'NotIn' compare with."`
}

// Matches reports whether a value, or its absence, meets the requirement.
func (r *SelectorRequirement) Matches(value string, present bool) bool {
	switch r.Operator {
	case SelectorIn:
		return present && slices.Contains(r.Values, value)
	case SelectorNotIn:
		return !present || !slices.Contains(r.Values, value)
	case SelectorExists:
		return present
	case SelectorDoesNotExist:
		return !present
	}
	return false
}

// Requirements returns the conditions of the selector: match_labels first, sorted by key. A nil
// selector has none.
func (s *LabelSelector) Requirements() []SelectorRequirement {
	if s == nil {
		return nil
	}
	out := make([]SelectorRequirement, 0, len(s.MatchLabels)+len(s.MatchExpressions))
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		out = append(out, SelectorRequirement{Key: key, Operator: SelectorIn, Values: []string{s.MatchLabels[key]}})
	}
	return append(out, s.MatchExpressions...)
}

// Matches reports whether labels meet every condition.
func (s *LabelSelector) Matches(labels map[string]string) bool {
	for _, r := range s.Requirements() {
		value, present := labels[r.Key]
		if !r.Matches(value, present) {
			return false
		}
	}
	return true
}

// validate checks a selector of labels. As in Kubernetes, it may only name what a label may be.
func (s *LabelSelector) validate(errs *FieldErrors, field string) {
	s.validateAs(errs, field, checkLabelValue)
}

// validateOfClaims checks a selector of claims, whose values may be any text.
func (s *LabelSelector) validateOfClaims(errs *FieldErrors, field string) {
	s.validateAs(errs, field, func(string) string { return "" })
}

func (s *LabelSelector) validateAs(errs *FieldErrors, field string, checkValue func(string) string) {
	if s == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		at := field + ".match_labels[" + quote(key) + "]"
		errs.check(at, checkSelectorKey(key))
		errs.check(at, checkValue(s.MatchLabels[key]))
	}
	for i, r := range s.MatchExpressions {
		at := index(field+".match_expressions", i)
		if r.Key == "" {
			errs.Add(at+".key", "is required")
		} else {
			errs.check(at+".key", checkSelectorKey(r.Key))
		}
		for k, value := range r.Values {
			errs.check(index(at+".values", k), checkValue(value))
		}
		switch r.Operator {
		case SelectorIn, SelectorNotIn:
			if len(r.Values) == 0 {
				errs.Add(at+".values", "must name at least one value for operator %s", r.Operator)
			}
		case SelectorExists, SelectorDoesNotExist:
			if len(r.Values) > 0 {
				errs.Add(at+".values", "must be absent for operator %s", r.Operator)
			}
		}
	}
}

// checkSelectorKey checks the key of a selector. Unlike that of a label, its prefix is the name of a
// domain in lower case.
func checkSelectorKey(key string) string {
	if prefix, _, ok := strings.Cut(key, "/"); ok && prefix != strings.ToLower(prefix) {
		return fmt.Sprintf("the prefix %q of the key must be in lower case", prefix)
	}
	return checkLabelKey(key)
}

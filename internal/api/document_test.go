package api

import (
	"fmt"
	"slices"
	"testing"
)

func TestEachPlace(t *testing.T) {
	document := map[string]any{
		"spec": map[string]any{
			"paused": nil,
			"taints": []any{map[string]any{"key": "a", "value": "x"}, map[string]any{"key": "b"}, "no object"},
			"named":  map[string]any{"one": map[string]any{"value": "y"}, "two": map[string]any{}},
		},
	}
	for field, want := range map[string][]string{
		"":                    nil,
		"spec.paused":         {"spec.paused <nil>"},
		"spec.taints.*.value": {"spec.taints[0].value x"},
		"spec.taints.*.key":   {"spec.taints[0].key a", "spec.taints[1].key b"},
		"spec.named.*.value":  {`spec.named["one"].value y`},
		"spec.paused.inside":  nil,
		"spec.none.*.value":   nil,
		"none":                nil,
	} {
		t.Run(field, func(t *testing.T) {
			var got []string
			EachPlace(document, field, func(in map[string]any, name, at string) {
				got = append(got, fmt.Sprintf("%s %v", at, in[name]))
			})
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

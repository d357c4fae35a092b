package reconcile

import (
	"reflect"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestRows checks that every row of the table of decided kinds has every column, and that every kind is handled by one
// row or input. No decision depends on who may do what.
func TestRows(t *testing.T) {
	for at, k := range decidedKinds {
		if k.rank() != at {
			t.Errorf("%s is at %d, but its rank is %d", k.name(), at, k.rank())
		}
		if missing := emptyColumn(reflect.ValueOf(k).Elem()); missing != "" {
			t.Errorf("the row of %s lacks %s", k.name(), missing)
		}
	}
	for _, info := range api.Kinds {
		if info.Kind.AccessControl() {
			if decidedAs(info.Kind) != nil || inputs[info.Kind] != nil {
				t.Errorf("%s takes part in decisions", info.Kind)
			}
			continue
		}
		if (decidedAs(info.Kind) != nil) == (inputs[info.Kind] != nil) {
			t.Errorf("%s: decided %t, input %t, want exactly one of them", info.Kind, decidedAs(info.Kind) != nil, inputs[info.Kind] != nil)
		}
	}
}

// TestMissingRowsAreDetected checks that the test above detects a missing column.
func TestMissingRowsAreDetected(t *testing.T) {
	r := workloads
	r.preview = nil
	if got := emptyColumn(reflect.ValueOf(r)); got != "preview" {
		t.Errorf("emptyColumn() = %q, want preview", got)
	}
	r = workloads
	r.simulate.explainAfter = nil
	if got := emptyColumn(reflect.ValueOf(r)); got != "simulate.explainAfter" {
		t.Errorf("emptyColumn() = %q, want simulate.explainAfter", got)
	}
}

// emptyColumn returns the first column of a row that is nil, or "".
func emptyColumn(row reflect.Value) string {
	for i := range row.NumField() {
		name := row.Type().Field(i).Name
		switch field := row.Field(i); field.Kind() { //nolint:exhaustive // rows have no other kinds
		case reflect.Func:
			if field.IsNil() {
				return name
			}
		case reflect.Struct:
			if missing := emptyColumn(field); missing != "" {
				return name + "." + missing
			}
		case reflect.String:
			if field.Len() == 0 {
				return name
			}
		}
	}
	return ""
}

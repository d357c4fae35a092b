package reconcile

import (
	"reflect"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestRows: every row of the table of decided kinds has every column, and every kind
// of objects is taken in by one row or one input.
func TestRows(t *testing.T) {
	for at, k := range decidedKinds {
		if k.rank() != at {
			t.Errorf("%s is at %d, and says %d", k.name(), at, k.rank())
		}
		if missing := emptyColumn(reflect.ValueOf(k).Elem()); missing != "" {
			t.Errorf("the row of %s lacks %s", k.name(), missing)
		}
	}
	for _, info := range api.Kinds {
		if (decidedAs(info.Kind) != nil) == (inputs[info.Kind] != nil) {
			t.Errorf("%s: decided %t, an input %t; it must be one of both", info.Kind, decidedAs(info.Kind) != nil, inputs[info.Kind] != nil)
		}
	}
}

// TestMissingRowsAreDetected: the test above sees a column that is taken away.
func TestMissingRowsAreDetected(t *testing.T) {
	r := workloads
	r.preview = nil
	if got := emptyColumn(reflect.ValueOf(r)); got != "preview" {
		t.Errorf("a row without preview lacks %q", got)
	}
	r = workloads
	r.simulate.recall = nil
	if got := emptyColumn(reflect.ValueOf(r)); got != "simulate.recall" {
		t.Errorf("a row without simulate.recall lacks %q", got)
	}
}

// emptyColumn is the first column of a row that is nil, "" where there is none.
func emptyColumn(row reflect.Value) string {
	for i := range row.NumField() {
		name := row.Type().Field(i).Name
		switch field := row.Field(i); field.Kind() { //nolint:exhaustive // rows have no others
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

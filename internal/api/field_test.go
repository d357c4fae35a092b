package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// An answer must not be larger than what it is about.
func TestErrorsOfADocumentAreLimited(t *testing.T) {
	const wrong = 300
	many := func(element string) string { return "[" + strings.Repeat(element+",", wrong-1) + element + "]" }
	for name, document := range map[string]string{
		"label constraints":  `{"kind":"placement","metadata":{"name":"a"},"spec":{"label_constraints":` + many(`""`) + `}}`,
		"metric constraints": `{"kind":"placement","metadata":{"name":"a"},"spec":{"metric_constraints":` + many(`""`) + `}}`,
		"tolerations":        `{"kind":"placement","metadata":{"name":"a"},"spec":{"tolerations":` + many(`{}`) + `}}`,
		"names":              `{"kind":"placement","metadata":{"name":"a"},"spec":{"cluster_names":` + many(`"A B"`) + `}}`,
		"taints":             `{"kind":"cluster","metadata":{"name":"a"},"spec":{"taints":` + many(`{}`) + `}}`,
		"selectors":          `{"kind":"propagation_policy","metadata":{"name":"a"},"spec":{"resource_selectors":` + many(`{}`) + `}}`,
	} {
		object, err := Decode([]byte(document))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		errs := object.Validate()
		if len(errs) != maxFieldErrors+1 || errs.Count() < wrong || errs[maxFieldErrors].Error() != fmt.Sprintf("… and %d more", errs.Count()-maxFieldErrors) {
			t.Errorf("%s: %d errors that count as %d, the last: %v", name, len(errs), errs.Count(), errs[len(errs)-1])
		}
		shown, err := json.Marshal(errs)
		if err != nil || len(shown) > (maxFieldErrors+1)*2*maxErrorText {
			t.Errorf("%s: %d bytes, %v", name, len(shown), err)
		}
	}
}

// Text of the document is repeated in errors only as far as it helps.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("ü", 10*maxErrorText)
	for name, document := range map[string]string{
		"value":         `{"kind":"placement","metadata":{"name":"` + long + `"}}`,
		"kind":          `{"kind":"` + long + `"}`,
		"unknown field": `{"kind":"placement","metadata":{"name":"a","` + long + `":1}}`,
		"label":         `{"kind":"placement","metadata":{"name":"a","labels":{"` + long + `":"` + long + `"}}}`,
		"twice":         `{"kind":"placement","` + long + `":1,"` + long + `":1}`,
		"time":          `{"kind":"placement_score","metadata":{"name":"a"},"spec":{"valid_until":"` + long + `"}}`,
	} {
		object, err := Decode([]byte(document))
		errs, _ := errors.AsType[FieldErrors](err)
		if object != nil {
			errs = errs.And(object.Validate())
		}
		if len(errs) == 0 {
			t.Errorf("%s: no error, %v", name, err)
		}
		for _, e := range errs {
			if len(e.Field) > maxErrorText+4 || len(e.Message) > maxErrorText+4 || !utf8.ValidString(e.Field+e.Message) {
				t.Errorf("%s: a field of %d bytes and a message of %d", name, len(e.Field), len(e.Message))
			}
		}
	}
}

func TestJoiningErrorsCountsThem(t *testing.T) {
	list := func(n int) (errs FieldErrors) {
		for i := range n {
			errs.Add(fmt.Sprintf("f[%d]", i), "is wrong")
		}
		return errs
	}
	for _, c := range [][2]int{{0, 0}, {0, 100}, {100, 0}, {99, 1}, {100, 1}, {1, 100}, {101, 0}, {0, 101}, {250, 250}, {1, 250}, {250, 1}} {
		joined, total := list(c[0]), c[0]+c[1]
		joined.Join(list(c[1]))
		if joined.Count() != total || len(joined) != min(total, maxFieldErrors+1) {
			t.Errorf("%d and %d: %d that count as %d", c[0], c[1], len(joined), joined.Count())
		}
	}
	if both := list(250).And(FieldErrors{{Field: "g", Message: "is wrong"}, {Field: "f[1].x", Message: "is wrong"}}); both.Count() != 251 {
		t.Errorf("%d errors", both.Count())
	}
}

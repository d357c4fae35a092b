package constraint

import (
	"errors"
	"slices"
	"testing"
	"unicode/utf8"
)

func FuzzParseLabel(f *testing.F) {
	for _, seed := range []string{
		"location is DE", "location=DE", "location != DE", "is is not is", "location is not", "location in (DE, SK,,)",
		"not not in(a)", "a.b/c\tnot\nin ( d , )", "location isDE", "location > 5", "ö is ü", "a/b/c is d", "x in (\xff", "is is in (",
	} {
		f.Add(seed, "DE")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		l, err := ParseLabel(text)
		if err != nil {
			checkFault(t, text, err)
			return
		}
		if l.String() != text {
			t.Fatalf("String() = %q, want the text %q", l.String(), text)
		}
		again, err := ParseLabel(l.Canonical())
		if err != nil {
			t.Fatalf("canonical form of %q: %v", text, err)
		}
		if again.Key() != l.Key() || again.Operator() != l.Operator() || again.Canonical() != l.Canonical() {
			t.Fatalf("%q has the canonical form %q", text, again.Canonical())
		}
		for _, v := range append(slices.Clone(l.Values()), value) {
			labels := map[string]string{l.Key(): v}
			if l.Match(labels) != again.Match(labels) {
				t.Fatalf("%q and its canonical form %q differ on %q", text, l.Canonical(), v)
			}
			if l.Match(labels) != (l.Explain(labels) == "") {
				t.Fatalf("%q on %q: match %t, explanation %q", text, v, l.Match(labels), l.Explain(labels))
			}
		}
		if l.Match(nil) {
			t.Fatalf("%q matches an absent label", text)
		}
	})
}

func FuzzParseMetric(f *testing.F) {
	for _, seed := range []string{
		"load is 5", "load>=-5", "load=<.5", "load greater than or equal 1e-3", "lesser lesser than 5.", "is is not 5",
		"load gte5", "load is inf", "load > 0x10", "load is 1_000", "load = -0", "load <> 5", "ö > 5", "load is greater than 5",
	} {
		f.Add(seed, 5.0)
	}
	f.Fuzz(func(t *testing.T, text string, value float64) {
		m, err := ParseMetric(text)
		if err != nil {
			checkFault(t, text, err)
			return
		}
		if m.String() != text {
			t.Fatalf("String() = %q, want the text %q", m.String(), text)
		}
		if m.value-m.value != 0 {
			t.Fatalf("%q compares with %v, which is not finite", text, m.value)
		}
		again, err := ParseMetric(m.Canonical())
		if err != nil {
			t.Fatalf("canonical form of %q: %v", text, err)
		}
		if again.Name() != m.Name() || again.operator != m.operator || again.value != m.value || again.Canonical() != m.Canonical() {
			t.Fatalf("%q has the canonical form %q", text, again.Canonical())
		}
		for _, v := range []float64{value, m.value} {
			if m.Match(v, true) != (m.Explain(v, true) == "") {
				t.Fatalf("%q on %v: match %t, explanation %q", text, v, m.Match(v, true), m.Explain(v, true))
			}
			if m.Match(v, false) {
				t.Fatalf("%q matches a missing metric", text)
			}
		}
	})
}

// checkFault checks that an error is a *SyntaxError with a message, and that its position is in the text or at its end.
func checkFault(t *testing.T, text string, err error) {
	t.Helper()
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("%q: %T, want *SyntaxError", text, err)
	}
	if syntax.Column < 1 || syntax.Column > utf8.RuneCountInString(text)+1 {
		t.Fatalf("%q: column %d is outside the text", text, syntax.Column)
	}
	if syntax.Text != text || syntax.Message == "" || syntax.Kind == "" {
		t.Fatalf("%q: incomplete error %+v", text, syntax)
	}
	if syntax.Kind == Grammar && len(syntax.Expected) == 0 {
		t.Fatalf("%q: a grammar error without what was expected: %v", text, err)
	}
	if !utf8.ValidString(err.Error()) {
		t.Fatalf("%q: the error is not valid UTF-8: %q", text, err.Error())
	}
}

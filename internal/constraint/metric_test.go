package constraint

import (
	"math"
	"testing"
)

func TestParseMetricOperators(t *testing.T) {
	// Test every spelling with spaces, and symbols also without.
	for operator, spellings := range map[Operator]struct{ words, symbols []string }{
		Equal:          {[]string{"is"}, []string{"=", "=="}},
		NotEqual:       {[]string{"is not"}, []string{"!="}},
		Greater:        {[]string{"greater than", "gt"}, []string{">"}},
		GreaterOrEqual: {[]string{"greater than or equal", "gte"}, []string{">=", "=>"}},
		Less:           {[]string{"less than", "lesser than", "lt"}, []string{"<"}},
		LessOrEqual:    {[]string{"less than or equal", "lesser than or equal", "lte"}, []string{"<=", "=<"}},
	} {
		var texts []string
		for _, s := range spellings.words {
			texts = append(texts, "load "+s+" 5", "\tload  "+s+"\n5 ")
		}
		for _, s := range spellings.symbols {
			texts = append(texts, "load "+s+" 5", "load"+s+"5", "load "+s+"5", "load"+s+" 5")
		}
		for _, text := range texts {
			t.Run(text, func(t *testing.T) {
				m := mustMetric(t, text)
				if m.Name() != "load" || m.operator != operator || m.value != 5 {
					t.Errorf("got %q %q %v, want load %q 5", m.Name(), m.operator, m.value, operator)
				}
				if m.String() != text {
					t.Errorf("String() = %q, want the text", m.String())
				}
			})
		}
	}
}

func TestParseMetricNames(t *testing.T) {
	for _, tt := range []struct{ name, text, metric string }{
		{"underscores and digits", "green_energy_ratio_1>5", "green_energy_ratio_1"},
		{"hyphens", "cpu-load < 5", "cpu-load"},
		{"prefix", "example.com/load < 5", "example.com/load"},
		{"number", "5 > 5", "5"},
		{"keyword is", "is is 5", "is"},
		{"keyword gt", "gt gt 5", "gt"},
		{"keyword not", "not is not 5", "not"},
		{"keyword greater", "greater greater than or equal 5", "greater"},
		{"keyword less", "less less than 5", "less"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if m := mustMetric(t, tt.text); m.Name() != tt.metric || m.value != 5 {
				t.Errorf("got %q and %v, want %q and 5", m.Name(), m.value, tt.metric)
			}
		})
	}
}

func TestParseMetricNumbers(t *testing.T) {
	for text, want := range map[string]float64{
		"5": 5, "-5": -5, "+5": 5, ".5": 0.5, "-.5": -0.5, "5.": 5, "5.e1": 50, "0.25": 0.25,
		"1e3": 1000, "1E3": 1000, "1e+3": 1000, "1e-3": 0.001, "007": 7, "-0": 0, "0": 0,
		"1.7976931348623157e308": math.MaxFloat64, "1e-400": 0,
	} {
		for _, before := range []string{"load > ", "load>", "load=", "load is ", "load >="} {
			m := mustMetric(t, before+text)
			if m.value != want || math.Signbit(m.value) != math.Signbit(want) {
				t.Errorf("%q: value %v, want %v", before+text, m.value, want)
			}
		}
	}
	for _, text := range []string{
		"inf", "+Inf", "-inf", "Infinity", "nan", "NaN", "0x10", "0x1p4", "0b1", "1_000", "abc", "5.0.0", "5e", "5e+",
		"e5", ".", "-", "+", "+-5", "--5", "-.", ".e1", "5%", "5s", "1e400", "-1e400", "٣", "5f", "1e5.0",
	} {
		if m, err := ParseMetric("load is " + text); err == nil {
			t.Errorf("ParseMetric accepts %q as %v, want an error", text, m.value)
		}
	}
}

func TestMetricMatch(t *testing.T) {
	for _, tt := range []struct {
		text               string
		below, same, above bool
	}{
		{"load is 5", false, true, false},
		{"load is not 5", true, false, true},
		{"load > 5", false, false, true},
		{"load >= 5", false, true, true},
		{"load < 5", true, false, false},
		{"load <= 5", true, true, false},
	} {
		t.Run(tt.text, func(t *testing.T) {
			m := mustMetric(t, tt.text)
			for value, want := range map[float64]bool{4: tt.below, 5: tt.same, 6: tt.above, math.Nextafter(5, 0): tt.below} {
				if got := m.Match(value, true); got != want {
					t.Errorf("on %v: Match() = %t, want %t", value, got, want)
				}
				if m.Match(value, false) {
					t.Errorf("Match() of a missing metric = true")
				}
			}
			for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				if m.Match(value, true) {
					t.Errorf("Match(%v) = true", value)
				}
			}
		})
	}
	if (Metric{}).Match(0, true) {
		t.Error("the zero constraint matches")
	}
}

func TestMetricCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"load is 5":                       "load == 5",
		"load=5.0":                        "load == 5",
		"load is not +5":                  "load != 5",
		"load greater than 5e0":           "load > 5",
		"load => .50":                     "load >= 0.5",
		"load lesser than -0":             "load < 0",
		"load less than or equal 1000000": "load <= 1e+06",
		"load=<1e6":                       "load <= 1e+06",
	} {
		if got := mustMetric(t, text).Canonical(); got != want {
			t.Errorf("Canonical of %q = %q, want %q", text, got, want)
		}
	}
	if got := (Metric{}).Canonical(); got != "" {
		t.Errorf("Canonical of the zero constraint = %q", got)
	}
}

func TestMetricExplain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		value float64
		ok    bool
		want  string
	}{
		{"matches", 5, true, ""},
		{"missing", 7, false, `metric "load" has no value`},
		{"too small", 4.5, true, `metric "load" is 4.5, wanted "load gte 5"`},
		{"not a number", math.NaN(), true, `metric "load" is NaN, wanted "load gte 5"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustMetric(t, "load gte 5").Explain(tt.value, tt.ok); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func mustMetric(t testing.TB, text string) Metric {
	t.Helper()
	m, err := ParseMetric(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

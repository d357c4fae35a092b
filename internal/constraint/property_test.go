package constraint

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The generators write a known constraint in every way that the language allows. The properties compare it with the
// parsed one.

var (
	// Names that look like keywords are valid.
	nameGen  = rapid.OneOf(rapid.SampledFrom([]string{"is", "not", "in", "or", "than", "gt", "greater", "lesser", "5"}), rapid.StringMatching(`[a-zA-Z0-9_]([a-zA-Z0-9_.-]{0,12}[a-zA-Z0-9_])?`))
	keyGen   = rapid.OneOf(nameGen, rapid.Custom(func(t *rapid.T) string { return nameGen.Draw(t, "prefix") + "/" + nameGen.Draw(t, "name") }))
	gapGen   = rapid.StringMatching(`[ \t\n\r]{1,3}`)
	maybeGap = rapid.StringMatching(`[ \t\n\r]{0,2}`)
)

// write joins tokens: words with spaces between them, symbols with or without.
func write(t *rapid.T, tokens []string) string {
	var b strings.Builder
	b.WriteString(maybeGap.Draw(t, "before"))
	for i, token := range tokens {
		if i > 0 && isWord(tokens[i-1]) && isWord(token) {
			b.WriteString(gapGen.Draw(t, "gap"))
		} else if i > 0 {
			b.WriteString(maybeGap.Draw(t, "maybe a gap"))
		}
		b.WriteString(token)
	}
	b.WriteString(maybeGap.Draw(t, "after"))
	return b.String()
}

func isWord(token string) bool { return !strings.ContainsAny(token, ",()=!<>") }

func TestLabelReadsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := keyGen.Draw(t, "key")
		s := rapid.SampledFrom(labelDialect.spellings).Draw(t, "operator")
		tokens := append([]string{key}, s.tokens...)
		values := []string{nameGen.Draw(t, "value")}
		if s.operator == In || s.operator == NotIn {
			values = rapid.SliceOfN(nameGen, 1, 5).Draw(t, "values")
			tokens = append(tokens, "(")
			for i, v := range values {
				if i > 0 {
					tokens = append(tokens, ",")
				}
				tokens = append(tokens, v)
			}
			for range rapid.IntRange(0, 3).Draw(t, "trailing commas") {
				tokens = append(tokens, ",")
			}
			tokens = append(tokens, ")")
		} else {
			tokens = append(tokens, values[0])
		}
		text := write(t, tokens)

		l, err := ParseLabel(text)
		if err != nil {
			t.Fatal(err)
		}
		if l.Key() != key || l.Operator() != s.operator || !slices.Equal(l.Values(), values) || l.String() != text {
			t.Fatalf("%q was parsed as %q %q %q", text, l.Key(), l.Operator(), l.Values())
		}

		value := rapid.OneOf(nameGen, rapid.SampledFrom(values)).Draw(t, "actual value")
		want := slices.Contains(values, value) == (s.operator == Equal || s.operator == In)
		if got := l.Match(map[string]string{key: value, key + "x": values[0]}); got != want {
			t.Fatalf("%q on %q: Match() = %t, want %t", text, value, got, want)
		}
		if l.Match(map[string]string{key + "x": value}) {
			t.Fatalf("%q matches an absent label", text)
		}

		shuffled := rapid.Permutation(values).Draw(t, "shuffled")
		other := Label{key: key, operator: s.operator, values: shuffled}
		if got := other.Canonical(); got != l.Canonical() {
			t.Fatalf("canonical form %q, but %q with the values in another order", l.Canonical(), got)
		}
	})
}

func TestMetricReadsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := keyGen.Draw(t, "name")
		s := rapid.SampledFrom(metricDialect.spellings).Draw(t, "operator")
		value := rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "value")
		text := write(t, append(append([]string{name}, s.tokens...), number(value)))

		m, err := ParseMetric(text)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name() != name || m.operator != s.operator || m.value != value || m.String() != text {
			t.Fatalf("%q was parsed as %q %q %v", text, m.Name(), m.operator, m.value)
		}

		actual := rapid.OneOf(rapid.Float64(), rapid.Just(value)).Draw(t, "actual value")
		opposite := Metric{name: name, value: value, operator: map[Operator]Operator{
			Equal: NotEqual, NotEqual: Equal, Greater: LessOrEqual, LessOrEqual: Greater, Less: GreaterOrEqual, GreaterOrEqual: Less,
		}[s.operator]}
		finite := !math.IsNaN(actual) && !math.IsInf(actual, 0)
		if m.Match(actual, true) == opposite.Match(actual, true) && finite {
			t.Fatalf("%q and its opposite agree on %v", text, actual)
		}
		if m.Match(actual, false) || !finite && m.Match(actual, true) {
			t.Fatalf("%q matches a metric without a value", text)
		}
	})
}

// A word too many, in any place of an equality with a symbol, is an error.
func TestAnInsertedWordIsNeverIgnored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, value, word := keyGen.Draw(t, "key"), nameGen.Draw(t, "value"), nameGen.Draw(t, "word")
		tokens := []string{key, "==", value}
		tokens = slices.Insert(tokens, rapid.IntRange(0, 3).Draw(t, "place"), word)
		if l, err := ParseLabel(write(t, tokens)); err == nil {
			t.Fatalf("ParseLabel accepts %q as %q", tokens, l.Canonical())
		}
	})
}

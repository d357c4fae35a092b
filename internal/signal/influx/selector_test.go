package influx

import (
	"reflect"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestSelectors(t *testing.T) {
	for _, c := range []struct {
		text string
		want selector
		err  string
	}{
		{"heat", selector{measurement: "heat"}, ""},
		{"heat demand-1_ä", selector{measurement: "heat demand-1_ä"}, ""},
		{"heat.value", selector{measurement: "heat", field: "value", dotted: true}, ""},
		{`"heat.demand"."a b"`, selector{measurement: "heat.demand", field: "a b"}, ""},
		{` heat . value { b = "2" , "a,c"="\"\\" } `, selector{measurement: "heat", field: "value", dotted: true, tags: []tag{{"a,c", `"\`}, {"b", "2"}}}, ""},
		{"", selector{}, "measurement is missing"},
		{".value", selector{}, "measurement is missing"},
		{"heat.", selector{}, "field is missing"},
		{"a.b.c", selector{}, `".c" is unexpected`},
		{`heat{}`, selector{}, "tag is missing"},
		{`heat{a}`, selector{}, `the tag "a" must be followed by its value`},
		{`heat{a=b}`, selector{}, `the tag "a" must be followed by its value`},
		{`heat{a="b"`, selector{}, "comma or the closing brace"},
		{`heat{a="b}`, selector{}, "not closed"},
		{`heat{a="b",}`, selector{}, "tag is missing"},
		{`heat{a="b"}x`, selector{}, `"x" is unexpected`},
		{`heat{a=""}`, selector{}, "value of tag a is empty"},
		{`heat{a="1",a="2"}`, selector{}, "selected twice"},
		{`heat{_field="1"}`, selector{}, "uses that name itself"},
		{`heat{a="\n"}`, selector{}, "a backslash in"},
		{`he"at`, selector{}, "unexpected"},
		{`"heat`, selector{}, "not closed"},
		{`""`, selector{}, "measurement is empty"},
		{"a\nb", selector{}, "control characters"},
		{"a\xff", selector{}, "UTF-8"},
	} {
		got, err := parse(c.text)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: got %v, want %q", c.text, err, c.err)
			}
		} else if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
}

// FuzzSelector checks that a selector that is parsed and formatted again has the same meaning.
func FuzzSelector(f *testing.F) {
	for _, seed := range []string{"heat", "heat.value", `heat{a="b", c="d"}`, `"a.b"."c d"{"x=y"="\"\\"}`, `a b . c`, `"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := parse(text)
		if err != nil {
			return
		}
		first.dotted = false
		second, err := parse(first.String())
		second.dotted = false
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%q was read as %+v, formatted as %s, and read as %+v, %v", text, first, first, second, err)
		}
	})
}

// TestLiteralsHoldTheirText reads literals back as the languages read them:
// nothing ends them early, nothing in them is evaluated, and nothing is lost.
func TestLiteralsHoldTheirText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("'\"\\${}x ä\n\t\x01;"), unicode.Letter)).Draw(t, "text")
		if got, ok := readFlux(fluxString(text)); !ok || got != text {
			t.Errorf("Flux: %q was formatted as %s, and read as %q", text, fluxString(text), got)
		}
		if got, ok := readInfluxQL(influxQLName(text), '"'); !ok || got != text {
			t.Errorf("InfluxQL: name %q was formatted as %s, and read as %q", text, influxQLName(text), got)
		}
		if got, ok := readInfluxQL(influxQLString(text), '\''); !ok || got != text {
			t.Errorf("InfluxQL: string %q was formatted as %s, and read as %q", text, influxQLString(text), got)
		}
	})
}

// readFlux parses a string literal as the specification of Flux describes it.
func readFlux(literal string) (string, bool) {
	if len(literal) < 2 || literal[0] != '"' || literal[len(literal)-1] != '"' {
		return "", false
	}
	inside := literal[1 : len(literal)-1]
	var b strings.Builder
	for i := 0; i < len(inside); i++ {
		switch c := inside[i]; {
		case c == '"', strings.HasPrefix(inside[i:], "${"):
			return "", false
		case c != '\\':
			b.WriteByte(c)
		case i+3 < len(inside) && inside[i+1] == 'x':
			digits := "0123456789abcdef"
			b.WriteByte(byte(strings.IndexByte(digits, inside[i+2])<<4 | strings.IndexByte(digits, inside[i+3])))
			i += 3
		case i+1 < len(inside) && (inside[i+1] == '"' || inside[i+1] == '\\'):
			b.WriteByte(inside[i+1])
			i++
		default:
			return "", false
		}
	}
	return b.String(), true
}

// readInfluxQL parses a quoted name or string as InfluxQL's scanner does.
func readInfluxQL(literal string, quote byte) (string, bool) {
	if len(literal) < 2 || literal[0] != quote || literal[len(literal)-1] != quote {
		return "", false
	}
	inside := literal[1 : len(literal)-1]
	var b strings.Builder
	for i := 0; i < len(inside); i++ {
		switch c := inside[i]; {
		case c == quote, c == '\n':
			return "", false
		case c != '\\':
			b.WriteByte(c)
		case i+1 < len(inside) && inside[i+1] == 'n':
			b.WriteByte('\n')
			i++
		case i+1 < len(inside) && (inside[i+1] == quote || inside[i+1] == '\\'):
			b.WriteByte(inside[i+1])
			i++
		default:
			return "", false
		}
	}
	return b.String(), true
}

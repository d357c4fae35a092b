package constraint

import (
	"slices"
	"strings"
	"testing"
)

func TestParseLabel(t *testing.T) {
	name63 := strings.Repeat("n", 63)
	prefix253 := strings.Repeat("p", 253)
	for _, tt := range []struct {
		name, text, key string
		operator        Operator
		values          []string
	}{
		{"word equality", "location is DE", "location", Equal, []string{"DE"}},
		{"single equals sign", "location = DE", "location", Equal, []string{"DE"}},
		{"double equals sign", "location == DE", "location", Equal, []string{"DE"}},
		{"equals sign without blanks", "location=DE", "location", Equal, []string{"DE"}},
		{"double equals sign without blanks", "location==DE", "location", Equal, []string{"DE"}},
		{"blank before the symbol only", "location =DE", "location", Equal, []string{"DE"}},
		{"blank after the symbol only", "location= DE", "location", Equal, []string{"DE"}},
		{"word inequality", "location is not DE", "location", NotEqual, []string{"DE"}},
		{"symbol inequality", "location != DE", "location", NotEqual, []string{"DE"}},
		{"symbol inequality without blanks", "location!=DE", "location", NotEqual, []string{"DE"}},
		{"list", "location in (DE, SK)", "location", In, []string{"DE", "SK"}},
		{"list without blanks", "location in(DE,SK)", "location", In, []string{"DE", "SK"}},
		{"list with blanks everywhere", "location in ( DE , SK )", "location", In, []string{"DE", "SK"}},
		{"list of one", "location in (DE)", "location", In, []string{"DE"}},
		{"trailing comma", "location in (DE,)", "location", In, []string{"DE"}},
		{"trailing commas", "location in (DE, SK,,,)", "location", In, []string{"DE", "SK"}},
		{"trailing commas with blanks", "location in (DE , , )", "location", In, []string{"DE"}},
		{"repetitions are kept", "location in (DE, SK, DE)", "location", In, []string{"DE", "SK", "DE"}},
		{"negated list", "location not in (DE, SK)", "location", NotIn, []string{"DE", "SK"}},
		{"negated list without blanks", "location not in(DE,SK,)", "location", NotIn, []string{"DE", "SK"}},
		{"blanks around", "  location   is   DE  ", "location", Equal, []string{"DE"}},
		{"tabs", "\tlocation\tis\tnot\tDE\t", "location", NotEqual, []string{"DE"}},
		{"line breaks", "location\nnot\r\nin\n(\nDE,\nSK,\n)\n", "location", NotIn, []string{"DE", "SK"}},
		{"is is is", "is is is", "is", Equal, []string{"is"}},
		{"is is not is", "is is not is", "is", NotEqual, []string{"is"}},
		{"is=is", "is=is", "is", Equal, []string{"is"}},
		{"value not", "location is not", "location", Equal, []string{"not"}},
		{"value not and a blank", "not is not ", "not", Equal, []string{"not"}},
		{"not the value not", "location is not not", "location", NotEqual, []string{"not"}},
		{"value in", "location is in", "location", Equal, []string{"in"}},
		{"not the value in", "location is not in", "location", NotEqual, []string{"in"}},
		{"value starting with a keyword", "location is notDE", "location", Equal, []string{"notDE"}},
		{"key not", "not in (a)", "not", In, []string{"a"}},
		{"key not negated", "not not in (a)", "not", NotIn, []string{"a"}},
		{"key in", "in in (in)", "in", In, []string{"in"}},
		{"keywords in a list", "location in (is, not, in)", "location", In, []string{"is", "not", "in"}},
		{"key of upper case", "IS is DE", "IS", Equal, []string{"DE"}},
		{"prefixed key", "example.com/location is DE.GER", "example.com/location", Equal, []string{"DE.GER"}},
		{"underscores at the ends", "_a_ is _b_", "_a_", Equal, []string{"_b_"}},
		{"one character each", "a=b", "a", Equal, []string{"b"}},
		{"digits", "1=2", "1", Equal, []string{"2"}},
		{"joints in a row", "a-.-b is c..d", "a-.-b", Equal, []string{"c..d"}},
		{"longest key and value", prefix253 + "/" + name63 + "=" + name63, prefix253 + "/" + name63, Equal, []string{name63}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := ParseLabel(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if l.Key() != tt.key || l.Operator() != tt.operator || !slices.Equal(l.Values(), tt.values) {
				t.Errorf("got %q %q %q, want %q %q %q", l.Key(), l.Operator(), l.Values(), tt.key, tt.operator, tt.values)
			}
			if l.String() != tt.text {
				t.Errorf("String() = %q, want the text %q", l.String(), tt.text)
			}
		})
	}
}

func TestLabelMatch(t *testing.T) {
	for _, tt := range []struct {
		text          string
		de, sk, empty bool // results for location = DE, SK and ""
	}{
		{text: "location is DE", de: true},
		{text: "location is not DE", sk: true, empty: true},
		{text: "location in (DE, SK)", de: true, sk: true},
		{text: "location in (SK)", sk: true},
		{text: "location not in (DE)", sk: true, empty: true},
		{text: "location not in (DE, SK)", empty: true},
		{text: "location is de"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			l := mustLabel(t, tt.text)
			for value, want := range map[string]bool{"DE": tt.de, "SK": tt.sk, "": tt.empty} {
				if got := l.Match(map[string]string{"location": value}); got != want {
					t.Errorf("on %q: Match() = %t, want %t", value, got, want)
				}
			}
			for _, absent := range []map[string]string{nil, {}, {"country": "DE"}} {
				if l.Match(absent) {
					t.Errorf("Match(%v) = true without the label", absent)
				}
			}
		})
	}
	if (Label{}).Match(map[string]string{"": ""}) {
		t.Error("the zero constraint matches")
	}
}

func TestLabelCanonical(t *testing.T) {
	for _, tt := range []struct {
		want  string
		texts []string
	}{
		{"location == DE", []string{"location is DE", "location=DE", " location\t==\nDE "}},
		{"location != DE", []string{"location is not DE", "location!=DE"}},
		{"location in (DE, SK)", []string{"location in (DE, SK)", "location in(SK,DE,SK,,)"}},
		{"location not in (DE)", []string{"location not in (DE)", "location not in ( DE, DE )"}},
		{"is == not", []string{"is is not", "is=not"}},
	} {
		for _, text := range tt.texts {
			if got := mustLabel(t, text).Canonical(); got != tt.want {
				t.Errorf("Canonical of %q = %q, want %q", text, got, tt.want)
			}
		}
	}
	if got := (Label{}).Canonical(); got != "" {
		t.Errorf("Canonical of the zero constraint = %q", got)
	}
}

func TestLabelCanonicalLeavesValuesAlone(t *testing.T) {
	l := mustLabel(t, "location in (SK, DE, SK)")
	_ = l.Canonical()
	if want := []string{"SK", "DE", "SK"}; !slices.Equal(l.Values(), want) {
		t.Errorf("Values() = %q, want %q", l.Values(), want)
	}
}

func TestLabelExplain(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		labels     map[string]string
		want       string
	}{
		{"matches", "location is DE", map[string]string{"location": "DE"}, ""},
		{"absent", "location is DE", nil, `label "location" is absent`},
		{"absent and negated", "location is not DE", map[string]string{"tier": "x"}, `label "location" is absent`},
		{"other value", "location is DE", map[string]string{"location": "SK"}, `label "location" is "SK", wanted "location is DE"`},
		{"list, in the user's spelling", "location  in (DE,)", map[string]string{"location": "SK"}, `label "location" is "SK", wanted "location  in (DE,)"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustLabel(t, tt.text).Explain(tt.labels); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func mustLabel(t testing.TB, text string) Label {
	t.Helper()
	l, err := ParseLabel(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

package cli

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"
)

func TestToYAML(t *testing.T) {
	for document, want := range map[string]string{
		`{"b":[1,2.5,1e30],"a":{"x":null,"y":true}}`:           "a:\n  x: null\n  \"y\": true\nb:\n- 1\n- 2.5\n- 1e30\n",
		`{"a":"true","b":"1","c":"","d":"a: b","e":"x\ny"}`:    "a: \"true\"\nb: \"1\"\nc: \"\"\nd: 'a: b'\ne: |-\n  x\n  y\n",
		`{"a\u001b":"red\u202e","b":[],"c":{}}`:                "\"a\\e\": \"red\\U0000202E\"\nb: []\nc: {}\n",
		`{"no":"N","at":"1:20","<<":"="}`:                      "\"<<\": =\nat: \"1:20\"\n\"no\": \"N\"\n",
		`{"tag":"\udb40\udc41","del":"\u007f","nel":"\u0085"}`: "del: \"\\x7F\"\nnel: \"\\N\"\ntag: \"\\U000E0041\"\n",
	} {
		if got, err := toYAML([]byte(document)); err != nil || string(got) != want {
			t.Errorf("%s became %q (%v), want %q", document, got, err, want)
		}
	}
}

// The document says the same, and contains nothing that a terminal interprets.
func FuzzToYAML(f *testing.F) {
	f.Add("a\x1b\x7f\u202e\U000e0041\u009b\n\"\\: #", 1.5)
	f.Add("- 0x1f\ttrue", -1e300)
	f.Fuzz(func(t *testing.T, text string, number float64) {
		document, err := json.Marshal(map[string]any{text: []any{text, number, map[string]any{"a": text}}})
		if err != nil {
			t.Skip()
		}
		out, err := toYAML(document)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(string(out), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q became %q", document, out)
		}
		var before, after any
		if err := json.Unmarshal(document, &before); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(out, &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q says %v (%v), want %v", out, after, err, before)
		}
	})
}

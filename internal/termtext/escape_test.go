package termtext

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"eu-1, \"größer\" 東京 🚀": "eu-1, \"größer\" 東京 🚀",
		"\x1b[2Jgone":           `\x1b[2Jgone`,
		"a\r\nb\tc\x00\x7f":     `a\r\nb\tc\x00\x7f`,
		"admin\u202enimda":      `admin\u202enimda`,
		"zero\u200bwidth\ufeff": `zero\u200bwidth\ufeff`,
		"c1 \u009b31m":          `c1 \u009b31m`,
		"bad \xff\xfe":          `bad \xff\xfe`,
		"tag \U000e0041":        `tag \U000e0041`,
		"real \ufffd":           "real \ufffd",
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	if got := Lines("a\nb\x1b"); got != "a\nb\\x1b" {
		t.Errorf("Lines() = %q", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b\xff\u202e\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Text(text); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("Text(%q) = %q", text, got)
		}
	})
}

// The document stays equivalent, and contains nothing that a terminal interprets.
func FuzzJSON(f *testing.F) {
	f.Add("a\x1b\x7f\u202e\U000e0041\u009b\n\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		before, err := json.MarshalIndent(map[string]string{text: text}, "", "  ")
		if err != nil {
			t.Skip()
		}
		after := escapeJSON(before)
		if strings.ContainsFunc(string(after), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q became %q", before, after)
		}
		var x, y map[string]string
		if json.Unmarshal(before, &x) != nil || json.Unmarshal(after, &y) != nil || !reflect.DeepEqual(x, y) {
			t.Errorf("%q has another meaning than %q", after, before)
		}
	})
}

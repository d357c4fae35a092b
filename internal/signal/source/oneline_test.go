package source

import (
	"strings"
	"testing"
)

func TestOneLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" line 1:1: bad \n\tat org.x(Y.java:1)", "line 1:1: bad"},
		{"\nbad\r\n", "bad"},
		{"\x1b[31mred\x00", "[31mred"},
		{"a\xffb", "a?b"},
		{strings.Repeat("ä", 200), strings.Repeat("ä", 200)},
		{strings.Repeat("ä", 201), strings.Repeat("ä", 200) + "..."},
	} {
		if got := OneLine(c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

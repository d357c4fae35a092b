package cli

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A table fits the terminal, but for what names its rows, and has colours unless nobody wants them.
func testTerminal(t *testing.T, f *fleet) {
	full := f.must("get", "clusters", "-o", "wide")
	f.env.Terminal.width = 60
	for _, name := range []string{"NO_COLOR", "TERM"} {
		f.vars[name] = "dumb"
		out := f.must("get", "clusters", "-o", "wide")
		delete(f.vars, name)
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 150 {
				t.Errorf("%q has %d columns", line, n)
			}
		}
		if strings.Contains(out, "\x1b") || !strings.Contains(out, "…") || len(out) >= len(full) {
			t.Errorf("%q", out)
		}
	}
	if out := f.must("get", "clusters"); !strings.Contains(out, string(green)+"online\x1b[0m") {
		t.Errorf("%q has no colours", out)
	}
	f.env.Terminal.width = 1
	if out := f.must("get", "placements", "-A"); !strings.Contains(out, "shop") || !strings.Contains(out, "web") {
		t.Errorf("%q has no names", out)
	}
}

func TestFit(t *testing.T) {
	header := []string{"NAME", "STATE", "MESSAGE"}
	for _, test := range []struct {
		name         string
		widths, want []int
		width        int
	}{
		{"fits", []int{20, 10, 30}, []int{20, 10, 30}, 64},
		{"the widest is narrowed", []int{20, 10, 30}, []int{20, 10, 20}, 54},
		{"the name stays", []int{90, 10, 30}, []int{90, 10, narrowest}, 80},
		{"several", []int{10, 40, 30}, []int{10, 18, 18}, 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := fit(header, test.widths, test.width); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

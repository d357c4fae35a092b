package constraint

import (
	"errors"
	"strings"
	"testing"
)

func TestVersionMatch(t *testing.T) {
	for _, tt := range []struct {
		constraint string
		matches    []string
		others     []string
	}{
		{">= 1.33, < 2", []string{"v1.33.0", "1.33", "v1.33.2+k3s1", "v1.99.9-eks-4f2e1a", "v1.33.0-rc.1", "v1.33.1-gke.1023000", "1.33+"},
			[]string{"v1.32.9", "v1.32.9-eks-1", "v2.0.0", "v2.0.0-alpha.1", "v1.9.0", "", "latest", "v1.33.x", "v", "-", "1.33.", "v1.99999999999999999999", " 1.33"}},
		{"1.33.2", []string{"v1.33.2", "v1.33.2+k3s1", "v1.33.2-eks-1"}, []string{"v1.33.20", "v1.33.1", "1.33"}},
		{"= v1.33", []string{"v1.33.0", "1.33"}, []string{"v1.33.1"}},
		{"!= 1.33.2", []string{"v1.33.1"}, []string{"v1.33.2", "v1.33.2+rke2r1", "", "latest"}},
		{"~> 1.33.0", []string{"v1.33.0", "v1.33.9"}, []string{"v1.34.0", "v1.32.0"}},
		{"~> 1.33", []string{"v1.33.0", "v1.34.9"}, []string{"v2.0.0", "v1.32.0"}},
		{">1.32,<=1.33.1", []string{"v1.32.1", "v1.33.1"}, []string{"v1.32.0", "v1.33.2"}},
		{">= 2, < 1", nil, []string{"v1.0.0", "v2.0.0", "v1.5.0"}},
	} {
		v, err := ParseVersion(tt.constraint)
		if err != nil {
			t.Errorf("%q: %v", tt.constraint, err)
			continue
		}
		again, err := ParseVersion(v.Canonical())
		if err != nil || again.Canonical() != v.Canonical() || v.String() != tt.constraint {
			t.Errorf("%q has the canonical form %q, and that one %q (%v)", v, v.Canonical(), again.Canonical(), err)
		}
		for _, text := range tt.matches {
			if !v.Match(text) || !again.Match(text) || v.Explain(text) != "" {
				t.Errorf("%q on %q: explained with %q, want a match", v, text, v.Explain(text))
			}
		}
		for _, text := range tt.others {
			if v.Match(text) || again.Match(text) || v.Explain(text) == "" {
				t.Errorf("%q matches %q", v, text)
			}
		}
	}
}

func TestVersionExplain(t *testing.T) {
	v, err := ParseVersion(">= 1.33, < 2")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                     `version is not known, wanted ">= 1.33, < 2"`,
		"latest":               `version "latest" cannot be compared, wanted ">= 1.33, < 2"`,
		"v1.32.1-eks-4f2e1a":   `version is "v1.32.1-eks-4f2e1a", wanted ">= 1.33, < 2"`,
		"v1.33.0-alpha.1+abcd": "",
	} {
		if got := v.Explain(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestVersionCanonical(t *testing.T) {
	for _, spellings := range [][]string{
		{">= 1.33, < 2", "<2,>=v1.33", " >=  1.33 ,\t< 2 ", ">=1.33,<2,<2"},
		{"1.33", "= 1.33", "=v1.33"},
		{"~> 1.33.0", "~>1.33.0"},
	} {
		for _, text := range spellings {
			first, _ := ParseVersion(spellings[0])
			v, err := ParseVersion(text)
			if err != nil || v.Canonical() != first.Canonical() {
				t.Errorf("%q: got %q, want %q (%v)", text, v.Canonical(), first.Canonical(), err)
			}
		}
	}
	short, _ := ParseVersion("~> 1.33")
	long, _ := ParseVersion("~> 1.33.0")
	if short.Canonical() == long.Canonical() {
		t.Error("~> 1.33 and ~> 1.33.0 have the same canonical form")
	}
}

func TestVersionSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "column 1: a version is missing; expected a version such as 1.33",
		" ":                        "column 2: a version is missing",
		">= 1.33,":                 "column 9: a version is missing",
		">= 1.33,, < 2":            "column 9: a version is missing",
		">= 1.33 < 2":              `column 1: ">= 1.33 < 2" is not a condition on a version`,
		">= 1.33, smaller":         `column 10: "smaller" is not a condition on a version`,
		"1.33.x":                   `column 1: "1.33.x" is not a condition on a version`,
		"=> 1.33":                  `column 1: "=> 1.33" is not a condition on a version`,
		"1.33rc1":                  `column 1: "1.33rc1" is not a condition on a version`,
		">= 1, = 1.33.2-eks-1":     "column 15: only the numbers of a version are compared; expected the end",
		"1.33.2+k3s1":              "column 7: only the numbers of a version are compared; expected the end",
		">= 99999999999999999999":  "is not a condition on a version",
		"ö, 1 2":                   `column 1: "ö" is not a condition on a version`,
		strings.Repeat("1.", 5000): "is not a condition on a version",
	} {
		_, err := ParseVersion(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, seed := range []string{">= 1.33, < 2", "~> 1.33.0", "v1.33.2+k3s1", "=>1", "1,,2", "!= 0.0.0.0", "\xff"} {
		f.Add(seed, "v1.33.2-eks-4f2e1a")
	}
	f.Fuzz(func(t *testing.T, text, is string) {
		v, err := ParseVersion(text)
		if err != nil {
			checkFault(t, text, err)
			return
		}
		again, err := ParseVersion(v.Canonical())
		if err != nil {
			t.Fatalf("canonical form of %q: %v", text, err)
		}
		if again.Canonical() != v.Canonical() || again.Match(is) != v.Match(is) {
			t.Fatalf("%q has the canonical form %q, and that one %q; on %q they match: %t and %t", text, v.Canonical(), again.Canonical(), is, v.Match(is), again.Match(is))
		}
		if v.Match("") || v.String() != text {
			t.Fatalf("%q matches an unknown version, or was changed to %q", text, v)
		}
	})
}

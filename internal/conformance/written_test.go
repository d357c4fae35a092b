package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// toyDocument is a case that a driver translates.
type toyDocument struct {
	Written
	A int `json:"a"`
	B struct {
		C, D string
	} `json:"b"`
}

const toyFile = `{"count":1,"cases":[{"id":"own-1","kind":"toy","name":"n","source":"s","a":1,"b":{"C":"x","D":"y"}}]}`

// TestUnreadFields checks that the suite reports a field that does not affect the translation, unless it is listed as
// irrelevant.
func TestUnreadFields(t *testing.T) {
	cases, err := ReadCases[toyDocument]("nobody", []byte(toyFile))
	if err != nil || len(cases) != 1 || cases[0].ID != "own-1" || len(cases[0].Raw) == 0 {
		t.Fatalf("read %+v, %v", cases, err)
	}
	for name, tt := range map[string]struct {
		laid func(*toyDocument) (string, error)
		want []string
	}{
		"all":              {func(c *toyDocument) (string, error) { return fmt.Sprint(c.A, c.B), nil }, nil},
		"one":              {func(c *toyDocument) (string, error) { return fmt.Sprint(c.A), nil }, []string{"own-1/b/C", "own-1/b/D"}},
		"none":             {func(*toyDocument) (string, error) { return "", nil }, []string{"own-1/a", "own-1/b/C", "own-1/b/D"}},
		"one further down": {func(c *toyDocument) (string, error) { return fmt.Sprint(c.A, c.B.C), nil }, []string{"own-1/b/D"}},
	} {
		got, err := Unread(cases, tt.laid, func(_ *toyDocument, path string) bool {
			return slices.Contains([]string{"/id", "/kind", "/name", "/source"}, path)
		})
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: found %q, want %q (%v)", name, got, tt.want, err)
		}
	}
}

// TestReadCases checks that unknown fields and incomplete cases are errors.
func TestReadCases(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(toyFile, `"a":1`, `"z":1`, 1): `unknown field "z"`,
		strings.Replace(toyFile, `:1,`, `:2,`, 1):     "there are 1, and the file says 2",
		`{"count":2,"cases":[{"id":"a"},{"id":"a"}]}`: "a is there twice",
	} {
		if _, err := ReadCases[toyDocument]("nobody", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

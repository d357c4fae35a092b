package api

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestProblemTypes(t *testing.T) {
	shape := regexp.MustCompile(`^urn:scheduler:problem:[a-z]+(-[a-z]+)*$`)
	seen := map[ProblemType]bool{}
	last := 0
	for _, info := range ProblemTypes {
		if seen[info.Type] || !shape.MatchString(string(info.Type)) || info.Status < last || info.Title == "" || !strings.HasSuffix(info.Doc, ".") {
			t.Errorf("unexpected entry %+v", info)
		}
		seen[info.Type], last = true, info.Status
	}
	if _, ok := LookupProblem("about:blank"); ok {
		t.Error("about:blank is documented")
	}
}

// The guide contains this table. To update it, run the test with UPDATE_GUIDE=1, then make
// generate.
func TestGuideListsProblemTypes(t *testing.T) {
	var table strings.Builder
	table.WriteString("| Type | Status | When, and what to do |\n|---|---|---|\n")
	for _, info := range ProblemTypes {
		fmt.Fprintf(&table, "| `%s` | %d | %s |\n", info.Type, info.Status, info.Doc)
	}
	const begin, end = "<!-- the types of problem: made from internal/api/problem.go -->\n\n", "\n<!-- end of the types -->"
	const template = "../../templates/guides/errors.md.tmpl"
	for _, path := range []string{template, "../../docs/guides/errors.md"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, hasBegin := strings.Cut(string(data), begin)
		present, tail, hasEnd := strings.Cut(rest, end)
		if !hasBegin || !hasEnd {
			t.Fatalf("%s has no markers for the table", path)
		}
		if present == table.String() {
			continue
		}
		if path == template && os.Getenv("UPDATE_GUIDE") != "" {
			if err := os.WriteFile(path, []byte(head+begin+table.String()+end+tail), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("the table in %s is out of date", path)
	}
}

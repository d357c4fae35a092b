//go:build faults

package faults

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// rows is how many kinds of faults there are.
const rows = 36

// row is a row of the table in the package comment.
type row struct {
	number                               int
	fault, injected, often, oracle, test string
}

// noTest starts the last column of a row that has a reason instead of a test.
const noTest = "none: "

var tableLine = regexp.MustCompile(`^\s*(\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+)$`)

// table reads the table.
func table(t testing.TB) map[int]row {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]row{}
	for line := range strings.Lines(file.Doc.Text()) {
		cells := tableLine.FindStringSubmatch(strings.TrimSpace(line))
		if cells == nil {
			continue
		}
		number, err := strconv.Atoi(cells[1])
		if err != nil || out[number].number != 0 {
			t.Errorf("row %s occurs twice", cells[1])
		}
		out[number] = row{number, cells[2], cells[3], cells[4], cells[5], cells[6]}
	}
	return out
}

// TestTableIsComplete checks that every kind of fault has an existing test, or a reason why it has none, and that every
// test is in the table.
func TestTableIsComplete(t *testing.T) {
	list := table(t)
	tests := testNames(t)
	named := map[string]bool{}
	for number := 1; number <= rows; number++ {
		r, ok := list[number]
		if !ok {
			t.Errorf("row %d is missing", number)
			continue
		}
		if reason, ok := strings.CutPrefix(r.test, noTest); ok {
			if len(reason) < 40 {
				t.Errorf("row %d has neither a test nor a reason: %q", number, reason)
			}
			continue
		}
		for name := range strings.SplitSeq(r.test, ", ") {
			if !slices.Contains(tests, name) {
				t.Errorf("row %d names %s, which is not a test", number, name)
			}
			named[name] = true
		}
	}
	if len(list) != rows {
		t.Errorf("%d rows, want %d faults", len(list), rows)
	}
	for _, name := range tests {
		if strings.HasPrefix(name, "TestFault") && !named[name] {
			t.Errorf("%s is not in any row", name)
		}
	}
}

// testNames returns the names of the tests in this package.
func testNames(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// fault counts how often the fault of a row has happened.
type fault struct {
	t     testing.TB
	fired atomic.Int64
}

// begin starts the test of a row, which fails if its fault never happens.
func begin(t testing.TB, number int) *fault {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	r := table(t)[number]
	if !slices.Contains(strings.Split(r.test, ", "), name) {
		t.Errorf("row %d does not name %s", number, name)
	}
	f := &fault{t: t}
	t.Cleanup(func() { f.verdict(r) })
	return f
}

// verdict fails the test if its fault never happened.
func (f *fault) verdict(r row) {
	if f.t.Skipped() {
		f.t.Errorf("row %d was skipped", r.number)
	} else if n := f.fired.Load(); n == 0 {
		f.t.Errorf("row %d, %s: the fault never happened", r.number, r.fault)
	} else {
		f.t.Logf("row %d, %s: happened %d times", r.number, r.fault, n)
	}
}

// happened counts an observed fault.
func (f *fault) happened() { f.fired.Add(1) }

package httpapi

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Every documented problem type is used in the code, and every problem has a type from the table.
func TestEveryProblemTypeIsUsed(t *testing.T) {
	declared := constantsOf(t, "../api")
	used := map[string]bool{}
	for _, dir := range []string{".", "arktos", "gitops", "operation", "problem"} {
		files, err := parser.ParseDir(token.NewFileSet(), dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // no types needed
		if err != nil {
			t.Fatal(err)
		}
		for _, pkg := range files {
			ast.Inspect(pkg, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "api" {
						used[s.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	// Only the library returns these.
	for _, general := range []string{"ProblemNotAcceptable"} {
		used[general] = true
	}
	for name, value := range declared {
		if _, ok := api.LookupProblem(value); !ok {
			t.Errorf("%s is %q, which is not in the table", name, value)
		}
		if !used[name] {
			t.Errorf("no answer has the type %s", name)
		}
	}
	if len(declared) != len(api.ProblemTypes) {
		t.Errorf("%d constants, %d types in the table", len(declared), len(api.ProblemTypes))
	}
}

// constantsOf returns the problem types that a package declares, by name.
func constantsOf(t *testing.T, dir string) map[string]api.ProblemType {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), dir+"/problem.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]api.ProblemType{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if sum, ok := spec.Values[0].(*ast.BinaryExpr); ok {
			if literal, ok := sum.Y.(*ast.BasicLit); ok {
				constants[spec.Names[0].Name] = api.ProblemType("urn:scheduler:problem:" + strings.Trim(literal.Value, `"`))
			}
		}
		return true
	})
	return constants
}

// Errors of the library have a problem type, whatever their status.
func TestProblemsOfTheLibraryHaveATypeOfTheTable(t *testing.T) {
	for status := 400; status < 600; status++ {
		err := huma.NewError(status, "no")
		data, _ := json.Marshal(err)
		var p api.Problem
		if json.Unmarshal(data, &p) != nil {
			t.Fatalf("not JSON: %s", data)
		}
		if info, ok := api.LookupProblem(p.Type); !ok || info.Status != p.Status {
			t.Errorf("%d: got %s", status, data)
		}
		general := api.ProblemOfStatus(status)
		if info, _ := api.LookupProblem(general); p.Type != general || info.Status/100 != status/100 {
			t.Errorf("%d has the type %s, want the general type of its class", status, p.Type)
		}
	}
}

func TestOpenAPIListsTheProblemTypes(t *testing.T) {
	s := startServer(t)
	a := s.do(http.MethodGet, openAPIPath, "")
	for _, info := range api.ProblemTypes {
		if !strings.Contains(string(a.body), `"`+string(info.Type)+`"`) {
			t.Errorf("the document does not list %s", info.Type)
		}
	}
}

// Package tools_test checks the rules that the linters apply to the project.
package tools_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/OpenPeeDeeP/depguard/v2"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/go/analysis"
)

const (
	root   = "../.."
	module = "github.com/scheduler/terraform-provider-scheduler/"
)

// rule says what some files must not import.
type rule struct {
	Files    []string
	ListMode string `yaml:"list-mode"`
	Allow    []string
	Deny     []struct{ Pkg, Desc string }
}

// rules are those of the linter, as golangci-lint reads them.
func rules(t *testing.T) map[string]rule {
	t.Helper()
	data, err := os.ReadFile(root + "/.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct{ Rules map[string]rule }
			}
		}
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Linters.Settings.Depguard.Rules) == 0 {
		t.Fatal("there are no rules")
	}
	return config.Linters.Settings.Depguard.Rules
}

// refused are the imports of a file that one of some rules forbids.
func refused(t *testing.T, rules map[string]rule, file string, imports ...string) []string {
	t.Helper()
	settings := depguard.LinterSettings{}
	for name, r := range rules {
		deny := map[string]string{}
		for _, d := range r.Deny {
			deny[d.Pkg] = d.Desc
		}
		settings[name] = &depguard.List{ListMode: r.ListMode, Files: r.Files, Allow: r.Allow, Deny: deny}
	}
	analyzer, err := depguard.NewAnalyzer(&settings)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("package p\n")
	for _, i := range imports {
		text.WriteString("import _ " + strconv.Quote(i) + "\n")
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text.String(), parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	_, err = analyzer.Run(&analysis.Pass{Fset: files, Files: []*ast.File{parsed}, Report: func(d analysis.Diagnostic) {
		out = append(out, imports[files.Position(d.Pos).Line-2])
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// imported are the packages of the project, as paths in it, with what they import
// outside of tests.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "tools"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		dir = filepath.ToSlash(dir)
		for _, i := range parsed.Imports {
			out[dir] = append(out[dir], strings.Trim(i.Path.Value, `"`))
		}
		if out[dir] == nil {
			out[dir] = []string{} // a package all the same
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every package says what of the project it may import.
func TestEveryPackageHasARule(t *testing.T) {
	all := rules(t)
	for dir := range imported(t) {
		if dir != "provider" && !strings.HasPrefix(dir, "internal/") {
			continue // programs
		}
		if len(refused(t, all, "/checkout/"+dir+"/file.go", module+"internal/new")) == 0 {
			t.Errorf("%s may import any package of the project: give it a rule in .golangci.yml", dir)
		}
	}
}

// Every rule refuses what it names, in a package that there is.
func TestEveryRuleRefuses(t *testing.T) {
	packages := slices.Sorted(maps.Keys(imported(t)))
	for name, r := range rules(t) {
		for _, d := range r.Deny {
			forbidden := strings.TrimSuffix(d.Pkg, "$")
			applies := func(dir string) bool {
				return len(refused(t, map[string]rule{name: r}, path.Join("/checkout", dir, "file.go"), forbidden)) > 0
			}
			if !slices.ContainsFunc(packages, applies) {
				t.Errorf("%s: %s is refused in no package", name, d.Pkg)
			}
		}
	}
}

// Every import that a rule allows is there, and nothing that is imported is refused.
func TestEveryAllowedImportIsUsed(t *testing.T) {
	all := rules(t)
	imports := imported(t)
	for dir, list := range imports {
		if wrong := refused(t, all, path.Join("/checkout", dir, "file.go"), list...); len(wrong) > 0 {
			t.Errorf("%s must not import %v", dir, wrong)
		}
	}
	for name, r := range all {
		for _, allowed := range r.Allow {
			// Without the allowance, it would be refused somewhere.
			less := r
			less.Allow = slices.DeleteFunc(slices.Clone(r.Allow), func(a string) bool { return a == allowed })
			needed := func(dir string) bool {
				return len(refused(t, map[string]rule{name: less}, path.Join("/checkout", dir, "file.go"), imports[dir]...)) > 0
			}
			if !slices.ContainsFunc(slices.Collect(maps.Keys(imports)), needed) {
				t.Errorf("%s: nothing imports %s", name, allowed)
			}
		}
	}
}

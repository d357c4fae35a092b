// Package tools_test checks which packages of the project import which.
package tools_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root    = "../.."
	project = "github.com/scheduler/terraform-provider-scheduler/"
)

// listed are the lines of imports.txt by folder.
func listed(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("imports.txt")
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if folder, list, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(line, "#") {
			lists[folder] = strings.Fields(list)
		}
	}
	return lists
}

// imported are the folders that the files of each folder import, outside of tests. Both are paths below internal/.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	lists := map[string][]string{}
	for _, top := range []string{"internal", "provider", "server"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(file string, entry fs.DirEntry, err error) error {
			switch name := entry.Name(); {
			case err != nil:
				return err
			case entry.IsDir() && (name == "testdata" || name == "tools"):
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			folder, err := filepath.Rel(filepath.Join(root, "internal"), filepath.Dir(file))
			if err != nil {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			lists[folder] = slices.Clip(lists[folder]) // a folder all the same
			for _, i := range parsed.Imports {
				if path, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), project); ours {
					lists[folder] = append(lists[folder], strings.TrimPrefix(path, "internal/"))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return lists
}

func TestImportsAreListed(t *testing.T) {
	want, got := listed(t), imported(t)
	if len(got) < 50 {
		t.Fatalf("only %d folders were found", len(got))
	}
	for folder := range got {
		if _, ok := want[folder]; !ok {
			t.Errorf("%s is in no line of imports.txt", folder)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(want)) {
		slices.Sort(got[folder])
		if is := slices.Compact(got[folder]); !slices.Equal(is, want[folder]) {
			t.Errorf("%s imports %v, and imports.txt lists %v", folder, is, want[folder])
		}
	}
}

// Nobody imports test code.
func TestTestCodeIsNotImported(t *testing.T) {
	isTest := func(folder string) bool {
		return strings.HasPrefix(folder, "testkit/") || strings.HasSuffix(folder, "test") || strings.HasPrefix(folder, "conformance")
	}
	for folder, list := range imported(t) {
		for _, path := range list {
			if isTest(path) && !isTest(folder) {
				t.Errorf("%s imports %s, which is test code", folder, path)
			}
		}
	}
}

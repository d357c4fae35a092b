package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// writeFile writes a file in a directory of its own, and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	goodObjects = `# two clusters, and what is decided on them
kind: cluster
metadata: {name: files-1, labels: {in: files}}
spec: {region: eu}
---
kind: cluster
metadata: {name: files-2, labels: {in: files}}
spec: {region: eu}
---
# nothing here
---
{"kind":"placement","metadata":{"name":"files","namespace":"files"},"spec":{"cluster_names":["files-1"]}}
`
	badObjects = `kind: cluster
metadata: {name: files-3}
spec: {regoin: eu}
---
kind: cluster
metadata: {name: files-3, name: files-4}
---
kind: pod
metadata: {name: files-3}
---
kind: cluster
spec: {region: eu}
---
kind: placement_score
metadata: {name: files}
---
kind: [
---
kind: cluster
metadata: {name: files-5}
---
kind: cluster
metadata: {name: files-5}
`
)

// TestFiles compares with golden files what apply and diff say of files.
func TestFiles(t *testing.T) {
	f := newServer(t)
	files := map[string]string{
		"GOOD":      writeFile(t, "good.yaml", goodObjects),
		"BAD":       writeFile(t, "bad.yaml", badObjects),
		"CHANGED":   writeFile(t, "changed.yaml", strings.NewReplacer("files-2, labels: {in: files}", "files-2", `["files-1"]`, `["files-2"]`).Replace(goodObjects)),
		"REFUSED":   writeFile(t, "refused.yaml", "kind: cluster\nmetadata: {name: files-3}\nspec: {cloud_provider: 'a b'}\n---\nkind: placement\nmetadata: {name: refused}\nspec: {number_of_clusters: -1}\n---\nkind: placement\nmetadata: {name: accepted, namespace: files}\nspec: {cluster_names: [files-1]}\n"),
		"EMPTY":     writeFile(t, "empty.yaml", "---\n# nothing\n"),
		"JSON":      writeFile(t, "several.json", `{"kind":"cluster","metadata":{"name":"files-6"}} {"kind":"cluster","metadata":{"name":"files-7"}}`),
		"DIRECTORY": filepath.Dir(writeFile(t, "readme.txt", "not an object")),
		"FLEET":     filepath.Dir(writeFile(t, "good.yml", goodObjects)),
	}
	for _, test := range []struct {
		name, args string
		code       int
	}{
		{"diff-created", "diff -f GOOD", exitChanges},
		{"apply-created", "apply -f GOOD", 0},
		{"apply-unchanged", "apply -f GOOD", 0},
		{"diff-same", "diff -f GOOD", 0},
		{"diff-changed", "diff -f CHANGED", exitChanges},
		{"apply-updated", "apply -f CHANGED", 0},
		{"apply-directory", "apply -f FLEET", 0},
		{"apply-json", "apply -f JSON", 0},
		{"apply-bad", "apply -f GOOD -f BAD", ExitUsage},
		{"diff-bad", "diff -f BAD", ExitUsage},
		{"apply-refused", "apply -f REFUSED", exitRefused},
		{"diff-refused", "diff -f REFUSED", exitRefused},
		{"apply-twice", "apply -f GOOD -f FLEET", ExitUsage},
		{"apply-empty", "apply -f EMPTY", ExitUsage},
		{"apply-missing", "apply -f EMPTY.missing", ExitUsage},
		{"apply-empty-directory", "apply -f DIRECTORY", ExitUsage},
		{"apply-nothing", "apply", ExitUsage},
		{"diff-nothing", "diff", ExitUsage},
		{"apply-argument", "apply GOOD", ExitUsage},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := strings.Fields(test.args)
			for i, arg := range args {
				for name, path := range files {
					if arg == name || arg == name+".missing" {
						args[i] = path + strings.TrimPrefix(arg, name)
					}
				}
			}
			code, stdout, stderr := f.run(args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			text := stdout + stderr
			for name, path := range files {
				text = strings.ReplaceAll(text, path, name)
			}
			golden(t, test.name, f.stable("$ "+program+" "+test.args+"\n"+text))
		})
	}
}

// A secret is written, kept when a file does not have it, and removed when it is empty; no output has it.
func testFilesKeepSecrets(t *testing.T, f *fleet) {
	const secret = "open-sesame"
	document := func(spec string) string {
		return "kind: metrics_provider\nmetadata: {name: keeper}\nspec:\n  type: prometheus\n  prometheus:\n    url: http://127.0.0.1:1\n" + spec
	}
	without := writeFile(t, "without.yaml", document(""))
	with := writeFile(t, "with.yaml", document("  bearer_token: "+secret+"\n"))
	empty := writeFile(t, "empty.yaml", document("  bearer_token: ''\n"))
	has := func() bool {
		t.Helper()
		object, err := f.server.Get(t.Context(), api.Key{Kind: api.KindMetricsProvider, Name: "keeper"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range object.Secrets() {
			if !s.IsZero() {
				return true
			}
		}
		return false
	}
	all := f.must("apply", "-f", without)
	_, out, _ := f.run("diff", "-f", with)
	if all += out; !strings.Contains(out, "+  bearer_token: (secret)\n") {
		t.Errorf("%s\nwant a difference that does not show the secret", out)
	}
	all += f.must("apply", "-f", with)
	for _, same := range []string{with, without} {
		if code, out, stderr := f.run("diff", "-f", same); code != exitOK || out != "" {
			t.Errorf("exit code %d: %s%s, want no difference", code, out, stderr)
		}
	}
	if out := f.must("apply", "-f", without); !has() || !strings.Contains(out, "unchanged") {
		t.Errorf("%s\nwant the secret kept", out)
	}
	_, out, _ = f.run("diff", "-f", empty)
	if all += out; !strings.Contains(out, "-  bearer_token: (secret)\n") {
		t.Errorf("%s\nwant the secret removed", out)
	}
	if all += f.must("apply", "-f", empty); has() {
		t.Error("the secret is still there")
	}
	if strings.Contains(all, secret) {
		t.Errorf("%s\nshows the secret", all)
	}
}

// What get prints can be applied.
func testFilesOfGet(t *testing.T, f *fleet) {
	for _, format := range []string{"yaml", "json"} {
		f.env.Stdin = strings.NewReader(f.must("get", "clusters", "-l", "region=eu", "-o", format))
		if out := f.must("apply", "-f", "-"); strings.Count(out, "unchanged\n") != 3 || strings.Count(out, "\n") != 3 {
			t.Errorf("%s:\n%s\nwant three unchanged clusters", format, out)
		}
	}
}

// A server that is away ends apply: it would be the same with the other objects.
func testApplyStopsWithoutServer(t *testing.T, f *fleet) {
	file := writeFile(t, "good.yaml", goodObjects)
	if code, out, stderr := f.run("apply", "-f", file, "--endpoint", "http://127.0.0.1:1"); code != exitNoServer || out != "" || strings.Contains(stderr, "refused: ") && strings.Count(stderr, "\n") > 1 {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

// A file of many objects is read in the memory of a few.
func TestFilesOfManyObjects(t *testing.T) {
	const count, padding = 100_000, 500
	path := filepath.Join(t.TempDir(), "many.yaml")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	for i := range count {
		fmt.Fprintf(w, "kind: cluster\nmetadata: {name: many-%d}\nspec: {description: %s}\n---\n", i, strings.Repeat("x", padding))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	used := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	f := &files{paths: []string{path}}
	before, n := used(), 0
	var most uint64
	for _, err := range f.objects() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%(count/4) == 0 {
			most = max(most, used())
		}
	}
	if n != count {
		t.Errorf("%d objects, want %d", n, count)
	}
	if limit := before + count*padding/10; most > limit {
		t.Errorf("%d bytes are in use, want at most %d", most, limit)
	}
}

func FuzzFiles(f *testing.F) {
	for _, text := range []string{goodObjects, badObjects, `{"items":[{"kind":"cluster"}]}`, "{kind: cluster}", "--- x", "{}{"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for object, err := range (&files{paths: []string{standardInput}, stdin: text}).objects() {
			if err == nil && object.Meta().Name == "" {
				t.Errorf("%q has an object without a name", text)
			}
		}
	})
}

// Objects of one kind are written several at a time; what they need comes before them.
func TestTogether(t *testing.T) {
	objects := func(yield func(fileObject, error) bool) {
		for i := range 40 {
			if !yield(fileObject{Object: &api.Cluster{Metadata: api.Metadata{Name: fmt.Sprint("c", i)}}}, nil) {
				return
			}
		}
		_ = yield(fileObject{Object: &api.Placement{Metadata: api.Metadata{Name: "web"}}}, nil) && yield(fileObject{}, io.ErrUnexpectedEOF)
	}
	var sizes []int
	for group, err := range together(objects) {
		if err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) || len(sizes) != 4 {
				t.Errorf("%v after %v", err, sizes)
			}
			return
		}
		sizes = append(sizes, len(group))
		for _, object := range group {
			if object.ObjectKind() != group[0].ObjectKind() {
				t.Errorf("%s with %s", api.KeyOf(object), api.KeyOf(group[0]))
			}
		}
		if want := []int{16, 16, 8, 1}; !slices.Equal(sizes, want[:len(sizes)]) {
			t.Errorf("groups of %v, want %v", sizes, want)
		}
	}
	t.Error("the error was lost")
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	anchor    = regexp.MustCompile(`id="([^"]+)"`)
)

// TestDocumentationOfTheProject builds the site of this repository. Every link must lead to a file of the site, and to a
// place that it has; nothing is loaded from elsewhere.
func TestDocumentationOfTheProject(t *testing.T) {
	output := t.TempDir()
	pages, err := build("../../..", output)
	if err != nil {
		t.Fatal(err)
	}
	if pages < 40 {
		t.Errorf("%d pages, want at least 40", pages)
	}
	links := 0
	err = filepath.WalkDir(output, func(file string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" || strings.Contains(file, "/files/") {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, match := range reference.FindAllStringSubmatch(string(content), -1) {
			to, fragment, _ := strings.Cut(match[1], "#")
			if strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "http://") {
				if strings.HasPrefix(match[0], "src") {
					t.Errorf("%s loads %s", file, to)
				}
				continue
			}
			links++
			target := file
			if to != "" {
				target = filepath.Join(filepath.Dir(file), to)
			}
			other, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s: link %s: %v", file, match[1], err)
				continue
			}
			if fragment != "" && !strings.Contains(string(other), `id="`+fragment+`"`) {
				t.Errorf("%s: link %s: there is no such place", file, match[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 1000 {
		t.Errorf("%d links, want more: the navigation alone has as many", links)
	}
}

// repository writes a repository with the pages that every site has, and some files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		"README.md": "# Start\n", "docs/index.md": "---\npage_title: \"Provider: scheduler\"\n---\n# Provider\n", "SECURITY.md": "", "CONTRIBUTING.md": "", "CHANGELOG.md": "",
		"docs/guides/spot.md": "---\npage_title: \"Spot nodes\"\n---\n# Spot\n\n## Set up\n", "examples/quickstart/main.tf": "# example\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLinks(t *testing.T) {
	for _, test := range []struct {
		name, link, want string
	}{
		{"a page", "docs/guides/spot.md", `href="guides/spot.html"`},
		{"a page without its suffix", "docs/guides/spot", `href="guides/spot.html"`},
		{"a heading", "docs/guides/spot.md#set-up", `href="guides/spot.html#set-up"`},
		{"a heading of the page itself", "#start", `href="#start"`},
		{"a file", "examples/quickstart/main.tf", `href="files/examples/quickstart/main.tf"`},
		{"a directory of pages", "docs/guides/", `href="guides/spot.html"`},
		{"a directory of files", "examples/quickstart", `href="files/examples/quickstart/main.tf"`},
		{"a file at its host", "https://github.com/scheduler/terraform-provider-scheduler/tree/main/examples/quickstart", `href="files/examples/quickstart/main.tf"`},
		{"another site", "https://example.com/x", `href="https://example.com/x"`},
		{"no such page", "docs/guides/gone.md", ""},
		{"no such heading", "docs/guides/spot.md#gone", ""},
		{"no such heading of the page itself", "#gone", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			output := t.TempDir()
			_, err := build(repository(t, map[string]string{"README.md": "# Start\n\n[link](" + test.link + ")\n"}), output)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), `README.md: link "`+test.link+`"`) {
					t.Errorf("error %v, want one about the link", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			page, err := os.ReadFile(filepath.Join(output, "index.html"))
			if err != nil || !strings.Contains(string(page), test.want) {
				t.Errorf("%v, want %s in %s", err, test.want, page)
			}
		})
	}
}

// Titles come from the front matter, and the search knows the text under each heading.
func TestPagesAndSearch(t *testing.T) {
	output := t.TempDir()
	dir := repository(t, map[string]string{
		"docs/guides/clouds.md": "---\npage_title: \"Clouds & <projects>\"\n---\n# Clouds\n\nFirst text.\n\n## Setting up `limits`\n\nSecond text.\n\n```sh\nmake demo\n```\n",
	})
	if _, err := build(dir, output); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(output, "guides", "clouds.html"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "<title>Clouds &amp; &lt;projects&gt; · scheduler</title>"; !strings.Contains(string(page), want) {
		t.Errorf("no %s in %s", want, page)
	}
	if ids := anchor.FindAllStringSubmatch(string(page), -1); len(ids) == 0 {
		t.Error("the headings have no anchors")
	}
	script, err := os.ReadFile(filepath.Join(output, "search.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"heading":"Setting up limits","url":"guides/clouds.html#setting-up-limits","text":"Second text. make demo"`, `"text":"First text."`} {
		if !strings.Contains(string(script), want) {
			t.Errorf("no %s in %.2000s", want, script)
		}
	}
}

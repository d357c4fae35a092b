package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The site of the documentation has every page, and no link in it leads nowhere.
func TestSiteOfTheDocumentation(t *testing.T) {
	const docs = "../../../docs"
	out := t.TempDir()
	if err := render(docs, out); err != nil {
		t.Fatal(err)
	}
	pages, err := read(docs)
	if err != nil || len(pages) < 50 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, p := range pages {
		html, err := os.ReadFile(filepath.Join(out, p.Path+".html"))
		if err != nil || !strings.Contains(string(html), "<h1") || p.Title == "" {
			t.Errorf("%s (%q): %v", p.Path, p.Title, err)
		}
	}
	tokens, err := os.ReadFile(filepath.Join(out, "guides", "tokens.html"))
	if err != nil || !strings.Contains(string(tokens), `href="page.html"`) || !strings.Contains(string(tokens), `href="../resources/`) {
		t.Errorf("the links of a guide: %v", err)
	}
}

// A link to a page that does not exist is an error.
func TestBrokenLink(t *testing.T) {
	docs := t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "index.md"), []byte("# Title\n\n[there](guides/missing) [elsewhere](https://example.com/)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := render(docs, t.TempDir()); err == nil || !strings.Contains(err.Error(), "index links to guides/missing") {
		t.Errorf("error %v", err)
	}
}

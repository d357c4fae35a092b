// Command docssite renders the documentation as a site that works from a folder: no server, nothing from elsewhere.
//
//	docssite DOCS OUT
//
// DOCS is the folder of the pages, as the registries show them. It fails where a page links to one that does not exist.
package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"go.yaml.in/yaml/v3"
)

//go:embed page.html
var pageTemplate string

// page is one page of the documentation.
type page struct {
	Path        string // without its extension, such as guides/tokens
	Title       string `yaml:"page_title"`
	Subcategory string `yaml:"subcategory"`
	source      []byte
	HTML        template.HTML `yaml:"-"`
}

// section is a part of the navigation.
type section struct {
	Name  string
	Pages []*page
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: docssite DOCS OUT")
		os.Exit(2)
	}
	if err := render(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// render writes the site of a folder of pages to another folder.
func render(docs, out string) error {
	pages, err := read(docs)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, p := range pages {
		known[p.Path] = true
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe())) // anchors in our own pages
	var broken []error
	for _, p := range pages {
		document := markdown.Parser().Parse(text.NewReader(p.source))
		if err := relink(document, p, known); err != nil {
			broken = append(broken, err)
		}
		var rendered bytes.Buffer
		if err := markdown.Renderer().Render(&rendered, p.source, document); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
		p.HTML = template.HTML(rendered.String()) //nolint:gosec // our own pages
	}
	if len(broken) > 0 {
		return errors.Join(broken...)
	}
	if err := write(out, pages); err != nil {
		return err
	}
	return copyPictures(docs, out)
}

// copyPictures copies what pages show.
func copyPictures(docs, out string) error {
	return filepath.WalkDir(docs, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) == ".md" {
			return err
		}
		relative, err := filepath.Rel(docs, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(out, relative), data, 0o644)
	})
}

// read reads the pages, sorted by path.
func read(docs string) (pages []*page, err error) {
	err = filepath.WalkDir(docs, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".md" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(docs, file)
		if err != nil {
			return err
		}
		p := &page{Path: strings.TrimSuffix(filepath.ToSlash(relative), ".md"), source: data}
		if front, body, ok := strings.Cut(strings.TrimPrefix(string(data), "---\n"), "\n---\n"); ok && strings.HasPrefix(string(data), "---\n") {
			if err := yaml.Unmarshal([]byte(front), p); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			p.source = []byte(body)
		}
		if p.Title == "" {
			heading, _, _ := strings.Cut(strings.TrimSpace(string(p.source)), "\n")
			p.Title = strings.TrimPrefix(heading, "# ")
		}
		p.Title, _, _ = strings.Cut(p.Title, " - scheduler")
		pages = append(pages, p)
		return nil
	})
	return pages, err
}

// relink makes links between pages those of the site. The pages link to each other with and without an extension.
func relink(document ast.Node, p *page, known map[string]bool) error {
	var broken []error
	err := ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := node.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		u, err := url.Parse(string(link.Destination))
		if err != nil || u.Scheme != "" || u.Path == "" {
			return ast.WalkContinue, nil //nolint:nilerr // a link to elsewhere
		}
		target := path.Join(path.Dir(p.Path), strings.TrimSuffix(u.Path, ".md"))
		switch {
		case known[target]:
			u.Path = strings.TrimSuffix(u.Path, ".md") + ".html"
			link.Destination = []byte(u.String())
		case !strings.HasPrefix(target, "../"): // what is outside of the documentation is not part of the site
			broken = append(broken, fmt.Errorf("%s links to %s, which does not exist", p.Path, link.Destination))
		}
		return ast.WalkContinue, nil
	})
	return errors.Join(append(broken, err)...)
}

// write writes the pages, each with the navigation to all others.
func write(out string, pages []*page) error {
	tmpl, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return err
	}
	sections := navigation(pages)
	for _, p := range pages {
		file := filepath.Join(out, filepath.FromSlash(p.Path)+".html")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		var rendered bytes.Buffer
		root := strings.Repeat("../", strings.Count(p.Path, "/"))
		if err := tmpl.Execute(&rendered, map[string]any{"Page": p, "Sections": sections, "Root": root}); err != nil {
			return err
		}
		if err := os.WriteFile(file, rendered.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// folders are the folders of the pages, with their names, in order.
var folders = []struct{ path, name string }{
	{".", "Overview"}, {"guides", "Guides"}, {"resources", "Resources"}, {"data-sources", "Data sources"}, {"ephemeral-resources", "Ephemeral resources"},
	{"functions", "Functions"},
}

// folderOf returns the index of the folder of a page, or -1.
func folderOf(p *page) int {
	return slices.IndexFunc(folders, func(f struct{ path, name string }) bool { return f.path == path.Dir(p.Path) })
}

// navigation groups the pages as the registries do: by folder, and within it by subcategory.
func navigation(pages []*page) (sections []section) {
	sorted := slices.SortedFunc(slices.Values(pages), func(a, b *page) int {
		return cmp.Or(
			cmp.Compare(folderOf(a), folderOf(b)),
			cmp.Compare(a.Subcategory, b.Subcategory), cmp.Compare(a.Title, b.Title),
		)
	})
	for _, p := range sorted {
		name := path.Dir(p.Path)
		if i := folderOf(p); i >= 0 {
			name = folders[i].name
		}
		if p.Subcategory != "" {
			name += ": " + p.Subcategory
		}
		if n := len(sections); n == 0 || sections[n-1].Name != name {
			sections = append(sections, section{Name: name})
		}
		last := &sections[len(sections)-1]
		last.Pages = append(last.Pages, p)
	}
	return sections
}

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

var (
	//go:embed page.tmpl
	layoutText string
	//go:embed style.css
	style []byte
	//go:embed search.js
	script []byte

	layout = template.Must(template.New("page").Parse(layoutText))

	// Raw HTML is allowed: the pages are ours, and the reference uses it for anchors.
	markdown = goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe()),
	)
)

// site is a site under construction.
type site struct {
	repository, output string
	pages              []*page
	bySource           map[string]*page
	documents          map[*page]ast.Node
	copied             map[string]bool // files of the repository that pages link to
}

// build writes the site, and returns the number of its pages. It fails if a link leads nowhere.
func build(repository, output string) (int, error) {
	pages, err := read(repository)
	if err != nil {
		return 0, err
	}
	s := &site{
		repository: repository, output: output, pages: pages,
		bySource: map[string]*page{}, documents: map[*page]ast.Node{}, copied: map[string]bool{},
	}
	for _, p := range pages {
		s.bySource[p.source] = p
		s.documents[p] = markdown.Parser().Parse(text.NewReader(p.text))
	}
	var broken []error
	for _, p := range pages {
		broken = append(broken, s.link(p))
	}
	if err := errors.Join(broken...); err != nil {
		return 0, err
	}
	var index []entry
	for _, p := range pages {
		index = append(index, s.entries(p)...)
		if err := s.write(p); err != nil {
			return 0, err
		}
	}
	encoded, err := json.Marshal(index)
	if err != nil {
		return 0, err
	}
	files := map[string][]byte{"style.css": style, "search.js": append(append([]byte("const pages = "), encoded...), append([]byte(";\n"), script...)...)}
	for source := range s.copied {
		if files[copiedTo(source)], err = os.ReadFile(filepath.Join(repository, filepath.FromSlash(source))); err != nil {
			return 0, err
		}
	}
	for name, content := range files {
		if err := s.put(name, content); err != nil {
			return 0, err
		}
	}
	return len(pages), nil
}

func (s *site) put(name string, content []byte) error {
	file := filepath.Join(s.output, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// shown is what a page needs for its layout.
type shown struct {
	Title, Root string
	Groups      []group
	Content     template.HTML
}

type group struct {
	Title string
	Links []navigation
}

type navigation struct {
	Title, Target string
	Current       bool
}

func (s *site) write(p *page) error {
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.text, s.documents[p]); err != nil {
		return fmt.Errorf("%s: %w", p.source, err)
	}
	root := strings.Repeat("../", strings.Count(p.target, "/"))
	view := shown{Title: p.title, Root: root, Content: template.HTML(body.String())} //nolint:gosec // our own pages
	for _, other := range s.pages {
		if n := len(view.Groups); n == 0 || view.Groups[n-1].Title != other.group {
			view.Groups = append(view.Groups, group{Title: other.group})
		}
		links := &view.Groups[len(view.Groups)-1].Links
		*links = append(*links, navigation{other.title, root + other.target, other == p})
	}
	var out bytes.Buffer
	if err := layout.Execute(&out, view); err != nil {
		return fmt.Errorf("%s: %w", p.source, err)
	}
	return s.put(p.target, out.Bytes())
}

// copiedTo returns the path in the site of a file that is not a page.
func copiedTo(source string) string { return path.Join("files", source) }

// relative returns a link from one path of the site to another.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

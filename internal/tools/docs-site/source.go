package main

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// page is a Markdown file of the repository.
type page struct {
	source string // path in the repository
	target string // path in the site
	group  string
	title  string
	text   []byte // without front matter
}

// section is a part of the navigation.
type section struct {
	title string
	// files are patterns of paths in the repository.
	files []string
}

// sections are the navigation, in order.
var sections = []section{
	{"Start", []string{"README.md"}},
	{"Guides", []string{"docs/guides/*.md"}},
	{"Provider", []string{"docs/index.md", "docs/functions/*.md"}},
	{"Resources", []string{"docs/resources/*.md"}},
	{"Data sources", []string{"docs/data-sources/*.md"}},
	{"Project", []string{"SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"}},
}

// names replace titles that are longer than the navigation is wide, or that a file does not have.
var names = map[string]string{
	"README.md": "Overview", "docs/index.md": "Configuration of the provider", "CHANGELOG.md": "Changelog", "CONTRIBUTING.md": "Contributing",
}

// read returns the pages of a repository in the order of the navigation.
func read(repository string) ([]*page, error) {
	var pages []*page
	for _, s := range sections {
		var group []*page
		for _, pattern := range s.files {
			files, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(pattern)))
			if err != nil {
				return nil, err
			}
			for _, file := range files {
				relative, err := filepath.Rel(repository, file)
				if err != nil {
					return nil, err
				}
				p, err := readPage(repository, filepath.ToSlash(relative))
				if err != nil {
					return nil, err
				}
				p.group = s.title
				group = append(group, p)
			}
		}
		if strings.HasPrefix(s.files[0], "docs/guides") {
			slices.SortFunc(group, func(a, b *page) int { return cmp.Compare(strings.ToLower(a.title), strings.ToLower(b.title)) })
		}
		pages = append(pages, group...)
	}
	return pages, nil
}

func readPage(repository, source string) (*page, error) {
	text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(source)))
	if err != nil {
		return nil, err
	}
	p := &page{source: source, target: target(source)}
	var about struct {
		PageTitle string `yaml:"page_title"`
	}
	p.text = text
	if rest, ok := strings.CutPrefix(string(text), "---\n"); ok {
		front, body, ok := strings.Cut(rest, "\n---\n")
		if !ok {
			return nil, fmt.Errorf("%s: the front matter does not end", source)
		}
		if err := yaml.Unmarshal([]byte(front), &about); err != nil {
			return nil, fmt.Errorf("%s: front matter: %w", source, err)
		}
		p.text = []byte(body)
	}
	title, _, _ := strings.Cut(about.PageTitle, " - scheduler")
	for _, kind := range []string{" Resource", " Data Source", " function"} {
		title = strings.TrimSuffix(title, kind)
	}
	p.title = cmp.Or(names[source], title, strings.TrimSuffix(path.Base(source), ".md"))
	return p, nil
}

// target returns the path in the site of a Markdown file.
func target(source string) string {
	if source == "README.md" {
		return "index.html"
	}
	source = strings.TrimPrefix(source, "docs/")
	if source == "index.md" {
		return "provider.html"
	}
	return strings.ToLower(strings.TrimSuffix(source, ".md")) + ".html"
}

package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// repositoryURL is where the README links to files that are not pages.
const repositoryURL = "https://github.com/scheduler/terraform-provider-scheduler/"

var treeLink = regexp.MustCompile(`^` + regexp.QuoteMeta(repositoryURL) + `(?:tree|blob)/[^/]+/(.+)$`)

// link changes the links of a page so that they work in the site. Links to the outside are left alone, except those to a
// file of the repository.
func (s *site) link(p *page) error {
	var broken []error
	err := ast.Walk(s.documents[p], func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var destination *[]byte
		switch n := n.(type) {
		case *ast.Link:
			destination = &n.Destination
		case *ast.Image:
			destination = &n.Destination
		default:
			return ast.WalkContinue, nil
		}
		to, err := s.resolve(p, string(*destination))
		if err != nil {
			broken = append(broken, fmt.Errorf("%s: link %q: %w", p.source, *destination, err))
			return ast.WalkContinue, nil
		}
		*destination = []byte(to)
		return ast.WalkContinue, nil
	})
	return errors.Join(append(broken, err)...)
}

// resolve returns the destination in the site of a link.
func (s *site) resolve(p *page, link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	source := path.Join(path.Dir(p.source), u.Path)
	if u.IsAbs() {
		match := treeLink.FindStringSubmatch(link)
		if match == nil {
			return link, nil
		}
		source, u.Fragment = match[1], ""
	}
	if u.Path == "" {
		source = p.source
	}
	// The registry serves pages without .md.
	for _, candidate := range []string{source, source + ".md"} {
		if to := s.bySource[candidate]; to != nil {
			return s.anchored(p, to, u.Fragment)
		}
	}
	info, err := os.Stat(filepath.Join(s.repository, filepath.FromSlash(source)))
	switch {
	case err != nil:
		return "", errors.New("there is no such page or file")
	case !info.IsDir():
		s.copied[source] = true
		return relative(p.target, copiedTo(source)), nil
	}
	return s.directory(p, source)
}

// anchored returns the link to a place on a page, if the page has it.
func (s *site) anchored(from, to *page, fragment string) (string, error) {
	link := relative(from.target, to.target)
	if fragment == "" {
		return link, nil
	}
	if !s.anchors(to)[fragment] {
		return "", fmt.Errorf("%s has no heading #%s", to.source, fragment)
	}
	if from == to {
		return "#" + fragment, nil
	}
	return link + "#" + fragment, nil
}

// rawAnchor finds the anchors that the reference has as HTML.
var rawAnchor = regexp.MustCompile(`<a id="([^"]+)">`)

// anchors returns the anchors of a page.
func (s *site) anchors(p *page) map[string]bool {
	found := map[string]bool{}
	_ = ast.Walk(s.documents[p], func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if id, ok := n.AttributeString("id"); ok && entering {
			if text, ok := id.([]byte); ok {
				found[string(text)] = true
			}
		}
		return ast.WalkContinue, nil
	})
	for _, match := range rawAnchor.FindAllSubmatch(p.text, -1) {
		found[string(match[1])] = true
	}
	return found
}

// directory returns the link to a directory: the first page in it, or else its files, which the site then contains.
func (s *site) directory(p *page, source string) (string, error) {
	for _, other := range s.pages {
		if strings.HasPrefix(other.source, source+"/") {
			return relative(p.target, other.target), nil
		}
	}
	var first string
	err := filepath.WalkDir(filepath.Join(s.repository, filepath.FromSlash(source)), func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.repository, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		s.copied[name] = true
		if first == "" || path.Base(name) == "main.tf" || path.Base(name) == "README.md" {
			first = name
		}
		return nil
	})
	if err != nil || first == "" {
		return "", errors.Join(errors.New("the directory is empty"), err)
	}
	return relative(p.target, copiedTo(first)), nil
}

package main

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// entry is a part of a page that the search finds: the text under one heading.
type entry struct {
	Page    string `json:"page"`
	Heading string `json:"heading,omitempty"`
	URL     string `json:"url"`
	Text    string `json:"text"`
}

// entries returns what the search knows of a page.
func (s *site) entries(p *page) []entry {
	list := []entry{{Page: p.title, URL: p.target}}
	var text strings.Builder
	end := func() { list[len(list)-1].Text = strings.Join(strings.Fields(text.String()), " "); text.Reset() }
	_ = ast.Walk(s.documents[p], func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				text.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			anchor, _ := id.([]byte)
			end()
			list = append(list, entry{Page: p.title, Heading: words(n, p.text), URL: p.target + "#" + string(anchor)})
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			text.Write(n.Segment.Value(p.text))
			if n.SoftLineBreak() {
				text.WriteByte(' ')
			}
		case *ast.FencedCodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				text.Write(line.Value(p.text))
			}
		}
		return ast.WalkContinue, nil
	})
	end()
	return list
}

// words returns the text of a heading.
func words(n ast.Node, source []byte) string {
	var text strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			text.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return text.String()
}

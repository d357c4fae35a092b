package httpapi

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// apiGuide lists all operations. The test writes it with -update.
const apiGuide = "../../templates/guides/http-api.md.tmpl"

const apiGuideHead = `---
page_title: "HTTP API"
subcategory: ""
description: |-
  Every operation of the scheduling server's HTTP API, with its parameters, and who may call it.
---

# HTTP API

The server describes its API at ` + "`/v1/openapi.json`" + ` (OpenAPI 3.1), with the schema of every body; this page lists its
operations. Requests carry a token as ` + "`Authorization: Bearer …`" + `. Bodies are JSON. Errors are problem documents (RFC 9457);
see [Errors of the API](errors).

**Access** says what a role needs, see [Tokens, roles and namespaces](tokens): ` + "`open`" + ` is for everybody. Namespaces limit
access further. Every operation accepts the header ` + "`Request-Timeout`" + `.

`

// TestAPIGuide compares the guide with the OpenAPI document.
func TestAPIGuide(t *testing.T) {
	s := startServer(t)
	page := apiGuideHead + describeOperations(s.api.Document())
	if *updateTable {
		if err := os.WriteFile(apiGuide, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(apiGuide); err != nil || string(have) != page {
		t.Errorf("%s is not what the OpenAPI document says (%v): run go test ./internal/httpapi -run TestAPIGuide -update, then make generate", apiGuide, err)
	}
}

// describeOperations lists the operations of a document by their tags, in Markdown.
func describeOperations(document *huma.OpenAPI) string {
	byTag := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		item := document.Paths[path]
		for _, method := range []struct {
			name string
			op   *huma.Operation
		}{{"GET", item.Get}, {"PUT", item.Put}, {"POST", item.Post}, {"PATCH", item.Patch}, {"DELETE", item.Delete}} {
			if method.op != nil {
				tag := cmp.Or(append(slices.Clone(method.op.Tags), "server")...)
				byTag[tag] = append(byTag[tag], describeOperation(method.name, path, method.op))
			}
		}
	}
	var b strings.Builder
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		fmt.Fprintf(&b, "## %s\n\n%s", strings.ToUpper(tag[:1])+strings.ReplaceAll(tag[1:], "_", " "), strings.Join(byTag[tag], ""))
	}
	return b.String()
}

func describeOperation(method, path string, op *huma.Operation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### `%s %s`\n\n%s. ", method, path, strings.TrimSuffix(op.Summary, "."))
	if op.Description != "" {
		fmt.Fprintf(&b, "%s ", cell(op.Description))
	}
	fmt.Fprintf(&b, "Access: `%v`.", op.Extensions["x-access"])
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content {
			if name := media.Schema.Ref; name != "" {
				fmt.Fprintf(&b, " Body: `%s`.", name[strings.LastIndex(name, "/")+1:])
			}
		}
	}
	b.WriteString("\n\n")
	header := "| Parameter | In | Meaning |\n|---|---|---|\n"
	for _, p := range op.Parameters {
		if p.In == "path" && p.Description == "" || p.Name == "Request-Timeout" {
			continue
		}
		fmt.Fprintf(&b, "%s| `%s` | %s | %s |\n", header, p.Name, p.In, cell(p.Description))
		header = ""
	}
	if header == "" {
		b.WriteString("\n")
	}
	return b.String()
}

// cell returns text for a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

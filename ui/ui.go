// Package ui contains the page that people look at in a browser, as "make build" bundles it from
// src. Without Node.js nothing is bundled, and Files has no index.html.
package ui

import (
	"embed"
	"io/fs"
)

// dist has a file of its own in the repository, because go:embed rejects an absent directory.
//
//go:embed all:dist
var dist embed.FS

// Files returns the files of the page; index.html is the first one that a browser reads.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return dist // impossible: the name is valid
	}
	return files
}

// Command docs-site builds the documentation as a site that works from a folder: every page of docs/, the README and the
// changelog as HTML, with a navigation and a search, and without anything from elsewhere.
//
//	go run ./docs-site REPOSITORY OUTPUT
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: docs-site REPOSITORY OUTPUT")
		os.Exit(2)
	}
	pages, err := build(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d pages: open %s/index.html\n", pages, os.Args[2])
}

//go:build faults

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// writeOverlay writes the file for -overlay: for each path, relative to the root of the repository, the contents that
// the compiler must use.
func writeOverlay(name string, contents map[string]string) (string, error) {
	dir := filepath.Join(buildDir, "overlay-"+name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, content := range contents {
		full, err := filepath.Abs(filepath.Join("..", "..", path))
		if err != nil {
			return "", err
		}
		file, err := os.CreateTemp(dir, "*.go")
		if err != nil {
			return "", err
		}
		if _, err := file.WriteString(content); err != nil {
			return "", err
		}
		if err := file.Close(); err != nil {
			return "", err
		}
		replace[full] = file.Name()
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}

// replaceIn changes a source file of the repository, or its replacement in the overlay. The replaced text must occur
// exactly once.
func replaceIn(overlay map[string]string, path, from, to string) (map[string]string, error) {
	text, changed := overlay[path]
	if !changed {
		content, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			return nil, err
		}
		text = string(content)
	}
	if n := strings.Count(text, from); from == "" || n != 1 {
		return nil, fmt.Errorf("%s has %q %d times, not once", path, from, n)
	}
	return map[string]string{path: strings.Replace(text, from, to, 1)}, nil
}

// declarationIn returns the first match of a pattern in a source file, or "".
func declarationIn(path, pattern string) string {
	content, err := os.ReadFile(filepath.Join("..", "..", path))
	if err != nil {
		return ""
	}
	return regexp.MustCompile(pattern).FindString(string(content))
}

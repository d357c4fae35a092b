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

// writeOverlay writes the file of -overlay: for each path, beginning at the root
// of the repository, what the compiler is to read in place of it.
func writeOverlay(name string, contents map[string]string) (string, error) {
	dir := filepath.Join(buildDir, "overlay-"+name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, content := range contents {
		full, err := filepath.Abs(filepath.Join("..", path))
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

// replaceIn changes a source file of the repository; what is replaced must be
// there exactly once.
func replaceIn(path, from, to string) (map[string]string, error) {
	content, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(content), from); n != 1 {
		return nil, fmt.Errorf("%s has %q %d times, not once", path, from, n)
	}
	return map[string]string{path: strings.Replace(string(content), from, to, 1)}, nil
}

// buildNewer builds a program of the future: its store has a higher format.
func buildNewer() (string, error) {
	const path = "internal/store/key.go"
	content, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		return "", err
	}
	declaration := regexp.MustCompile(`const formatVersion = \d+`).FindString(string(content))
	overlay, err := replaceIn(path, declaration, "const formatVersion = 1000")
	if err != nil {
		return "", err
	}
	return build("scheduler-server-newer", "../server", overlay)
}

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// fileGuard records the files and directories of the embedded member as they were opened. If a name
// later refers to another file, somebody has restored a copy, and further writes go to deleted
// files.
type fileGuard map[string]os.FileInfo

// newFileGuard records the files of a data directory.
func newFileGuard(dataDir string) (fileGuard, error) {
	member := filepath.Join(memberDir(dataDir), "member")
	g := fileGuard{}
	for _, path := range []string{dataDir, member, filepath.Join(member, "wal"), filepath.Join(member, "snap")} {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		g[path] = info
	}
	return g, nil
}

// changed returns a name that refers to another file, or "".
func (g fileGuard) changed() string {
	for path, opened := range g {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Sprintf("%s is gone", path)
		case err == nil && !os.SameFile(info, opened):
			return fmt.Sprintf("%s is not the file that was opened", path)
		}
	}
	return ""
}

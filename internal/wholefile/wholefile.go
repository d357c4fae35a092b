// Package wholefile puts files in their place as a whole: after a crash there is the new file, or what
// was there before.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace writes a file, durably, in place of one that there may be. Only the owner can read it, unless
// write changes its mode.
func Replace(path string, write func(*os.File) error) error {
	return put(path, os.Rename, write)
}

// Create is like Replace, but fails with fs.ErrExist if there is such a file, or another process is
// faster.
func Create(path string, write func(*os.File) error) error {
	return put(path, os.Link, write) // unlike rename, link fails
}

func put(path string, place func(from, to string) error, write func(*os.File) error) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // which there is only after an error or a link
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := place(file.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

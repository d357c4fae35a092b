package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockFile is locked by whoever has a data directory.
const lockFile = "LOCK"

// directoryLock is the exclusive hold of one process on a data directory. The
// kernel drops it when the process ends, however it ends. It is flock rather than
// etcd's fileutil, whose locks on Linux belong to the open file: a server of an
// earlier version, which holds a flock, would not be noticed.
type directoryLock struct{ file *os.File }

// lockDirectory takes the lock or says at once who has it.
func lockDirectory(dir string) (*directoryLock, error) {
	path := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the data directory: flock %s: %w", path, err)
		}
		return nil, &LockedError{Path: dir, Owner: lockOwner(file)}
	}
	// The process id is only for the message above: a disk too full to hold it
	// must not keep the store from opening.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &directoryLock{file}, nil
}

// lockOwner is the process that a lock file names, 0 where it cannot be read.
func lockOwner(file io.Reader) int {
	text, _ := io.ReadAll(io.LimitReader(file, 32))
	owner, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return owner
}

func (l *directoryLock) release() error {
	_ = l.file.Truncate(0)
	return l.file.Close()
}

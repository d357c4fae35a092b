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

// lockFile is locked by the owner of a data directory.
const lockFile = "LOCK"

// directoryLock is the exclusive lock of a process on a data directory: a flock, which the kernel
// releases when the process ends in any way.
type directoryLock struct{ file *os.File }

// lockDirectory acquires the lock, or fails at once with its owner.
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
	// The process ID is only informational: a full disk must not prevent the store from opening.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &directoryLock{file}, nil
}

// lockOwner returns the process ID in a lock file, or 0 if it cannot be read.
func lockOwner(file io.Reader) int {
	text, _ := io.ReadAll(io.LimitReader(file, 32))
	owner, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return owner
}

func (l *directoryLock) release() error {
	_ = l.file.Truncate(0)
	return unlock(l.file)
}

// unlock releases the lock of a file and closes it. Closing alone is not enough: a child process that is being started
// at that moment shares the lock until it runs its program.
func unlock(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

const (
	// reserveFile reserves space in the data directory so that deletions are possible when the disk
	// is full.
	reserveFile = "RESERVE"
	// logSegment is what etcd allocates at once when a segment of its log is full. If that fails,
	// the process terminates.
	logSegment = 64 * mebibyte
	// deleteBytes is the free space below which not even deletions are accepted.
	deleteBytes = 16 * mebibyte
	// reserveBytes is the size of the reserve.
	reserveBytes = logSegment + deleteBytes
	// growBytes is the free space, without the reserve, below which nothing may grow: writes in
	// progress may then still fill a segment of the log.
	growBytes = logSegment + 2*deleteBytes
)

// reserve is the reserve file. It is part of the free space that the store must keep, so it has no
// effect until the disk is full.
type reserve struct {
	path string
	size int64 // if it exists

	// mu is held for writing while the file is created or removed, because the free space and held
	// are inconsistent then. Hold it for reading to use both.
	mu   sync.RWMutex
	held atomic.Int64 // its size, 0 if it does not exist
}

// openReserve adopts the reserve as the previous process left it.
func openReserve(dataDir string, minFree int64) *reserve {
	r := &reserve{path: filepath.Join(dataDir, reserveFile), size: min(reserveBytes, minFree)}
	if info, err := os.Stat(r.path); err == nil {
		r.held.Store(info.Size())
	}
	return r
}

// fill creates the reserve. It calls begin before it allocates space.
func (r *reserve) fill(begin func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held.Load() > 0 {
		return nil
	}
	begin()
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(fileutil.Preallocate(file, r.size, true), file.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("reserve space for deletions: %w", err), r.remove())
	}
	r.held.Store(r.size)
	return nil
}

// release returns the space to the disk, and reports whether there was any.
func (r *reserve) release() (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held.Load() == 0 {
		return false, nil
	}
	if err := r.remove(); err != nil {
		return false, fmt.Errorf("release the space for deletions: %w", err)
	}
	r.held.Store(0)
	return true, nil
}

func (r *reserve) remove() error {
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

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
	// reserveFile takes up room in the data directory for what has to be possible
	// when there is no other: to delete.
	reserveFile = "RESERVE"
	// logSegment is what etcd sets aside at once when a segment of its log is full.
	// Where that fails, the process ends with the next one.
	logSegment = 64 * mebibyte
	// deleteBytes is the free space below which not even deletions are accepted.
	deleteBytes = 16 * mebibyte
	// reserveBytes is the size of the reserve.
	reserveBytes = logSegment + deleteBytes
	// growBytes is the free space, the reserve not counted, below which nothing
	// may grow: what is under way then may still fill a segment of the log.
	growBytes = logSegment + 2*deleteBytes
)

// reserve is the reserve file. It is part of the free space that the store is told
// to keep, so it costs nobody anything until the disk is full.
type reserve struct {
	path string
	size int64 // when it is there

	// mu is held for writing while the file is made or removed: the free space shows
	// only a part of that then, and held none. Who looks at both holds it for reading.
	mu   sync.RWMutex
	held atomic.Int64 // its size, 0 while it is not there
}

// openReserve takes the reserve as the last process left it.
func openReserve(dataDir string, minFree int64) *reserve {
	r := &reserve{path: filepath.Join(dataDir, reserveFile), size: min(reserveBytes, minFree)}
	if info, err := os.Stat(r.path); err == nil {
		r.held.Store(info.Size())
	}
	return r
}

// fill makes the reserve. begin is called before anything is taken from the disk.
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
		return errors.Join(fmt.Errorf("set room aside for deletions: %w", err), r.remove())
	}
	r.held.Store(r.size)
	return nil
}

// release gives the room back to the disk, and reports whether there was any.
func (r *reserve) release() (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held.Load() == 0 {
		return false, nil
	}
	if err := r.remove(); err != nil {
		return false, fmt.Errorf("release the room for deletions: %w", err)
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

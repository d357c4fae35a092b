package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/scheduler/terraform-provider-scheduler/internal/wholefile"
)

// firstStartFile is in a data directory from before the first byte of a new member is written until
// the store is ready for writes. As long as it exists, nothing was acknowledged: a start that finds
// it starts over.
const firstStartFile = "FIRST-START"

const firstStartText = `The store in this directory is being set up for the first time. If this file is
still here when no server runs, that start was interrupted; the next one begins
again, and discards what is in the directory "etcd" beside this file.
`

// beginFirstStart prepares a data directory without a usable member for a new one, and reports
// whether it did. A directory with a member is left unchanged. So is one with the log of a cluster
// member: its promises to other members count from the start.
func beginFirstStart(dataDir string, alone bool) (bool, error) {
	switch {
	case firstStartInterrupted(dataDir) && !alone && checkLog(dataDir) == nil:
		return true, nil
	case firstStartInterrupted(dataDir):
		if err := os.RemoveAll(memberDir(dataDir)); err != nil {
			return false, fmt.Errorf("discard an interrupted first start: %w", err)
		}
		return true, wholefile.SyncDir(dataDir)
	case existingStore(dataDir):
		return false, nil
	}
	if err := os.WriteFile(filepath.Join(dataDir, firstStartFile), []byte(firstStartText), 0o600); err != nil {
		return false, fmt.Errorf("begin the first start: %w", err)
	}
	// The file name must be durable before anything that it refers to exists.
	return true, wholefile.SyncDir(dataDir)
}

// firstStartInterrupted reports whether the member in a data directory was never ready.
func firstStartInterrupted(dataDir string) bool {
	_, err := os.Lstat(filepath.Join(dataDir, firstStartFile))
	return err == nil
}

// endFirstStart records that the store is ready for writes, before anybody is told.
func endFirstStart(dataDir string) error {
	err := os.Remove(filepath.Join(dataDir, firstStartFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end the first start: %w", err)
	}
	return wholefile.SyncDir(dataDir)
}

// checkLog rejects a member that has a database but no write-ahead log. etcd would start a new log,
// and wait forever for entries that the database already contains.
func checkLog(dataDir string) error {
	member := filepath.Join(memberDir(dataDir), "member")
	segments, err := filepath.Glob(filepath.Join(member, "wal", "*.wal"))
	if err != nil {
		return fmt.Errorf("look at the log of the store: %w", err)
	}
	for _, segment := range segments {
		if info, err := os.Stat(segment); err == nil && info.Size() > 0 {
			return nil
		}
	}
	what := "is missing"
	if len(segments) > 0 {
		what = "is empty"
	}
	return fmt.Errorf("%w: the write-ahead log in %s %s: %s", ErrDamaged, filepath.Join(member, "wal"), what, adviceRestore)
}

// adviceRestore says what to do about unusable files.
const adviceRestore = `restore a backup into an empty directory with "scheduler-server restore", or remove this directory if the server has never been ready with it`

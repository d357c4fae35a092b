package store

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.uber.org/zap"
)

// Report is the result of Check.
type Report struct {
	// Findings is empty if nothing is damaged.
	Findings []Finding
	// Records is the number of value versions that were read. Except for those in Findings, they
	// match their checksums.
	Records int
}

// errNothingToCheck is returned for a path that is neither a data directory nor a backup.
var errNothingToCheck = errors.New("it is neither a data directory nor a backup")

// Check reads a data directory that no server has open, or a backup, completely and without
// modifying it. It returns an error if it cannot check; damage is reported as findings. Encrypted
// secrets are checked in encrypted form, without the key.
func Check(path string) (Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Report{}, err
	}
	if info.IsDir() {
		return checkDirectory(path)
	}
	return checkFile(path)
}

func checkDirectory(dir string) (Report, error) {
	if firstStartInterrupted(dir) {
		return Report{}, fmt.Errorf("%s was being set up for the first time when the server stopped, and holds nothing yet: %w", dir, errNothingToCheck)
	}
	if !existingStore(dir) {
		return Report{}, fmt.Errorf("%s holds no store: %w", dir, errNothingToCheck)
	}
	release, err := shareDirectory(dir)
	if err != nil {
		return Report{}, err
	}
	defer release()
	var report Report
	if err := checkLog(dir); err != nil {
		report.Findings = append(report.Findings, Finding{File: filepath.Join(memberDir(dir), "member", "wal"), What: err.Error(), Fatal: true})
	}
	findings, records, _, err := inspectMember(memberDir(dir))
	if err != nil {
		return report, err
	}
	report.Records = records
	if len(report.Findings) == 0 || len(findings) > 1 {
		report.Findings = findings
	}
	snapshots, err := filepath.Glob(filepath.Join(memberDir(dir), "member", "snap", "*.snap"))
	if err != nil {
		return report, err
	}
	for _, path := range snapshots {
		if _, err := snap.Read(zap.NewNop(), path); err != nil {
			report.Findings = append(report.Findings, Finding{File: path, What: err.Error()})
		}
	}
	return report, nil
}

// shareDirectory prevents servers from opening a directory while it is read.
func shareDirectory(dir string) (release func(), err error) {
	file, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the data directory: %w", err)
		}
		return nil, &LockedError{Path: dir, Owner: lockOwner(file)}
	}
	return func() { _ = unlock(file) }, nil
}

func checkFile(path string) (Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return Report{}, err
	}
	defer file.Close()
	if isDatabase(file) {
		db, err := inspectDatabase(path)
		return Report{Findings: db.findings, Records: db.records}, err
	}
	header, err := tar.NewReader(file).Next()
	if err != nil || header.Name != metaEntry {
		return Report{}, fmt.Errorf("%s: %w", path, errNothingToCheck)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return Report{}, err
	}
	work, err := os.MkdirTemp("", "scheduler-check-*")
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(work)
	database := filepath.Join(work, snapshotEntry)
	if _, _, err := extract(file, work); errors.Is(err, errBadBackup) {
		return Report{Findings: []Finding{{File: path, What: err.Error(), Fatal: true}}}, nil
	} else if err != nil {
		return Report{}, err
	}
	db, err := inspectDatabase(database)
	for i := range db.findings {
		db.findings[i].File = path + ": " + snapshotEntry
	}
	return Report{Findings: db.findings, Records: db.records}, err
}

// isDatabase reports whether a file is a database itself, such as the snapshot of a backup.
func isDatabase(file io.ReaderAt) bool {
	p, err := openPages(file, 1<<62, func(uint64, string) {})
	return err == nil && p != nil
}

// refuseDamaged rejects the database of a backup if no server would start with it. It accepts
// damaged objects, which a server reports.
func refuseDamaged(database string) error {
	db, err := inspectDatabase(database)
	if err != nil {
		return err
	}
	for _, f := range db.findings {
		if f.Fatal {
			return fmt.Errorf("%w: its %s is damaged: %s", errBadBackup, snapshotEntry, f.What)
		}
	}
	return nil
}

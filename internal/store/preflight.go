package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// preflight reads the files of a member before etcd does, and rejects those on which etcd would
// panic, crash with a memory fault, hang, or silently lose data. Damaged objects are left to their
// readers.
func (s *Store) preflight() error {
	dir := s.options.DataDir
	s.options.Doing("checking the files of the store")
	if err := checkLog(dir); err != nil {
		return err
	}
	findings, _, last, err := inspectMember(memberDir(dir))
	if err != nil {
		return fmt.Errorf("read the files of the store: %w", err)
	}
	fatal := 0
	var first Finding
	for _, f := range findings {
		if f.Fatal {
			if fatal++; fatal == 1 {
				first = f
			}
		}
	}
	if fatal == 0 {
		return refuseOlderCopy(s.options, last)
	}
	others := ""
	if fatal > 1 {
		others = fmt.Sprintf(" (and %d more)", fatal-1)
	}
	return fmt.Errorf("%w: %s%s: \"scheduler-server check\" lists what is damaged; %s", ErrDamaged, first, others, adviceRestore)
}

// inspectMember reads the database and the log of a member. records is the number of records in the
// database, and last the last entry of the log.
func inspectMember(member string) (findings []Finding, records int, last uint64, err error) {
	member = filepath.Join(member, "member")
	path := filepath.Join(member, "snap", "db")
	var db database
	// If the database does not exist or is empty, etcd creates it from the log.
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Size() > 0:
		if db, err = inspectDatabase(path); err != nil {
			return nil, 0, 0, err
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, 0, 0, err
	}
	findings, last, err = inspectLog(member)
	if err != nil {
		return nil, 0, 0, err
	}
	if len(findings) == 0 && last < db.consistentIndex {
		findings = append(findings, Finding{
			File: filepath.Join(member, "wal"), Fatal: true,
			What: fmt.Sprintf("the log ends with entry %d, and the database %s has seen entry %d", last, path, db.consistentIndex),
		})
	}
	return append(db.findings, findings...), db.records, last, nil
}

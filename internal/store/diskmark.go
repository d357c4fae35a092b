package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// diskMark is how far the log of the embedded member had come, in a file outside its directory:
// a data directory that is put back to an older copy does not have it. A member that has forgotten
// what it had acknowledged must not vote: together with another one it would be the majority, and
// decide a second time what has been decided.
type diskMark struct {
	// Cluster and Member are whose log it is: a restored backup is another one.
	Cluster string `json:"cluster"`
	Member  string `json:"member"`
	// Index is an entry of the log that was durable.
	Index uint64 `json:"index"`
}

// errOlderCopy is returned for a data directory that was put back to an older copy.
var errOlderCopy = errors.New("the data directory was put back to an older copy")

// diskMarkPaths returns the names of the file of a data directory's mark: beside it, and in it where
// the server may not write beside it, as then only a part that is put back is noticed.
func diskMarkPaths(dataDir string) []string {
	return []string{filepath.Clean(dataDir) + ".high-water-mark", filepath.Join(dataDir, "high-water-mark")}
}

// refuseOlderCopy fails if the log of a data directory ends before its mark.
func refuseOlderCopy(o Options, last uint64) error {
	for _, path := range diskMarkPaths(o.DataDir) {
		if err := refuseBefore(o, path, last); err != nil {
			return err
		}
	}
	return nil
}

func refuseBefore(o Options, path string, last uint64) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var mark diskMark
	if err == nil {
		err = json.Unmarshal(text, &mark)
	}
	if err != nil {
		o.Logger.Warn("the high-water mark of the data directory cannot be read; an older copy is not noticed at this start", "file", path, "error", err)
		return nil
	}
	cluster, member, err := logIdentity(o.DataDir)
	if err != nil {
		return fmt.Errorf("read the files of the store: %w", err)
	}
	if mark.Cluster != cluster.String() || mark.Member != member.String() || last >= mark.Index {
		return nil
	}
	err = fmt.Errorf("%w: the log in %s ends with entry %d, and had come to entry %d, as %s says", errOlderCopy, o.DataDir, last, mark.Index, path)
	if o.Cluster == nil {
		return fmt.Errorf("%w: put the newer directory back, or restore a backup into an empty directory with \"scheduler-server restore\"; to lose what was written since this copy, and have clients confuse it with what comes, remove %s", err, path)
	}
	return fmt.Errorf("%w: put the newer directory back, or %s", err, o.Cluster.adviceReplaceMember())
}

// keepDiskMark writes the mark after a write that went through the own member. By then everything
// that had been applied at the end of the write before it is durable here: the member stores what
// it appends before it goes on.
func (s *Store) keepDiskMark() {
	if s.member == nil {
		return
	}
	g := &s.guard
	durable := g.applied
	g.applied = s.member.Server.AppliedIndex()
	if durable <= g.onDisk {
		return
	}
	text, err := json.Marshal(diskMark{s.member.Server.Cluster().ID().String(), s.member.Server.MemberID().String(), durable})
	if err != nil {
		return // never happens
	}
	var failed []error
	for _, path := range diskMarkPaths(s.options.DataDir) {
		err := replaceFile(path, text)
		if err == nil {
			g.onDisk = durable
			break
		}
		failed = append(failed, err)
	}
	if len(failed) > 0 && !g.unmarked {
		g.unmarked = true
		s.options.Logger.Warn("the high-water mark of the data directory cannot be written beside it: if the whole directory is put back to an older copy, that is not noticed", "error", errors.Join(failed...))
	}
}

// replaceFile writes a file as a whole or not at all.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

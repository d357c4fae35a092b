package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// awaitDiskMark waits until the mark in a file is one that an older copy of the data directory does not reach.
func awaitDiskMark(t *testing.T, path, older string) {
	t.Helper()
	_, last, err := inspectLog(filepath.Join(memberDir(older), "member"))
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a mark after the copy", func() bool {
		text, err := os.ReadFile(path)
		var mark diskMark
		return err == nil && json.Unmarshal(text, &mark) == nil && mark.Index > last
	})
}

// TestAnOlderDiskOfALoneServerIsNoticed when the server starts with it, with the ways out.
func TestAnOlderDiskOfALoneServerIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openAlone(t, dir)
	keepWriting(t, s, "before")
	closeStore(t, s)
	older := copyOf(t, dir)
	s = openAlone(t, dir)
	keepWriting(t, s, "after")
	awaitDiskMark(t, diskMarkPaths(dir)[0], older)
	closeStore(t, s)
	closeStore(t, openAlone(t, dir)) // what it had is there
	if err := swap(dir, older); err != nil {
		t.Fatal(err)
	}
	mark := diskMarkPaths(dir)[0]
	refused(t, s.options, errOlderCopy, dir, "restore a backup", "remove "+mark)
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	openAlone(t, dir)
}

// TestAnOlderPartOfADiskIsNoticed where the server may not write beside its data directory: the mark is in it.
func TestAnOlderPartOfADiskIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	beside, within := diskMarkPaths(dir)[0], diskMarkPaths(dir)[1]
	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	s := openAlone(t, dir)
	keepWriting(t, s, "before")
	closeStore(t, s)
	older := copyOf(t, dir)
	s = openAlone(t, dir)
	keepWriting(t, s, "after")
	awaitDiskMark(t, within, older)
	closeStore(t, s)
	if err := swap(memberDir(dir), memberDir(older)); err != nil {
		t.Fatal(err)
	}
	refused(t, s.options, errOlderCopy, dir, "remove "+within)
}

// TestARestoredBackupIsNoOlderDisk: it is another store, with a log of its own.
func TestARestoredBackupIsNoOlderDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openAlone(t, dir)
	fill(t, s, 3)
	var backup bytes.Buffer
	if err := s.Backup(timeout(t), &backup, nil); err != nil {
		t.Fatal(err)
	}
	awaitDiskMark(t, diskMarkPaths(dir)[0], t.TempDir())
	closeStore(t, s)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), &backup, dir); err != nil {
		t.Fatal(err)
	}
	openAlone(t, dir)
}

// TestOlderDisksOfMembersAreNoticed puts back each disk of three, and each pair of disks: those servers do not take part,
// so that what two of them have forgotten is not decided again, and the others go on with what they have.
func TestOlderDisksOfMembersAreNoticed(t *testing.T) {
	t.Parallel()
	options := peers(t, 3)
	stores := openPeers(t, options)
	keepWriting(t, stores[0], "before")
	for _, s := range stores {
		closeStore(t, s)
	}
	older := make([]string, len(options))
	for i, o := range options {
		older[i] = copyOf(t, o.DataDir)
	}
	stores = openPeers(t, options)
	keepWriting(t, stores[0], "after")
	for i, o := range options {
		awaitDiskMark(t, diskMarkPaths(o.DataDir)[0], older[i])
	}
	for _, s := range stores {
		closeStore(t, s)
	}
	for _, back := range [][]int{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}} {
		t.Run(fmt.Sprint(back), func(t *testing.T) {
			others := append([]Options(nil), options...)
			for _, i := range back {
				dir, name := options[i].DataDir, options[i].Cluster.Name
				if err := os.Rename(dir, dir+".newer"); err != nil {
					t.Fatal(err)
				}
				if err := os.CopyFS(dir, os.DirFS(older[i])); err != nil {
					t.Fatal(err)
				}
				refused(t, options[i], errOlderCopy, dir, "members remove "+name, "members add "+name+"=")
				others[i].DataDir = ""
			}
			var left []Options
			for _, o := range others {
				if o.DataDir != "" {
					left = append(left, o)
				}
			}
			if len(left) == 2 {
				running := openPeers(t, left)
				if spec, _ := keepReading(t, running[1], placement(0)); string(spec.Value) != "after" {
					t.Errorf("the others show %q", spec.Value)
				}
				for _, s := range running {
					closeStore(t, s)
				}
			}
			for _, i := range back {
				dir := options[i].DataDir
				if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+".newer", dir)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// restoredFrom writes the files of a backup to a directory, and opens the log in it.
func restoredFrom(t interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}, l *Log, dir string, revision, begins int64) *Log {
	backup, err := l.Backup(context.Background(), revision, begins)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range backup {
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err = errors.Join(err, content.Close(), os.WriteFile(filepath.Join(dir, f.Name), text, 0o600)); err != nil {
			t.Fatal(err)
		}
		if int64(len(text)) != f.Size {
			t.Fatalf("%s has %d bytes, want %d", f.Name, len(text), f.Size)
		}
	}
	return opened(t, dir, &clock{start})
}

// TestBackupEndsWithItsRevision restores backups at any revision: they have what was decided until then, and go on
// without a gap.
func TestBackupEndsWithItsRevision(t *testing.T) {
	root := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		dir, restored := filepath.Join(root, fmt.Sprint(n)), filepath.Join(root, fmt.Sprint(n, "-restored"))
		l := opened(t, dir, &clock{start})
		var all []api.HistoryEntry
		through := rapid.Int64Range(1, 40).Draw(t, "through")
		for revision := int64(1); revision <= through; revision++ {
			if !rapid.Bool().Draw(t, "decided") {
				appended(t, l, revision)
				continue
			}
			e := entry(revision, "web", "a", "b", start)
			appended(t, l, revision, e)
			e.Entry.Moved = api.Moves(e.Entry.Before, e.Entry.After)
			all = append(all, *e.Entry)
		}
		revision := rapid.Int64Range(1, through).Draw(t, "revision")
		const begins = 1000
		l = restoredFrom(t, l, restored, revision, begins)
		if l.complete() != begins && len(l.files) > 0 {
			t.Fatalf("complete up to %d, want %d", l.complete(), begins)
		}
		appended(t, l, begins+1, entry(begins+1, "later", "a", "b", start))
		got, gaps := pages(t, l, Query{Limit: 7})
		slices.Reverse(got)
		want := slices.DeleteFunc(all, func(e api.HistoryEntry) bool { return e.Revision > revision })
		if len(got) != len(want)+1 || len(gaps) > 0 {
			t.Fatalf("%d entries, want %d and a later one; gaps %v", len(got), len(want), gaps)
		}
		for i := range want {
			if got[i].Revision != want[i].Revision {
				t.Fatalf("entry %d is of revision %d, want %d", i, got[i].Revision, want[i].Revision)
			}
		}
	})
}

// TestBackupOfALogThatIsBehind waits, and then says how far the log is.
func TestBackupOfALogThatIsBehind(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := opened(t, dir, &clock{start})
		appended(t, l, 3, entry(2, "web", "a", "b", start))
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := l.Backup(ended, 5, 1000); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want Canceled", err)
		}
		began := time.Now()
		backup, err := l.Backup(t.Context(), 5, 1000)
		if err != nil || len(backup) != 1 || time.Since(began) < backupPatience {
			t.Fatalf("%d files after %s, %v", len(backup), time.Since(began), err)
		}
		content, err := backup[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if _, through := complete(text); through != 3 || err != nil {
			t.Errorf("the backup is complete up to %d, want 3, %v", through, err)
		}
	})
}

// TestBackupOfADamagedLog backs up a log whose last file cannot be read: the backup has what is before, and a gap.
func TestBackupOfADamagedLog(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, &clock{start})
	for revision := range int64(12) {
		appended(t, l, revision+1, entry(revision+1, "web", "a", "b", start))
	}
	last := l.files[len(l.files)-1]
	if err := os.Remove(filepath.Join(dir, last.name())); err != nil || last.first == 1 {
		t.Fatal(last, err)
	}
	const begins = 1000
	restored := restoredFrom(t, l, filepath.Join(t.TempDir(), "restored"), 12, begins)
	entries, gaps := pages(t, restored, Query{Limit: 5})
	if len(entries) != int(last.first)-1 || len(gaps) != 1 || gaps[0].After != last.first-1 || gaps[0].Until != 12 || restored.complete() != begins {
		t.Errorf("%d entries, gaps %+v, complete up to %d, want %d entries and a gap after them", len(entries), gaps, restored.complete(), last.first-1)
	}
}

package store

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// written creates a data directory with 300 objects and closes the store.
func written(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, func(o *Options) { o.DataDir, o.NoFsync = dir, false })
	fill(t, s, 300)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// change edits the only file that matches a pattern below the member directory.
func change(t *testing.T, dir, pattern string, edit func([]byte) []byte) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(memberDir(dir), "member", pattern))
	if err != nil || len(paths) != 1 {
		t.Fatalf("files %v, %v", paths, err)
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(paths[0], edit(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// end returns where the content of a preallocated file ends.
func end(b []byte) int { return (withoutZeros(b) + 7) &^ 7 }

func TestTornLogTailIsRecovered(t *testing.T) {
	t.Parallel()
	dir := written(t)
	// A record of 1200 bytes was being written: its first sector reached the disk, the others did not.
	change(t, dir, "wal/*.wal", func(b []byte) []byte {
		at := end(b)
		binary.LittleEndian.PutUint64(b[at:], 1200)
		for i := at + 8; i%512 != 0; i++ {
			b[i] = 8
		}
		return b
	})
	if output, err := childCommand(t, "check", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// A damaged store either fails to open, or has everything that was written. It never serves only a part.
func TestDamagedDataIsRefused(t *testing.T) {
	t.Parallel()
	flip := func(at func([]byte) int) func([]byte) []byte {
		return func(b []byte) []byte {
			for i := range 8 {
				b[at(b)+i] ^= 0x55
			}
			return b
		}
	}
	cases := []struct {
		name, file string
		edit       func([]byte) []byte
		recovers   bool
	}{
		{"middle of the log", "wal/*.wal", flip(func(b []byte) int { return end(b) / 2 }), false},
		{"head of the log", "wal/*.wal", flip(func([]byte) int { return 16 }), false},
		{"both meta pages of the database", "snap/db", func(b []byte) []byte {
			page := os.Getpagesize()
			return flip(func([]byte) int { return page + 24 })(flip(func([]byte) int { return 24 })(b))
		}, false},
		{"empty database", "snap/db", func([]byte) []byte { return nil }, true}, // the log contains everything
		{"empty log", "wal/*.wal", func([]byte) []byte { return nil }, false},
		{"log of zeros", "wal/*.wal", func(b []byte) []byte { return make([]byte, len(b)) }, false},
		{"log without entries", "wal/*.wal", func(b []byte) []byte {
			clear(b[256:])
			return b
		}, false},
		{"truncated database", "snap/db", func(b []byte) []byte { return b[:3*os.Getpagesize()] }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := written(t)
			change(t, dir, c.file, c.edit)
			output, err := childCommand(t, "check", dir).CombinedOutput()
			t.Logf("%v: %.600s", err, output)
			var exit *exec.ExitError
			switch {
			case err == nil && c.recovers:
			case c.recovers || !errors.As(err, &exit):
				t.Errorf("the child ended with %v", err)
			case exit.ExitCode() != 1 && exit.ExitCode() != exitCode:
				t.Errorf("exit code %d", exit.ExitCode())
			case !strings.Contains(string(output), "restore"):
				t.Errorf("the output does not suggest a restore: %s", output)
			}
		})
	}
}

// A missing log is an error at once, without a wait.
func TestLostLogIsRefused(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"wal", "wal/*.wal"} {
		t.Run(lost, func(t *testing.T) {
			dir := written(t)
			paths, err := filepath.Glob(filepath.Join(memberDir(dir), "member", lost))
			if err != nil || len(paths) == 0 {
				t.Fatal(paths, err)
			}
			for _, path := range paths {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
			output, err := childCommand(t, "check", dir).CombinedOutput()
			if err == nil || !strings.Contains(string(output), "restore") {
				t.Errorf("error %v, want the suggestion of a restore: %s", err, output)
			}
			if _, err := os.Stat(filepath.Join(memberDir(dir), "member", "snap", "db")); err != nil {
				t.Error("the database was deleted:", err)
			}
		})
	}
}

package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestLockedDirectoryNamesItsOwner(t *testing.T) {
	dir := t.TempDir()
	s := open(t, func(o *Options) { o.DataDir = dir })
	// It does not wait for the directory: the error would be another one.
	_, err := Open(timeout(t), Options{DataDir: dir, MinFreeBytes: 1})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Owner != os.Getpid() || locked.Path != dir {
		t.Fatalf("error %v, want the lock of this process", err)
	}
	if want := fmt.Sprintf("the data directory %s is in use by process %d: stop it, or use another directory", dir, os.Getpid()); err.Error() != want {
		t.Fatalf("message %q, want %q", err, want)
	}
	// The same from another process.
	child := childCommand(t, "open", dir)
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(output), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Fatalf("child: %v, %s", err, output)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, func(o *Options) { o.DataDir = dir })
}

func TestRestoreRefusesADirectoryInUse(t *testing.T) {
	s := open(t)
	var locked *LockedError
	if err := Restore(t.Context(), strings.NewReader(""), s.options.DataDir); !errors.As(err, &locked) {
		t.Fatalf("error %v, want a lock", err)
	}
}

func TestOptionsThatContradict(t *testing.T) {
	cases := map[string]Options{
		"store: neither a data directory nor the endpoints of an etcd cluster are given":                                {},
		"store: a data directory and the endpoints of an etcd cluster are given; only one of them can hold the objects": {DataDir: "x", Endpoints: []string{"y"}},
		"store: writes would resume at 1 bytes of free space, below the 2 at which they stop":                           {DataDir: "x", MinFreeBytes: 2, ResumeFreeBytes: 1},
	}
	for want, o := range cases {
		if _, err := Open(t.Context(), o); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

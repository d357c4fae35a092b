package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

// A process that is started shares all descriptors, and with them the locks, until it runs its program.
func TestReleasedLockIsFreeWhileAProcessStarts(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, lockFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	exclusive := func() (func() error, error) {
		lock, err := lockDirectory(dir)
		if err != nil {
			return nil, err
		}
		return lock.release, nil
	}
	shared := func() (func() error, error) {
		release, err := shareDirectory(dir)
		return func() error { release(); return nil }, err
	}
	for name, acquire := range map[string]func() (func() error, error){"exclusive": exclusive, "shared": shared} {
		t.Run(name, func(t *testing.T) {
			release, err := acquire()
			if err != nil {
				t.Fatal(err)
			}
			inherited := inheritDescriptors(t, filepath.Join(dir, lockFile))
			if len(inherited) != 1 {
				t.Fatalf("%d descriptors of the lock file, want 1", len(inherited))
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
			again, err := lockDirectory(dir)
			if err != nil {
				t.Fatalf("lock after the release: %v", err)
			}
			if err := again.release(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// inheritDescriptors duplicates the descriptors of a file, as fork does, until the end of the test.
func inheritDescriptors(t *testing.T, path string) (inherited []int) {
	t.Helper()
	const open = "/proc/self/fd"
	entries, err := os.ReadDir(open)
	if err != nil {
		t.Fatal(err)
	}
	var descriptors []int
	for _, entry := range entries {
		if target, err := os.Readlink(filepath.Join(open, entry.Name())); err != nil || target != path {
			continue
		}
		descriptor, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		descriptors = append(descriptors, descriptor)
	}
	// Processes that parallel tests start must not inherit the copies.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for _, descriptor := range descriptors {
		duplicate, err := syscall.Dup(descriptor)
		if err != nil {
			t.Fatal(err)
		}
		syscall.CloseOnExec(duplicate)
		t.Cleanup(func() { _ = syscall.Close(duplicate) })
		inherited = append(inherited, duplicate)
	}
	return inherited
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

//go:build integration

package store

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

func init() { fullDisks = true }

// mountTmpfs mounts a file system with a size in MiB. It needs root.
func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+"m"); err != nil {
		t.Fatalf("mount a tmpfs (this test needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestWatchdogRefusesWritesBeforeTheDiskIsFull(t *testing.T) {
	mount := mountTmpfs(t, "400")
	dir := filepath.Join(mount, "data")
	s := open(t, func(o *Options) {
		o.DataDir, o.NoFsync = dir, false
		o.MinFreeBytes, o.ResumeFreeBytes = 96*mebibyte, 102*mebibyte
		o.WatchdogInterval = 50 * time.Millisecond
	})
	ctx := timeout(t)
	value := bytes.Repeat([]byte("v"), 256<<10)
	var err error
	written := 0
	for ; err == nil && written < 2000; written++ {
		_, err = s.Commit(ctx, Write{Key: placement(written), Value: value, Expect: 0})
	}
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "96 MiB are free") {
		t.Fatalf("after %d writes: %v", written, err)
	}
	t.Logf("rejected after %d writes of 256 KiB: %v", written, err)
	if _, err := s.Derive(ctx, []StatusWrite{{Key: placement(0), Value: value, SpecRevision: 1}}); !errors.Is(err, ErrFull) {
		t.Fatalf("derived write: %v", err)
	}
	spec, _, err := s.Read(ctx, placement(0))
	if err != nil || !bytes.Equal(spec.Value, value) {
		t.Fatalf("reads must continue: %v", err)
	}
	var archive bytes.Buffer
	if err := s.Backup(ctx, &archive, nil); err != nil {
		t.Fatalf("a backup must be possible: %v", err)
	}
	// After a restart on the full disk, reads work, too. The shutdown has freed the prepared log segment, so that
	// something else must take its place.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	free, err := freeSpace(mount)
	if err != nil {
		t.Fatal(err)
	}
	// If the disk was already too full to prepare a segment, nothing must.
	if err := os.WriteFile(filepath.Join(mount, "ballast"), make([]byte, max(free-90*mebibyte, 0)), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, func(o *Options) {
		o.DataDir = dir
		o.MinFreeBytes, o.ResumeFreeBytes = 96*mebibyte, 102*mebibyte
		o.WatchdogInterval = 50 * time.Millisecond
	})
	if spec, _, err = s.Read(ctx, placement(1)); err != nil || spec == nil {
		t.Fatalf("after a restart: %v, %v", spec, err)
	}
	if _, err := s.Commit(ctx, Write{Key: placement(9999), Value: []byte("v"), Expect: 0}); !errors.Is(err, ErrFull) {
		t.Fatalf("after a restart: %v", err)
	}
	if err := syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=1000m"); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "there is free space again", func() bool {
		_, err = s.Commit(ctx, Write{Key: placement(9999), Value: []byte("v"), Expect: 0})
		return !errors.Is(err, ErrFull)
	})
	if err != nil {
		t.Fatalf("with free space again: %v", err)
	}
}

// Many large concurrent writes, none of which is visible in the free space yet, must not fill the disk together, which
// would make etcd exit.
func TestWriteBurstStopsBeforeTheDiskIsFull(t *testing.T) {
	mount := mountTmpfs(t, "420")
	s := open(t, func(o *Options) {
		o.DataDir, o.NoFsync = filepath.Join(mount, "data"), false
		o.MinFreeBytes, o.ResumeFreeBytes = 96*mebibyte, 102*mebibyte
		o.WatchdogInterval = time.Second
	})
	ctx := timeout(t)
	value := bytes.Repeat([]byte("v"), mebibyte)
	var writers sync.WaitGroup
	for w := range 160 {
		writers.Go(func() {
			var err error
			for n := 0; err == nil; n++ {
				_, err = s.Commit(ctx, Write{Key: placement(1000*w + n), Value: value, Expect: 0})
			}
			if !errors.Is(err, ErrFull) {
				t.Errorf("writer %d: %v", w, err)
			}
		})
	}
	writers.Wait()
	var archive bytes.Buffer
	if err := s.Backup(ctx, &archive, nil); err != nil {
		t.Fatalf("a backup must be possible: %v", err)
	}
}

// The log that a member allocates when it starts counts before the first write, however long it takes until the disk is
// looked at again. Otherwise a burst of writes right after the start would fill the disk.
func TestLogCountsFromTheStart(t *testing.T) {
	mount := mountTmpfs(t, "420")
	dir := filepath.Join(mount, "data")
	// With a reserve, nothing looks at the disk before the first interval is over.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, reserveFile), make([]byte, reserveBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, func(o *Options) { o.DataDir, o.NoFsync, o.WatchdogInterval = dir, false, time.Hour })
	free, err := freeSpace(mount)
	if err != nil {
		t.Fatal(err)
	}
	if known := s.disk.free(); known > free+mebibyte {
		t.Errorf("%d MiB are taken for free, and %d MiB are", known/mebibyte, free/mebibyte)
	}
}

// While the reserve is allocated, free space decreases before the reserve counts. No write may fail because of that.
func TestWritesSucceedWhileTheReserveIsAllocated(t *testing.T) {
	d := newDiskWatch(Options{
		DataDir: mountTmpfs(t, "300"), MinFreeBytes: 256 * mebibyte, ResumeFreeBytes: 272 * mebibyte,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 50 {
			d.fillReserve()
			if released, err := d.reserve.release(); !released || err != nil {
				t.Errorf("the reserve was released: %t, %v", released, err)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			if !d.accept(0, true) {
				t.Fatal("a write was rejected")
			}
			d.answer(0)
		}
	}
}

// Room that appears on the disk while the database still holds what was deleted is
// not taken for enough: writes would be accepted and soon be refused again.
func TestWritesWaitForTheRoomOfWhatWasDeleted(t *testing.T) {
	mount := mountTmpfs(t, "360")
	s := open(t, func(o *Options) {
		o.DataDir, o.NoFsync = filepath.Join(mount, "data"), false
		o.MinFreeBytes, o.ResumeFreeBytes = 96*mebibyte, 102*mebibyte
		o.WatchdogInterval = 5 * time.Second
	})
	ctx := timeout(t)
	value := bytes.Repeat([]byte("v"), 256<<10)
	write := func(n int) error {
		_, err := s.Commit(ctx, Write{Key: placement(n), Value: value, Expect: Any})
		return err
	}
	written := 0
	for write(written) == nil {
		if written++; written > 2000 {
			t.Fatal("the disk does not become full")
		}
	}
	// Others take the last room, and give it back once everything is deleted.
	s.member.Server.Backend().ForceCommit() // etcd dies where the disk is taken from a commit
	ballast := filepath.Join(mount, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 360*mebibyte), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	for n := range written {
		if _, err := s.Commit(ctx, Write{Key: placement(n), Expect: Any}); err != nil {
			t.Fatalf("deletion %d of %d: %v", n, written, err)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	var err error
	eventually.True(t, "there is free space again", func() bool {
		err = write(9999)
		return !errors.Is(err, ErrFull)
	})
	if err != nil {
		t.Fatalf("with free space again: %v", err)
	}
	segments := logSegments(t, s)
	for n := range written / 2 {
		err := write(n)
		if errors.Is(err, ErrFull) && logSegments(t, s) > segments {
			t.Logf("after %d writes, another segment of the log used the space", n)
			break
		}
		if err != nil {
			t.Fatalf("write %d of %d after the deletions: %v", n, written/2, err)
		}
	}
}

// The reserve is for deletions. If other processes fill the disk and nothing is deleted, it is not used for
// defragmentation.
func TestTheReserveIsKeptForDeletions(t *testing.T) {
	mount := mountTmpfs(t, "360")
	s := open(t, func(o *Options) {
		o.DataDir, o.NoFsync = filepath.Join(mount, "data"), false
		o.MinFreeBytes, o.ResumeFreeBytes = 96*mebibyte, 102*mebibyte
		o.WatchdogInterval = time.Hour // the test calls the watchdog itself
	})
	ctx := timeout(t)
	s.disk.fillReserve()
	if s.disk.reserve.held.Load() == 0 {
		t.Fatal("there is no reserve")
	}
	value := bytes.Repeat([]byte("v"), 256<<10)
	for n := range 100 { // half of it is history
		if _, err := s.Commit(ctx, Write{Key: placement(n / 2), Value: value, Expect: Any}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Compact(ctx, s.revision.Load()); err != nil {
		t.Fatal(err)
	}
	s.member.Server.Backend().ForceCommit()
	if err := os.WriteFile(filepath.Join(mount, "ballast"), make([]byte, 360*mebibyte), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	shrink := func() (err error) {
		eventually.True(t, "there is space to release", func() bool {
			var tried bool
			tried, err = s.shrink()
			return tried
		})
		return err
	}
	if err := shrink(); !errors.Is(err, ErrFull) || s.disk.reserve.held.Load() == 0 {
		t.Fatalf("nothing was deleted, and the reserve is %d MiB: %v", s.disk.reserve.held.Load()/mebibyte, err)
	}
	if _, err := s.Commit(ctx, Write{Key: placement(0), Expect: Any}); err != nil {
		t.Fatalf("deletion: %v", err)
	}
	if err := shrink(); err != nil {
		t.Fatalf("shrink() after a deletion: %v", err)
	}
}

// logSegments returns the number of files in the log of a store, each of size logSegment.
func logSegments(t *testing.T, s *Store) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(memberDir(s.options.DataDir), "member", "wal", "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestFullDiskEndsTheProcessAndSaysWhy(t *testing.T) {
	dir := mountTmpfs(t, "200")
	child := childCommand(t, "write", dir)
	var stderr bytes.Buffer
	child.Stderr = &stderr
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acked := map[int]int64{}
	total := acknowledged(t, output, acked, func(int) {})
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitCode {
		t.Fatalf("the child ended with %v, want exit code %d", err, exitCode)
	}
	if !strings.Contains(stderr.String(), "STORE FAILED: ") || !strings.Contains(stderr.String(), "no space left on device") {
		t.Fatalf("unexpected output of the child %q", stderr.String())
	}
	if total == 0 {
		t.Fatal("no writes were acknowledged before")
	}
	t.Logf("%d acknowledged; %s", total, strings.TrimSpace(stderr.String()))
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 200*mebibyte), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	if _, err := Open(t.Context(), Options{DataDir: dir, MinFreeBytes: 1}); !errors.Is(err, ErrFull) {
		t.Fatalf("Open() on a full disk: error %v, want ErrFull", err)
	}
	_ = os.Remove(filepath.Join(dir, "ballast"))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=500m"); err != nil {
		t.Fatal(err)
	}
	checkAcknowledged(t, open(t, func(o *Options) { o.DataDir = dir }), acked)
}

func TestTooSmallADiskIsRefusedAtTheStart(t *testing.T) {
	dir := mountTmpfs(t, "100")
	_, err := Open(t.Context(), Options{DataDir: dir})
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "needs 145 MiB to start") {
		t.Fatalf("error %v, want ErrFull", err)
	}
}

package store

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// backup creates a store with some history and returns its backup.
func backup(t *testing.T) (archive []byte, revision int64) {
	t.Helper()
	s := open(t)
	ctx := timeout(t)
	revisions := fill(t, s, 50)
	if _, err := s.Derive(ctx, statuses(revisions, "status")); err != nil {
		t.Fatal(err)
	}
	revision = remove(t, s, placement(3))
	var out bytes.Buffer
	if err := s.Backup(ctx, &out, fakeHistory{"1": "first", "2": "second", "gone": ""}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.options.DataDir, "backup-*")); len(left) > 0 {
		t.Fatalf("files left: %v", left)
	}
	return out.Bytes(), revision
}

// fakeHistory has the texts of files by their names. An empty one was deleted just now.
type fakeHistory map[string]string

// Backup implements History.
func (h fakeHistory) Backup(_ context.Context, revision, restored int64) (files []HistoryFile, err error) {
	if restored != revision+revisionBump {
		return nil, fmt.Errorf("a store restored to revision %d is to begin at %d", revision, restored)
	}
	for name, text := range h {
		files = append(files, HistoryFile{Name: name, Size: int64(len(text)), Open: func() (io.ReadCloser, error) {
			if text == "" {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(strings.NewReader(text + "what was appended later")), nil
		}})
	}
	return files, nil
}

func TestBackupHasTheHistory(t *testing.T) {
	archive, _ := backup(t)
	dir := filepath.Join(t.TempDir(), "new")
	if err := Restore(timeout(t), bytes.NewReader(archive), dir); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(HistoryDir(dir))
	if err != nil || len(names) != 2 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for name, want := range map[string]string{"1": "first", "2": "second"} {
		if text, err := os.ReadFile(filepath.Join(HistoryDir(dir), name)); string(text) != want || err != nil {
			t.Errorf("%s has %q, want %q, %v", name, text, want, err)
		}
	}
}

func TestRestoredStoreGoesOn(t *testing.T) {
	t.Parallel()
	archive, revision := backup(t)
	dir := filepath.Join(t.TempDir(), "new")
	ctx := timeout(t)
	if err := Restore(ctx, bytes.NewReader(archive), dir); err != nil {
		t.Fatal(err)
	}
	s := open(t, func(o *Options) { o.DataDir = dir })
	specs, derived := 0, 0
	now, err := s.Load(ctx, 0, func(r Record) error {
		if r.Part == Spec {
			specs++
		} else {
			derived++
		}
		return nil
	})
	if err != nil || specs != 49 || derived != 49 {
		t.Fatalf("%d specs, %d statuses, %v", specs, derived, err)
	}
	if now < revision+revisionBump {
		t.Fatalf("the revision is %d, previously %d: clients could confuse old revisions with new ones", now, revision)
	}
	if batch := next(t, s.Watch(ctx, revision)); !errors.Is(batch.Err, ErrCompacted) {
		t.Fatalf("watch from before the restore: got %+v, want ErrCompacted", batch)
	}
	spec, _, err := s.Read(ctx, placement(4))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, Write{Key: placement(4), Value: []byte("new"), Expect: spec.ModRevision}); err != nil {
		t.Fatalf("compare-and-swap after the restore: %v", err)
	}
	if err := Restore(ctx, bytes.NewReader(archive), t.TempDir()); err != nil {
		t.Fatalf("second restore of a backup: %v", err)
	}
	// Compact the history beyond its start, then back up and restore again.
	now = put(t, s, placement(5), "newer")
	if _, err := s.client.Compact(ctx, now, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = open(t, func(o *Options) { o.DataDir = dir })
	var second bytes.Buffer
	if err := s.Backup(ctx, &second, nil); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again")
	if err := Restore(ctx, &second, again); err != nil {
		t.Fatal(err)
	}
	restored := open(t, func(o *Options) { o.DataDir = again })
	if spec, _, err := restored.Read(ctx, placement(5)); err != nil || spec.ModRevision != now {
		t.Fatalf("restored twice: got %v, %v", spec, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Restore(ctx, bytes.NewReader(archive), dir); !errors.Is(err, errNotEmpty) {
		t.Fatalf("restore over an existing store: error %v, want errNotEmpty", err)
	}
}

func TestBackupDescribesItself(t *testing.T) {
	archive, revision := backup(t)
	meta, history, err := extract(bytes.NewReader(archive), t.TempDir())
	if err != nil || history == "" {
		t.Fatalf("history in %q, %v", history, err)
	}
	if meta.Format != 1 || meta.Revision != revision || meta.SizeBytes == 0 || meta.ClusterID == "" || meta.CreatedAt.IsZero() {
		t.Fatalf("meta %+v, want revision %d", meta, revision)
	}
}

func TestDamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	archive, _ := backup(t)
	flip := func(at int) []byte {
		b := bytes.Clone(archive)
		b[at] ^= 1
		return b
	}
	renamed := func(entry, to string) []byte { return renamedEntry(t, archive, entry, to) }
	database := bytes.Index(archive, []byte("/v1/spec/placement"))
	cases := map[string][]byte{
		"empty":                nil,
		"not an archive":       []byte(strings.Repeat("what is this", 500)),
		"cut in the snapshot":  archive[:len(archive)/2],
		"cut before the sums":  archive[:len(archive)-2048-512],
		"cut in the header":    archive[:700],
		"a bit of an object":   flip(database + 5),
		"a bit of the meta":    flip(bytes.Index(archive, []byte(`"revision"`)) + 12),
		"a bit of the sums":    flip(bytes.LastIndex(archive, []byte("  snapshot.db")) - 1),
		"another archive":      otherArchive(t),
		"a newer format":       bytes.Replace(archive, []byte(`"format": 1`), []byte(`"format": 2`), 1),
		"an entry with a path": renamed("snapshot.db", "../../shot"),
		"a huge meta entry":    hugeArchive(t),
		"a bit of the history": flip(bytes.Index(archive, []byte("second"))),
		"history with a path":  renamed("history/1", "history/../1"),
		"history deeper down":  renamed("history/1", "history/a/1"),
		"history with another": renamed("history/1", "history/3"),
		"history twice":        renamed("history/1", "history/2"),
		"something else":       renamed("history/1", "future/1"),
		"without some history": renamed("history/1", ""),
	}
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := Restore(timeout(t), bytes.NewReader(content), dir); !errors.Is(err, errBadBackup) {
				t.Fatalf("error %v, want errBadBackup", err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if entry.Name() != "LOCK" {
					t.Errorf("file left: %s", entry.Name())
				}
			}
		})
	}
}

func otherArchive(t *testing.T) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "README", Size: 2, Typeflag: tar.TypeReg}), second(w.Write([]byte("hi"))), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func hugeArchive(t *testing.T) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	size := maxSmallEntry + 1
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: metaEntry, Size: int64(size), Typeflag: tar.TypeReg}), second(w.Write(make([]byte, size))), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// renamedEntry returns an archive with another name of an entry, or without it.
func renamedEntry(t *testing.T, archive []byte, name, to string) []byte {
	t.Helper()
	var out bytes.Buffer
	r, w := tar.NewReader(bytes.NewReader(archive)), tar.NewWriter(&out)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == name {
			if header.Name = to; to == "" {
				continue
			}
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(w, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func second(_ int, err error) error { return err }

func TestRestoreEndsWithItsContext(t *testing.T) {
	archive, _ := backup(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Restore(ctx, bytes.NewReader(archive), t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want Canceled", err)
	}
}

// A backup taken during writes contains everything that was acknowledged before it started, and only whole
// transactions.
func TestBackupUnderWrites(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := timeout(t)
	stop, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := map[int]int{}
	const writers = 4
	for w := range writers {
		wg.Go(func() {
			for n := 1; stop.Err() == nil; n++ {
				value := []byte(fmt.Sprint(n))
				if _, err := s.Commit(ctx, Write{Key: placement(2 * w), Value: value, Expect: Any}, Write{Key: placement(2*w + 1), Value: value, Expect: Any}); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[w] = n
				mu.Unlock()
			}
		})
	}
	eventually.True(t, "every writer has written", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acked) == writers
	})
	mu.Lock()
	before := map[int]int{}
	for w, n := range acked {
		before[w] = n
	}
	mu.Unlock()
	var archive bytes.Buffer
	err := s.Backup(ctx, &archive, nil)
	cancel()
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Restore(ctx, io.Reader(&archive), dir); err != nil {
		t.Fatal(err)
	}
	restored := open(t, func(o *Options) { o.DataDir = dir })
	for w := range 4 {
		a, _, errA := restored.Read(ctx, placement(2*w))
		b, _, errB := restored.Read(ctx, placement(2*w+1))
		if errA != nil || errB != nil || a == nil || b == nil {
			t.Fatalf("writer %d: %v, %v, %v, %v", w, a, b, errA, errB)
		}
		var n int
		if _, err := fmt.Sscan(string(a.Value), &n); err != nil || n < before[w] || string(a.Value) != string(b.Value) {
			t.Fatalf("writer %d: %s and %s in the backup, but %d was acknowledged before", w, a.Value, b.Value, before[w])
		}
	}
}

// A store that is closed during a backup waits until nothing reads the database any more, and the backup fails.
func TestCloseDuringABackup(t *testing.T) {
	s := open(t)
	for i := range 20 {
		put(t, s, placement(i), strings.Repeat(fmt.Sprint(i), 100_000/len(fmt.Sprint(i))))
	}
	reading := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		var first sync.Once
		_, err := s.writeDatabase(t.Context(), writerFunc(func(p []byte) (int, error) {
			first.Do(func() {
				close(reading)
				s.readers.Wait() // the rest is not taken: only the end of the store ends the reader
			})
			return len(p), nil
		}))
		done <- err
	}()
	<-reading
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, errClosed) {
		t.Errorf("the backup ended with %v, want that the store is closed", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// A member that has died may keep its locks for ever. A backup of it ends all the
// same, and says what the member died of.
func TestABackupEndsWithTheMember(t *testing.T) {
	s := open(t, func(o *Options) { o.Fatal = func(error) {} })
	tx := s.member.Server.Backend().BatchTx()
	tx.LockOutsideApply()
	defer func() {
		tx.Unlock()
		s.readers.Wait() // the test goes on after the death of the member, a server does not
	}()
	done := make(chan error, 1)
	go func() { done <- s.Backup(t.Context(), io.Discard, nil) }()
	s.fatal(errors.New("no space left on device"))
	select {
	case err := <-done:
		if err == nil || err.Error() != "back up: no space left on device" {
			t.Fatalf("the backup ended with %v", err)
		}
	case <-time.After(eventually.Limit):
		t.Fatal("the backup of a dead member does not end")
	}
}

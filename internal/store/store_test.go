package store

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// fullDisks is whether tests of full disks are among these: they are about what etcd
// allocates.
var fullDisks bool

func TestMain(m *testing.M) {
	if !fullDisks {
		storetest.SmallLogs()
	}
	if childMain() {
		return
	}
	storetest.VerifyMain(m)
}

// open opens a store for a test in a directory of its own, without fsync.
func open(t testing.TB, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{
		DataDir:      t.TempDir(),
		NoFsync:      true,
		MinFreeBytes: mebibyte,
		MarkInterval: time.Hour, // tests count revisions
		Logger:       slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelError})),
		Fatal:        func(err error) { t.Errorf("the embedded member died: %v", err) },
	}
	for _, f := range change {
		f(&o)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		running := s.ctx.Err() == nil
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if running && o.DataDir != "" && existingStore(o.DataDir) && !firstStartInterrupted(o.DataDir) {
			if findings, _, err := inspectMember(memberDir(o.DataDir)); err != nil || slices.ContainsFunc(findings, func(f Finding) bool { return f.Fatal }) {
				t.Errorf("the files of a sound store are called damaged: %v, %v", findings, err)
			}
		}
	})
	return s
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

func placement(n int) api.Key {
	return api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: fmt.Sprintf("p-%05d", n)}
}

func timeout(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	t.Cleanup(cancel)
	return ctx
}

// put writes the Spec part of an object, whatever it was.
func put(t testing.TB, s *Store, key api.Key, value string) int64 {
	t.Helper()
	revision, err := s.Commit(timeout(t), Write{Key: key, Value: []byte(value), Expect: Any})
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return revision
}

func TestObjectLivesInTwoParts(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	key := placement(1)
	created, err := s.Commit(ctx, Write{Key: key, Value: []byte("spec"), Expect: 0})
	if err != nil {
		t.Fatal(err)
	}
	derived, err := s.Derive(ctx, []StatusWrite{{Key: key, Value: []byte("status"), SpecRevision: created}})
	if err != nil {
		t.Fatal(err)
	}
	spec, status, err := s.Read(ctx, key)
	if err != nil || spec == nil || status == nil {
		t.Fatalf("read: %v, %v, %v", spec, status, err)
	}
	if string(spec.Value) != "spec" || spec.ModRevision != created || string(status.Value) != "status" || status.ModRevision != derived {
		t.Fatalf("read %+v and %+v, wrote at %d and %d", spec, status, created, derived)
	}
	if _, err := s.Commit(ctx, Write{Key: key, Expect: created}); err != nil {
		t.Fatal(err)
	}
	if spec, status, err = s.Read(ctx, key); err != nil || spec != nil || status != nil {
		t.Fatalf("after the delete: %v, %v, %v; the status must go with the spec", spec, status, err)
	}
}

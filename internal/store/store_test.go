package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// fullDisks says whether tests of full disks are included, which depend on what etcd allocates.
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

// switchedKV is the store's connection to etcd. A test can replace it while the store's own goroutines use it.
type switchedKV struct {
	sound clientv3.KV
	other atomic.Pointer[clientv3.KV] // nil = the original
}

func (k *switchedKV) now() clientv3.KV {
	if other := k.other.Load(); other != nil {
		return *other
	}
	return k.sound
}

func (k *switchedKV) Put(ctx context.Context, key, value string, o ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return k.now().Put(ctx, key, value, o...)
}

func (k *switchedKV) Get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return k.now().Get(ctx, key, o...)
}

func (k *switchedKV) GetStream(ctx context.Context, key string, o ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return k.now().GetStream(ctx, key, o...)
}

func (k *switchedKV) Delete(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return k.now().Delete(ctx, key, o...)
}

func (k *switchedKV) Compact(ctx context.Context, revision int64, o ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return k.now().Compact(ctx, revision, o...)
}

func (k *switchedKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	return k.now().Do(ctx, op)
}

func (k *switchedKV) Txn(ctx context.Context) clientv3.Txn { return k.now().Txn(ctx) }

// interpose puts a layer between a store and its etcd until sound is called. between gets the original connection.
func interpose[K clientv3.KV](t testing.TB, s *Store, between func(clientv3.KV) K) (kv K, sound func()) {
	t.Helper()
	repeating, _ := s.client.KV.(repeatingKV)
	switched, ok := repeating.KV.(*switchedKV)
	if !ok {
		t.Fatal("the store was not opened by open")
	}
	kv = between(switched.sound)
	other := clientv3.KV(kv)
	switched.other.Store(&other)
	return kv, func() { switched.other.Store(nil) }
}

// endsTheTests ends the process if a member dies: etcd does not stop any more then, so that the test would only end with
// its time.
func endsTheTests(t testing.TB) func(error) {
	return func(err error) { panic(fmt.Sprintf("%s: the embedded member died: %v", t.Name(), err)) }
}

// open opens a store for a test in its own directory, without fsync.
func open(t testing.TB, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{
		DataDir:        t.TempDir(),
		NoFsync:        true,
		MinFreeBytes:   mebibyte,
		MarkInterval:   time.Hour, // tests count revisions
		RequestTimeout: storetest.Patience,
		Patience:       storetest.Patience,
		Logger:         slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelError})),
		Fatal:          endsTheTests(t),
		interpose:      func(kv clientv3.KV) clientv3.KV { return &switchedKV{sound: kv} },
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
			if findings, _, _, err := inspectMember(memberDir(o.DataDir)); err != nil || slices.ContainsFunc(findings, func(f Finding) bool { return f.Fatal }) {
				t.Errorf("the files of an intact store are reported as damaged: %v, %v", findings, err)
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

// commit makes writes that expect any revision. They are made again when etcd, which waits for five seconds
// whatever the time limit of a request is, gives up on them: the machine is busy.
func commit(t testing.TB, s *Store, writes ...Write) (revision int64) {
	t.Helper()
	var err error
	eventually.True(t, "etcd keeps up", func() bool {
		revision, err = s.Commit(timeout(t), writes...)
		return !errors.Is(err, ErrUncertain) && !errors.Is(err, ErrUnavailable)
	})
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return revision
}

// put writes the Spec part of an object, whatever its revision.
func put(t testing.TB, s *Store, key api.Key, value string) int64 {
	t.Helper()
	return commit(t, s, Write{Key: key, Value: []byte(value), Expect: Any})
}

// remove deletes an object, whatever its revision.
func remove(t testing.TB, s *Store, key api.Key) int64 {
	t.Helper()
	return commit(t, s, Write{Key: key, Expect: Any})
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
		t.Fatalf("read %+v and %+v, want revisions %d and %d", spec, status, created, derived)
	}
	if _, err := s.Commit(ctx, Write{Key: key, Expect: created}); err != nil {
		t.Fatal(err)
	}
	if spec, status, err = s.Read(ctx, key); err != nil || spec != nil || status != nil {
		t.Fatalf("after the delete: got %v, %v, %v, want the status deleted with the spec", spec, status, err)
	}
}

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// restarting is an external etcd that can be stopped and started again on the same address.
type restarting struct {
	*embed.Etcd
	dir, address string
}

// newRestarting starts an etcd on a data directory.
func newRestarting(t *testing.T, dir string) *restarting {
	t.Helper()
	r := &restarting{address: proxytest.FreeAddress(t)}
	r.start(t, dir)
	return r
}

// start starts it on a data directory.
func (r *restarting) start(t *testing.T, dir string) {
	t.Helper()
	cfg, err := memberConfig(Options{DataDir: dir, Logger: slog.New(slog.DiscardHandler)}, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	at := url.URL{Scheme: "http", Host: r.address}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	if r.Etcd, err = embed.StartEtcd(cfg); err != nil {
		t.Fatal(err)
	}
	<-r.Server.ReadyNotify()
	r.dir = dir
}

// copyOf copies a data directory that is not in use.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(filepath.Join(to, "copy"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "copy")
}

// A server notices that its store has been replaced, or is an older copy, before it acknowledges a write to it.
func TestReplacedStoreIsNoticed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		// swap starts another store on the address of the stopped etcd.
		swap func(t *testing.T, r *restarting, old string)
		// probed says that the revision does not reveal it, so that only the next probe does.
		probed bool
	}{
		{"earlier copy", func(t *testing.T, r *restarting, old string) {
			r.start(t, old)
		}, false},
		{"earlier copy with later writes", func(t *testing.T, r *restarting, old string) {
			elsewhere := newRestarting(t, old)
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{elsewhere.address}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 2000 {
				if _, err := client.Put(t.Context(), fmt.Sprintf("%sthing/-/n%d", specPrefix, i), "{}"); err != nil {
					t.Fatal(err)
				}
			}
			_ = client.Close()
			elsewhere.Close()
			r.start(t, old)
		}, true},
		{"empty store", func(t *testing.T, r *restarting, _ string) {
			r.start(t, t.TempDir())
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRestarting(t, t.TempDir())
			fatal := make(chan error, 1)
			s := open(t, func(o *Options) {
				o.DataDir, o.Endpoints, o.Fatal = "", []string{r.address}, func(err error) { fatal <- err }
				o.MarkInterval = time.Millisecond
			})
			fill(t, s, 10)
			r.Close()
			old := copyOf(t, r.dir)
			r.start(t, r.dir)
			for i := range 500 {
				retried(t, s, i)
			}
			eventually.True(t, "a mark after the copy", func() bool {
				resp, err := s.client.Get(t.Context(), markKey)
				return err == nil && len(resp.Kvs) == 1 && resp.Kvs[0].ModRevision > 500
			})
			r.Close()
			c.swap(t, r, old)
			t.Cleanup(r.Close)
			for refused := false; !refused; {
				_, err := s.Commit(timeout(t), Write{Key: placement(0), Value: []byte("{}"), Expect: Any})
				switch {
				case err == nil && !c.probed:
					t.Fatal("a write on a replaced store was acknowledged")
				case errors.Is(err, errReplaced):
					refused = true
				case t.Context().Err() != nil:
					t.Fatal(err)
				}
			}
			if err := <-fatal; !errors.Is(err, errReplaced) || !strings.Contains(err.Error(), "older copy") {
				t.Error(err)
			}
			if err := s.Writable(); !errors.Is(err, errReplaced) {
				t.Error("Writable() on a replaced store:", err)
			}
			if _, _, err := s.Read(t.Context(), placement(1)); err == nil {
				t.Error("a read of a replaced store succeeded")
			}
		})
	}
}

// A probe does not increase the revision: watchers are not woken, and an idle store does not grow.
func TestProbesTakeNoRevision(t *testing.T) {
	s := open(t)
	fill(t, s, 1)
	before, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		s.probe()
	}
	if now, err := s.Revision(t.Context()); err != nil || now != before {
		t.Errorf("revision %d, previously %d, %v", now, before, err)
	}
	if err := s.Writable(); err != nil {
		t.Error(err)
	}
}

// retried repeats a write until it succeeds, because etcd has just been restarted.
func retried(t *testing.T, s *Store, n int) {
	t.Helper()
	eventually.True(t, "a write", func() bool {
		_, err := s.Commit(t.Context(), Write{Key: placement(n), Value: []byte(`{}`), Expect: Any})
		return err == nil
	})
}

// A server notices if its data directory is replaced or moved while it runs: later writes would go to files that are no
// longer reachable.
func TestReplacedDataDirectoryIsNoticed(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(dir, old string) error{
		"put back":   swap,
		"moved away": func(dir, _ string) error { return os.Rename(dir, dir+".away") },
		"log put back": func(dir, old string) error {
			return swap(filepath.Join(dir, "etcd/member/wal"), filepath.Join(old, "etcd/member/wal"))
		},
		"etcd put back": func(dir, old string) error { return swap(filepath.Join(dir, "etcd"), filepath.Join(old, "etcd")) },
	} {
		t.Run(name, func(t *testing.T) {
			old := copyOf(t, written(t))
			dir := filepath.Join(t.TempDir(), "data")
			fatal := make(chan error, 1)
			s := open(t, func(o *Options) { o.DataDir, o.Fatal = dir, func(err error) { fatal <- err } })
			fill(t, s, 10)
			if err := replace(dir, old); err != nil {
				t.Fatal(err)
			}
			if err := <-fatal; !errors.Is(err, errReplaced) || !strings.Contains(err.Error(), dir) {
				t.Error(err)
			}
			if _, err := s.Commit(t.Context(), Write{Key: placement(0), Value: []byte("{}"), Expect: Any}); !errors.Is(err, errReplaced) {
				t.Error("write on a replaced store:", err)
			}
		})
	}
}

// swap puts the directory old in the place of dir. The directory of a running server is moved, not removed: its log
// makes files ahead of their use, and a removal that meets a new one fails.
func swap(dir, old string) error {
	return errors.Join(os.Rename(dir, dir+".away"), os.Rename(old, dir))
}

// Writable tells how writes do, whether anybody writes or not.
func TestWritableTellsWhetherWritesWork(t *testing.T) {
	t.Parallel()
	r := newRestarting(t, t.TempDir())
	t.Cleanup(func() { r.Close() })
	s := open(t, func(o *Options) { o.DataDir, o.Endpoints, o.Patience = "", []string{r.address}, 3*time.Second })
	eventually.True(t, "writes succeed", func() bool { return s.Writable() == nil })
	r.Close()
	eventually.True(t, "writes fail", func() bool { return s.Writable() != nil })
	if err := s.Writable(); !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUncertain) && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	r.start(t, r.dir)
	eventually.True(t, "working writes", func() bool { return s.Writable() == nil })
}

// A write that etcd lost with its leader fails long after others have succeeded: it
// says nothing about the store as it is now.
func TestLateFailureIsIgnored(t *testing.T) {
	g := &guard{clock: clock{time.Now().Add(-time.Minute)}, patience: 3 * time.Second}
	now := g.clock.now()
	lost, next := now-int64(20*time.Second), now-int64(10*time.Second)
	g.attempted(t.Context(), next, nil)
	g.attempted(t.Context(), lost, context.DeadlineExceeded)
	if err := g.stalled(); err != nil {
		t.Errorf("a failure of a write that began before one that succeeded: %v", err)
	}
	g.attempted(t.Context(), next+1, context.DeadlineExceeded)
	if g.stalled() == nil {
		t.Error("a failure of a write that began after it is none")
	}
	g.attempted(t.Context(), lost, nil) // an answer that comes late is one all the same
	if err := g.stalled(); err != nil {
		t.Errorf("after an answer: %v", err)
	}
}

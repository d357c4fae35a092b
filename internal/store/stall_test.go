package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// behindProxy opens a store that reaches its external etcd through a proxy.
func behindProxy(t *testing.T) (*Store, *proxytest.Proxy) {
	t.Helper()
	r := newRestarting(t, t.TempDir())
	t.Cleanup(r.Close)
	p := proxytest.Start(t, r.address)
	s := open(t, func(o *Options) {
		o.DataDir, o.Endpoints = "", []string{p.Address()}
		o.RequestTimeout, o.Patience = 10*time.Second, 3*time.Second
	})
	return s, p
}

// However the way to etcd is cut, Writable says so, writes are refused at once
// with the cause instead of waiting, and all is well again afterwards.
func TestWritesAreRefusedWhileTheStoreDoesNotAnswer(t *testing.T) {
	cuts := []struct {
		name     string
		cut, end func(p *proxytest.Proxy)
		cause    string
	}{
		{"stalled", func(p *proxytest.Proxy) { p.Stall(proxytest.ToServer, proxytest.ToClient) },
			func(p *proxytest.Proxy) { p.Pass(proxytest.ToServer, proxytest.ToClient) }, ""},
		{"no responses", func(p *proxytest.Proxy) { p.Stall(proxytest.ToClient) },
			func(p *proxytest.Proxy) { p.Pass(proxytest.ToClient) }, ""},
		{"no requests", func(p *proxytest.Proxy) { p.Stall(proxytest.ToServer) },
			func(p *proxytest.Proxy) { p.Pass(proxytest.ToServer) }, ""},
		{"down", func(p *proxytest.Proxy) { p.Down(t) }, func(p *proxytest.Proxy) { p.Up(t) }, "connection refused"},
	}
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			s, p := behindProxy(t)
			fill(t, s, 1)
			held := p.Held()
			began := time.Now()
			c.cut(p)
			eventually.True(t, "writes fail", func() bool { return s.Writable() != nil })
			t.Logf("noticed after %s: %v", time.Since(began), s.Writable())
			if p.Held() == held && c.cause == "" {
				t.Fatal("the proxy held nothing")
			}
			var stalled *StalledError
			if err := s.Writable(); !errors.As(err, &stalled) || stalled.For < s.options.Patience {
				t.Errorf("Writable() = %v", err)
			}
			eventually.True(t, "the cause is reported", func() bool { return strings.Contains(fmt.Sprint(s.Writable()), c.cause) })
			for range 100 { // if each waited, this would take 1000 s
				_, err := s.Commit(t.Context(), Write{Key: placement(0), Value: []byte("{}"), Expect: Any})
				if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUncertain) {
					t.Fatalf("write: error %v, want ErrUnavailable", err)
				}
				if _, _, err := s.Read(t.Context(), placement(0)); !errors.Is(err, ErrUnavailable) {
					t.Fatalf("linearizable read: error %v, want ErrUnavailable", err)
				}
			}
			c.end(p)
			eventually.True(t, "writes succeed", func() bool { return s.Writable() == nil })
			retried(t, s, 2)
		})
	}
}

// A writer that gives up says nothing about the store. Its cancellation must neither hide that writes fail, nor suggest
// that they do.
func TestCanceledWritersDoNotAffectHealth(t *testing.T) {
	s, p := behindProxy(t)
	fill(t, s, 1)
	impatient := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := s.Commit(ctx, Write{Key: placement(0), Value: []byte("{}"), Expect: Any}); err == nil {
			t.Error("a write on a stalled connection was acknowledged")
		}
	}
	p.Stall(proxytest.ToServer)
	eventually.True(t, "writes fail", func() bool { impatient(); return s.Writable() != nil })
	for range 10 {
		impatient()
		if err := s.Writable(); err == nil {
			t.Fatal("Writable() = nil after a writer gave up")
		}
	}
	p.Pass(proxytest.ToServer)
	eventually.True(t, "writes succeed", func() bool { return s.Writable() == nil })
}

// Age is bounded while the store answers, whether anybody writes or not, and
// grows while it does not.
func TestAgeOfThePicture(t *testing.T) {
	s, p := behindProxy(t)
	fill(t, s, 3)
	revision, err := s.Load(t.Context(), 0, func(Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	picture := revision
	watch := s.Watch(t.Context(), revision+1)
	look := func() time.Duration {
		for {
			select {
			case batch := <-watch:
				picture = batch.Revision
			default:
				return s.Age(picture)
			}
		}
	}
	eventually.True(t, "a probe after the first load", func() bool { return look() < probeInterval })
	// A revision that changes nothing of what is watched.
	if _, err := s.client.Put(t.Context(), systemPrefix+"test", "x"); err != nil {
		t.Fatal(err)
	}
	at, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a snapshot that has caught up", func() bool { return look() < probeInterval && picture >= at })
	p.Stall(proxytest.ToClient)
	eventually.True(t, "the age increases", func() bool { return look() > 3*probeInterval })
	before := look()
	eventually.True(t, "the age increases further", func() bool { return look() > before })
	p.Pass(proxytest.ToClient)
	eventually.True(t, "a recent snapshot", func() bool { return look() < probeInterval })
}

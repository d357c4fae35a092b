package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// raw returns what etcd stores under a key.
func raw(t *testing.T, s *Store, key string) []byte {
	t.Helper()
	resp, err := s.client.Get(t.Context(), key)
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatalf("%s: %v, %v", key, resp, err)
	}
	return bytes.Clone(resp.Kvs[0].Value)
}

// damage overwrites what etcd stores under a key, bypassing the store.
func damage(t *testing.T, s *Store, key string, value []byte) {
	t.Helper()
	if _, err := s.client.Put(t.Context(), key, string(value)); err != nil {
		t.Fatal(err)
	}
}

// Flipping any bit of a value is detected by every way to read it, and affects no other value.
func TestFlippedBitIsFoundByEveryReader(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := timeout(t)
	for n := range 3 {
		// One part is too small to be compressed, the other is not.
		revision := put(t, s, placement(n), `{"a":1}`)
		if _, err := s.Derive(ctx, []StatusWrite{{Key: placement(n), Value: fmt.Appendf(nil, `{"observed_generation":1,"clusters":["c%d"]}`, n), SpecRevision: revision}}); err != nil {
			t.Fatal(err)
		}
	}
	if spec, status := raw(t, s, etcdKey(placement(1), Spec)), raw(t, s, etcdKey(placement(1), Status)); spec[0] != envelopeMark || status[0] != compressedMark {
		t.Fatalf("stored values %q and %q, want an envelope and a compressed one", spec, status)
	}
	for _, part := range []Part{Spec, Status} {
		key := etcdKey(placement(1), part)
		intact := raw(t, s, key)
		for bit := range 8 * len(intact) {
			bad := bytes.Clone(intact)
			bad[bit/8] ^= 1 << (bit % 8)
			written, err := s.client.Put(ctx, key, string(bad))
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]Record{}
			spec, status, err := s.Read(ctx, placement(1))
			if err != nil {
				t.Fatal(err)
			}
			seen["read"] = *map[Part]*Record{Spec: spec, Status: status}[part]
			if _, err := s.Load(ctx, 0, func(r Record) error {
				if r.Key == placement(1) && r.Part == part {
					seen["load"] = r
				} else if r.Damage != nil {
					t.Errorf("%s of %s is reported as damaged: %v", r.Part, r.Key, r.Damage)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			specs, statuses, _, _, err := s.Page(ctx, api.KindPlacement, "shop", "", 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			seen["page"] = statuses[placement(1)]
			if part == Spec {
				seen["page"] = specs[1]
			}
			watchCtx, cancel := context.WithCancel(ctx)
			batch := <-s.Watch(watchCtx, written.Header.Revision)
			cancel()
			seen["watch"] = batch.Records[0]
			for how, r := range seen {
				if !errors.Is(r.Damage, ErrDamaged) || r.Value == nil || len(r.Value) > 0 || !strings.Contains(r.Damage.Error(), placement(1).String()) {
					t.Fatalf("bit %d of the %s: %s shows %q, damage %v", bit, part, how, r.Value, r.Damage)
				}
			}
		}
		damage(t, s, key, intact)
	}
	// A valid value under another key is invalid.
	damage(t, s, etcdKey(placement(1), Spec), raw(t, s, etcdKey(placement(2), Spec)))
	if spec, _, err := s.Read(ctx, placement(1)); err != nil || spec.Damage == nil {
		t.Errorf("the value of another object was accepted: %v, %v", spec, err)
	}
	put(t, s, placement(2), "its own")
	// Writing it again repairs it.
	put(t, s, placement(1), "new")
	if spec, _, err := s.Read(ctx, placement(1)); err != nil || spec.Damage != nil || string(spec.Value) != "new" {
		t.Errorf("after a write: got %+v, %v", spec, err)
	}
}

// Every key in the store has an envelope, except for the format version.
func TestEveryKeyHasAnEnvelope(t *testing.T) {
	t.Parallel()
	s := open(t, func(o *Options) { o.MarkInterval = time.Nanosecond })
	ctx := timeout(t)
	revision := put(t, s, placement(0), `{}`)
	put(t, s, api.Key{Kind: "token", Name: "0123"}, `{}`)
	if _, err := s.Derive(ctx, []StatusWrite{{Key: placement(0), Value: []byte(`{}`), SpecRevision: revision}}); err != nil {
		t.Fatal(err)
	}
	s.probe() // writes the mark
	resp, err := s.client.Get(ctx, "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, kv := range resp.Kvs {
		keys[string(kv.Key)] = true
		if _, err := openEnvelope(kv); err != nil && string(kv.Key) != formatKey {
			t.Errorf("%s: %q: %v", kv.Key, kv.Value, err)
		}
	}
	if len(keys) != 7 || !keys[markKey] || !keys[epochKey] || !keys[identityKey] {
		t.Errorf("unexpected keys %v", keys)
	}
	// A write that bypasses the envelope would not be detected above.
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		allowed := map[string]int{"envelope.go": 1, "format.go": 1, "leader.go": 1 /* lives with its server */}[path]
		if n := strings.Count(string(text), "OpPut("); n != allowed && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s puts %d values without putValue, want %d", path, n, allowed)
		}
	}
}

// A damaged identity does not keep the store from starting, nor end a server.
func TestDamagedIdentityIsDrawnAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, func(o *Options) { o.DataDir = dir })
	bad := raw(t, s, identityKey)
	bad[9] ^= 4
	damage(t, s, identityKey, bad)
	s.probe()
	if err := s.Writable(); err != nil {
		t.Error(err)
	}
	before := s.guard.identity
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, func(o *Options) { o.DataDir = dir })
	if again.guard.identity == "" || again.guard.identity == before {
		t.Errorf("identity %q, previously %q", again.guard.identity, before)
	}
	again.probe()
	if err := again.Writable(); err != nil {
		t.Error(err)
	}
}

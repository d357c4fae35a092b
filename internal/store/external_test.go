package store

import (
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// cluster starts an etcd that listens like an external cluster, and returns its address.
func cluster(t *testing.T) string {
	t.Helper()
	cfg, err := memberConfig(Options{DataDir: t.TempDir(), NoFsync: true, Logger: slog.New(slog.DiscardHandler)}, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	anywhere := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{anywhere}, []url.URL{anywhere}
	member, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(member.Close)
	<-member.Server.ReadyNotify()
	return member.Clients[0].Addr().String()
}

func TestExternalClusterHasTheSameSemantics(t *testing.T) {
	t.Parallel()
	address := cluster(t)
	external := func(o *Options) { o.DataDir, o.Endpoints = "", []string{address} }
	first := open(t, external)
	ctx := timeout(t)
	lead(t, first)
	revisions := fill(t, first, 150)
	watch := first.Watch(ctx, revisions[0])
	if _, err := first.Derive(ctx, statuses(revisions, "first")); err != nil {
		t.Fatal(err)
	}
	records := 0
	for records < 300 {
		batch := next(t, watch)
		if batch.Err != nil {
			t.Fatal(batch.Err)
		}
		records += len(batch.Records)
	}
	if info := first.Info(); info.Mode != "external" || info.ClusterID == "" {
		t.Fatalf("info %+v", info)
	}
	var conflict *ConflictError
	if _, err := first.Commit(ctx, Write{Key: placement(0), Value: []byte("v"), Expect: 0}); !errors.As(err, &conflict) {
		t.Fatalf("error %v, want a conflict", err)
	}
	// A second server may write specs, but decides nothing.
	second := open(t, external)
	if _, err := second.Derive(ctx, statuses(revisions[:1], "early")); !errors.Is(err, ErrFenced) {
		t.Fatalf("the second server decides, too: %v", err)
	}
	put(t, second, placement(200), "users may write through any server")
	if _, err := first.Commit(ctx, Write{Key: placement(0), Value: []byte("v"), Expect: revisions[0]}); err != nil {
		t.Fatalf("write through another server: %v", err)
	}
}

// lead waits until a store is the leader.
func lead(t *testing.T, s *Store) *Term {
	t.Helper()
	term, err := s.Campaign(timeout(t))
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func TestUnreachableClusterIsReported(t *testing.T) {
	_, err := Open(t.Context(), Options{Endpoints: []string{"127.0.0.1:1"}, RequestTimeout: 300 * time.Millisecond})
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
}

func TestOldReleasesAreRefused(t *testing.T) {
	for version, fit := range map[string]bool{
		"3.3.27": false, "3.4.41": false, "3.4.42": true, "3.5.27": false, "3.5.28": true,
		"3.6.8": false, "3.6.9": true, "3.7.0": true, "4.0.0": true, "what": false,
	} {
		if err := checkVersion(version); (err == nil) != fit {
			t.Errorf("checkVersion(%s) = %v", version, err)
		}
	}
}

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// peers are the settings of servers whose members are one cluster.
func peers(t *testing.T, n int) []Options {
	t.Helper()
	addresses := storetest.Addresses(t, n)
	certificate := storetest.NewCertificate(t, addresses...)
	list := make([]Peer, n)
	for i, address := range addresses {
		list[i] = Peer{string(rune('a' + i)), "https://" + address}
	}
	all := make([]Options, n)
	for i := range all {
		all[i] = Options{DataDir: t.TempDir(), NoFsync: true, LeaseTTL: 2 * time.Second, Cluster: &Cluster{
			Name: list[i].Name, Peers: slices.Clone(list), CertFile: certificate.CertFile, KeyFile: certificate.KeyFile, CAFile: certificate.CAFile,
		}}
		all[i].Candidate = func() Candidate { return Candidate{Name: list[i].Name} }
	}
	return all
}

// openPeer opens the store of a server with its settings.
func openPeer(t *testing.T, o Options) *Store {
	t.Helper()
	return open(t, func(defaults *Options) {
		o.MinFreeBytes, o.MarkInterval, o.Logger = defaults.MinFreeBytes, defaults.MarkInterval, defaults.Logger
		if o.Fatal == nil {
			o.Fatal = defaults.Fatal
		}
		*defaults = o
	})
}

// openPeers opens the stores of several at once: none is ready before the others are
// there.
func openPeers(t *testing.T, all []Options) []*Store {
	t.Helper()
	stores := make([]*Store, len(all))
	var opening sync.WaitGroup
	for i, o := range all {
		opening.Go(func() { stores[i] = openPeer(t, o) })
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return stores
}

// closeStore closes a store that the test goes on without.
func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMembersFoundACluster in which everything is as on an external one.
func TestMembersFoundACluster(t *testing.T) {
	options := peers(t, 3)
	stores := openPeers(t, options)
	ctx := timeout(t)
	revisions := fill(t, stores[0], 10)
	term := lead(t, stores[1])
	next := campaign(t, stores[2], 1)
	if _, err := stores[1].Derive(ctx, statuses(revisions, "first")); err != nil {
		t.Fatal(err)
	}
	if _, err := stores[0].Derive(ctx, statuses(revisions, "never")); !errors.Is(err, ErrFenced) {
		t.Fatalf("one that does not lead decides: %v", err)
	}
	if _, status, err := stores[2].Read(ctx, placement(0)); err != nil || string(status.Value) != "first" {
		t.Fatalf("status %v, %v", status, err)
	}
	term.Resign()
	if <-next == nil {
		t.Fatal("the next one does not lead")
	}
	if ids := []string{stores[0].Info().ClusterID, stores[1].Info().ClusterID, stores[2].Info().ClusterID}; len(slices.Compact(ids)) != 1 {
		t.Fatalf("clusters %v", ids)
	}
	// One after the other goes and comes back; two are enough all the time.
	for i, s := range stores {
		closeStore(t, s)
		written := keepWriting(t, stores[(i+1)%3], fmt.Sprintf("without %d", i))
		stores[i] = openPeer(t, options[i])
		if spec, _, err := stores[i].Read(ctx, placement(0)); err != nil || spec.ModRevision != written {
			t.Fatalf("read %v, %v; want revision %d", spec, err, written)
		}
	}
}

// keepWriting writes an object until it is written, and returns its revision: while the
// cluster elects a leader, writes are refused.
func keepWriting(t *testing.T, s *Store, value string) (revision int64) {
	t.Helper()
	eventually.True(t, "it is written", func() bool {
		var err error
		revision, err = s.Commit(timeout(t), Write{Key: placement(0), Value: []byte(value), Expect: Any})
		if err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUncertain) {
			t.Fatal(err)
		}
		return err == nil
	})
	return revision
}

// refused opens the store of a server that must not join, and returns why.
func refused(t *testing.T, o Options, why error, words ...string) {
	t.Helper()
	o.MinFreeBytes = mebibyte
	s, err := Open(timeout(t), o)
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, why) {
		t.Fatalf("the error is %v, want %v", err, why)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error is %q, want %q in it", err, word)
		}
	}
}

// TestWithoutAQuorumWritesAreRefused within seconds, with the reason, and go on when the
// others are back.
func TestWithoutAQuorumWritesAreRefused(t *testing.T) {
	options := peers(t, 3)
	stores := openPeers(t, options)
	keepWriting(t, stores[0], "before")
	closeStore(t, stores[1])
	closeStore(t, stores[2])
	var err error
	eventually.True(t, "a write is refused", func() bool {
		_, err = stores[0].Commit(timeout(t), Write{Key: placement(1), Value: []byte("x"), Expect: 0})
		return errors.Is(err, ErrUnavailable) && strings.Contains(err.Error(), "more than half of all members are needed")
	})
	eventually.True(t, "it is known that writes fail", func() bool {
		err := stores[0].Writable()
		return err != nil && strings.Contains(err.Error(), "more than half of all members are needed")
	})
	if _, err := stores[0].Revision(timeout(t)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a linearizable read: %v", err)
	}
	stores[1] = openPeer(t, options[1])
	keepWriting(t, stores[0], "after")
	eventually.True(t, "writes work", func() bool { return stores[0].Writable() == nil })
	stores[2] = openPeer(t, options[2])
}

// TestForeignDataIsRefused: a data directory is a member of one cluster.
func TestForeignDataIsRefused(t *testing.T) {
	ours, theirs := peers(t, 3), peers(t, 3)
	stores, others := openPeers(t, ours), openPeers(t, theirs)
	for _, s := range append(others, stores[2]) {
		closeStore(t, s)
	}
	// A directory of another cluster.
	foreign := ours[2]
	foreign.DataDir = theirs[2].DataDir
	refused(t, foreign, ErrForeign, foreign.DataDir, "belongs to the cluster")
	// One of a server that was alone.
	alone := openAlone(t, t.TempDir())
	fill(t, alone, 1)
	closeStore(t, alone)
	foreign.DataDir = alone.options.DataDir
	refused(t, foreign, ErrForeign, foreign.DataDir, "belongs to the cluster")
	// An empty one, where there was one with data.
	foreign.DataDir = t.TempDir()
	refused(t, foreign, ErrForeign, "has been a member of the cluster already", "members remove c")
	// One that nobody has added.
	stranger := peers(t, 1)[0]
	stranger.Cluster.Name, stranger.Cluster.Peers[0].Name = "d", "d"
	stranger.Cluster.Peers = append(stranger.Cluster.Peers, ours[0].Cluster.Peers...)
	stranger.Cluster.CertFile, stranger.Cluster.KeyFile, stranger.Cluster.CAFile = ours[0].Cluster.CertFile, ours[0].Cluster.KeyFile, ours[0].Cluster.CAFile
	refused(t, stranger, ErrForeign, "members add d=")
	// A member that goes on alone.
	single := ours[2]
	single.Cluster = nil
	refused(t, single, ErrForeign, "one of 3 members of a cluster", "--cluster-peers")
	// The member itself is welcome.
	openPeer(t, ours[2])
	keepWriting(t, stores[0], "after")
}

func openAlone(t *testing.T, dir string) *Store {
	t.Helper()
	return open(t, func(o *Options) { o.DataDir = dir })
}

// TestOthersNeedACertificate: what has no certificate of the same authority is no member
// and learns nothing.
func TestOthersNeedACertificate(t *testing.T) {
	options := peers(t, 2)
	stranger := storetest.NewCertificate(t, strings.TrimPrefix(options[1].Cluster.Peers[1].URL, "https://"))
	c := options[1].Cluster
	ca := c.CAFile
	c.CertFile, c.KeyFile, c.CAFile = stranger.CertFile, stranger.KeyFile, ca
	ctx, cancel := context.WithCancel(timeout(t))
	defer cancel()
	opened := make(chan error, 2)
	var said sync.Map
	for _, o := range options {
		go func() {
			o.MinFreeBytes, o.Doing = mebibyte, func(what string) { said.Store(what, true) }
			s, err := Open(ctx, o)
			if err == nil {
				_ = s.Close()
			}
			opened <- err
		}()
	}
	eventually.True(t, "it is said why they wait", func() bool {
		found := false
		said.Range(func(what, _ any) bool {
			found = found || strings.Contains(what.(string), "certificate")
			return true
		})
		return found
	})
	cancel()
	for range options {
		if err := <-opened; !errors.Is(err, context.Canceled) {
			t.Errorf("a member with a foreign certificate: %v", err)
		}
	}
}

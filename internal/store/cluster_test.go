package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// peers returns the settings of servers whose members form one cluster.
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
		all[i] = Options{DataDir: t.TempDir(), NoFsync: true, LeaseTTL: lease, Cluster: &Cluster{
			Name: list[i].Name, Peers: slices.Clone(list), CertFile: certificate.CertFile, KeyFile: certificate.KeyFile, CAFile: certificate.CAFile,
		}}
		all[i].Candidate = func() Candidate { return Candidate{Name: list[i].Name} }
	}
	return all
}

// openPeer opens the store of one server.
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

// openPeers opens the stores of several servers at once.
func openPeers(t *testing.T, all []Options) []*Store {
	t.Helper()
	return storetest.AtOnce(t, all, func(o Options) *Store { return openPeer(t, o) })
}

// closeStore closes a store before the end of the test.
func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMembersFoundACluster checks that a cluster of embedded stores behaves like an external one.
func TestMembersFoundACluster(t *testing.T) {
	options := peers(t, 3)
	stores := openPeers(t, options)
	ctx := timeout(t)
	revisions := fill(t, stores[0], 10)
	term := lead(t, stores[1])
	next := campaign(t, stores[2], 1)
	eventually.True(t, "the one that leads decides", func() bool {
		_, err := stores[1].Derive(ctx, statuses(revisions, "first"))
		if err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUncertain) {
			t.Fatal(err)
		}
		return err == nil
	})
	if _, err := stores[0].Derive(ctx, statuses(revisions, "never")); !errors.Is(err, ErrFenced) {
		t.Fatalf("a member that is not the leader decides: %v", err)
	}
	if _, status := keepReading(t, stores[2], placement(0)); string(status.Value) != "first" {
		t.Fatalf("status %v", status)
	}
	term.Resign()
	if <-next == nil {
		t.Fatal("the next member did not become the leader")
	}
	if ids := []string{stores[0].Info().ClusterID, stores[1].Info().ClusterID, stores[2].Info().ClusterID}; len(slices.Compact(ids)) != 1 {
		t.Fatalf("clusters %v", ids)
	}
	// Stop and restart one after the other; two suffice at all times.
	for i, s := range stores {
		closeStore(t, s)
		written := keepWriting(t, stores[(i+1)%3], fmt.Sprintf("without %d", i))
		stores[i] = openPeer(t, options[i])
		if spec, _ := keepReading(t, stores[i], placement(0)); spec.ModRevision != written {
			t.Fatalf("read %v; want revision %d", spec, written)
		}
	}
}

// keepWriting repeats a write until it succeeds, and returns its revision: while the cluster elects a leader, writes
// fail.
func keepWriting(t *testing.T, s *Store, value string) (revision int64) {
	t.Helper()
	eventually.True(t, "the write is made", func() bool {
		var err error
		revision, err = s.Commit(timeout(t), Write{Key: placement(0), Value: []byte(value), Expect: Any})
		if err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUncertain) {
			t.Fatal(err)
		}
		return err == nil
	})
	return revision
}

// keepReading reads an object until it is read: while the cluster elects a leader, reads are refused.
func keepReading(t *testing.T, s *Store, key api.Key) (spec, status *Record) {
	t.Helper()
	eventually.True(t, "it is read", func() bool {
		var err error
		spec, status, err = s.Read(timeout(t), key)
		if err != nil && !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	return spec, status
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

// TestWithoutAQuorumWritesAreRefused checks that writes fail within seconds, with the reason, and succeed again when
// the other members are back.
func TestWithoutAQuorumWritesAreRefused(t *testing.T) {
	options := peers(t, 3)
	stores := openPeers(t, options)
	keepWriting(t, stores[0], "before")
	closeStore(t, stores[1])
	closeStore(t, stores[2])
	var err error
	eventually.True(t, "writes are rejected", func() bool {
		_, err = stores[0].Commit(timeout(t), Write{Key: placement(1), Value: []byte("x"), Expect: 0})
		return errors.Is(err, ErrUnavailable) && strings.Contains(err.Error(), "more than half of all members are needed")
	})
	eventually.True(t, "Writable reports that writes fail", func() bool {
		err := stores[0].Writable()
		return err != nil && strings.Contains(err.Error(), "more than half of all members are needed")
	})
	if _, err := stores[0].Revision(timeout(t)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("linearizable read without a majority: error %v, want ErrUnavailable", err)
	}
	stores[1] = openPeer(t, options[1])
	keepWriting(t, stores[0], "after")
	eventually.True(t, "writes succeed", func() bool { return stores[0].Writable() == nil })
	stores[2] = openPeer(t, options[2])
}

// TestForeignDataIsRefused checks that a data directory can only be used in its own cluster.
func TestForeignDataIsRefused(t *testing.T) {
	ours, theirs := peers(t, 3), peers(t, 3)
	stores, others := openPeers(t, ours), openPeers(t, theirs)
	for _, s := range append(others, stores[2]) {
		closeStore(t, s)
	}
	// The data directory of another cluster.
	foreign := ours[2]
	foreign.DataDir = theirs[2].DataDir
	refused(t, foreign, errForeign, foreign.DataDir, "belongs to the cluster")
	// The data directory of a single server.
	alone := openAlone(t, t.TempDir())
	fill(t, alone, 1)
	closeStore(t, alone)
	foreign.DataDir = alone.options.DataDir
	refused(t, foreign, errForeign, foreign.DataDir, "belongs to the cluster")
	// An empty directory in place of one with data.
	foreign.DataDir = t.TempDir()
	refused(t, foreign, errForeign, "has been a member of the cluster already", "members remove c")
	// The directory of a server that was never added.
	stranger := peers(t, 1)[0]
	stranger.Cluster.Name, stranger.Cluster.Peers[0].Name = "d", "d"
	stranger.Cluster.Peers = append(stranger.Cluster.Peers, ours[0].Cluster.Peers...)
	stranger.Cluster.CertFile, stranger.Cluster.KeyFile, stranger.Cluster.CAFile = ours[0].Cluster.CertFile, ours[0].Cluster.KeyFile, ours[0].Cluster.CAFile
	refused(t, stranger, errForeign, "members add d=")
	// A member that starts on its own.
	single := ours[2]
	single.Cluster = nil
	refused(t, single, errForeign, "one of 3 members of a cluster", "--cluster-peers")
	// The member itself can still join.
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
	eventually.True(t, "the reason for waiting is logged", func() bool {
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
			t.Errorf("member with a foreign certificate: error %v, want Canceled", err)
		}
	}
}

// TestAServerAloneBecomesThree: with the data directory it had, while somebody writes,
// and nothing is lost.
func TestAServerAloneBecomesThree(t *testing.T) {
	certificates := peers(t, 3)
	dir := t.TempDir()
	alone := openAlone(t, dir)
	first := fill(t, alone, 20)
	cluster := alone.Info().ClusterID
	closeStore(t, alone)

	one := certificates[0]
	own := *one.Cluster
	all := own.Peers
	own.Peers = all[:1]
	one.DataDir, one.Cluster = dir, &own
	a := openPeer(t, one)
	if got := a.Info(); got.ClusterID != cluster || len(got.Members) != 1 || got.Members[0].URL != all[0].URL || !got.Members[0].Voter {
		t.Fatalf("unexpected info %+v", got)
	}
	stop, written := make(chan struct{}), make(chan map[string]int64, 1)
	go func() {
		acknowledged := map[string]int64{}
		defer func() { written <- acknowledged }()
		for n := 1000; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if revision, err := a.Commit(context.Background(), Write{Key: placement(n), Value: []byte("x"), Expect: 0}); err == nil {
				acknowledged[placement(n).Name] = revision
			}
		}
	}()
	stores := []*Store{a}
	for i, name := range []string{"b", "c"} {
		added, err := a.AddMember(timeout(t), name, all[i+1].URL)
		if err != nil {
			t.Fatal(err)
		}
		if added.Voter || added.Joined || added.Name != name {
			t.Errorf("unexpected member %+v after AddMember", added)
		}
		o := certificates[i+1]
		c := *o.Cluster
		c.Join, c.Peers = true, append(slices.Clone(all[:1]), all[i+1])
		o.Cluster = &c
		stores = append(stores, openPeer(t, o))
	}
	close(stop)
	acknowledged := <-written
	for _, m := range stores[2].Members() {
		if !m.Voter || !m.Joined {
			t.Errorf("member %+v is not a voter", m)
		}
	}
	closeStore(t, a) // the remaining members must have all data
	for name, revision := range acknowledged {
		key := placement(0)
		key.Name = name
		if spec, _ := keepReading(t, stores[1], key); spec == nil || spec.ModRevision != revision {
			t.Fatalf("%s was written at %d and is %v", name, revision, spec)
		}
	}
	if spec, _ := keepReading(t, stores[2], placement(3)); spec.ModRevision != first[3] {
		t.Fatalf("what was there before is %v", spec)
	}
	if len(acknowledged) == 0 {
		t.Error("no writes were acknowledged meanwhile")
	}
	stores[0] = openPeer(t, one)
}

// TestMembersAreReplaced removes a dead member, adds one with an empty disk in its place, and checks that the removed
// member cannot rejoin.
func TestMembersAreReplaced(t *testing.T) {
	options := peers(t, 3)
	stores := openPeers(t, options)
	keepWriting(t, stores[0], "before")
	for _, c := range []struct {
		name, url string
		why       error
		word      string
	}{
		{"a", "https://127.0.0.1:1", ErrMembership, "already"}, {"d", options[1].Cluster.own().URL, ErrMembership, "already"},
		{"d", "http://127.0.0.1:1", ErrMembership, "https addresses"}, {"d", "nothing", ErrMembership, "not of the form"},
	} {
		if _, err := stores[0].AddMember(timeout(t), c.name, c.url); !errors.Is(err, c.why) || !strings.Contains(err.Error(), c.word) {
			t.Errorf("AddMember(%s, %s): error %v", c.name, c.url, err)
		}
	}
	if err := stores[0].RemoveMember(timeout(t), "d"); !errors.Is(err, ErrNoMember) {
		t.Errorf("RemoveMember() of an unknown member: error %v, want ErrNoMember", err)
	}
	// c and its disk are lost.
	closeStore(t, stores[2])
	if err := stores[0].RemoveMember(timeout(t), "c"); err != nil {
		t.Fatal(err)
	}
	refused(t, options[2], errRemoved, "c was removed from the cluster", "members add c=")
	lost := options[2]
	lost.DataDir = t.TempDir()
	refused(t, lost, errForeign, "members add c=")
	if _, err := stores[1].AddMember(timeout(t), "c", lost.Cluster.own().URL); err != nil {
		t.Fatal(err)
	}
	stores[2] = openPeer(t, lost)
	if spec, _ := keepReading(t, stores[2], placement(0)); string(spec.Value) != "before" {
		t.Fatalf("the new one has %v", spec)
	}
	// b is removed while it runs, and ends with a clear error.
	closeStore(t, stores[1])
	died := make(chan error, 1)
	options[1].Fatal = func(err error) { died <- err }
	stores[1] = openPeer(t, options[1])
	if err := stores[2].RemoveMember(timeout(t), "b"); err != nil {
		t.Fatal(err)
	}
	if err := <-died; !errors.Is(err, errRemoved) || !strings.Contains(err.Error(), "b was removed from the cluster") {
		t.Errorf("the removed member ended with %v", err)
	}
	closeStore(t, stores[1])
	options[1].Fatal = nil
	refused(t, options[1], errRemoved, "b was removed from the cluster")
	// Two are left. Without one of them there is no majority, so that it cannot be removed.
	closeStore(t, stores[2])
	eventually.True(t, "there is no majority", func() bool { return stores[0].leaderless() != nil })
	if err := stores[0].RemoveMember(timeout(t), "c"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("RemoveMember() without a majority: error %v, want ErrUnavailable", err)
	}
	stores[2] = openPeer(t, lost)
	keepWriting(t, stores[0], "after")
}

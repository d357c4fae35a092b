package store

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// TestLeadingServerDoesNotLeadTheMembers makes the member of the leading server lead the members, again and again.
func TestLeadingServerDoesNotLeadTheMembers(t *testing.T) {
	stores := openPeers(t, peers(t, 3))
	term := lead(t, stores[0])
	campaign(t, stores[1], 1)
	campaign(t, stores[2], 2)
	own := stores[0].etcd.server
	apart := func(since uint64) {
		t.Helper()
		eventually.True(t, "another member leads", func() bool {
			leader := own.Leader()
			return leader != 0 && leader != own.MemberID() && own.Term() >= since
		})
	}
	apart(0)
	for range 2 {
		before := own.Term()
		i := slices.IndexFunc(stores, func(s *Store) bool { return s.etcd.server.MemberID() == own.Leader() })
		if err := moveLeader(timeout(t), stores[i].etcd.server, own.MemberID()); err != nil {
			t.Fatal(err)
		}
		apart(before + 2) // one election for each move
	}
	if term.isOver() {
		t.Error("the term of the leader ended")
	}
	if _, leader := names(t, stores[0]); leader != "a" {
		t.Errorf("the leader is %q, want a", leader)
	}
}

// TestWritesDuringAHandoverSucceed hands the leadership of the members to one that is closed, which takes an election
// timeout to fail: until then, etcd drops writes.
func TestWritesDuringAHandoverSucceed(t *testing.T) {
	stores := openPeers(t, peers(t, 3))
	leader := slices.IndexFunc(stores, func(s *Store) bool { return s.etcd.server.Leader() == s.etcd.server.MemberID() })
	if leader < 0 {
		t.Fatal("no member leads")
	}
	s, other := stores[leader], stores[(leader+1)%3]
	closeStore(t, other)
	fill(t, s, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := moveLeader(ctx, s.etcd.server, other.etcd.server.MemberID()); err == nil {
		t.Fatal("the leadership was moved to a closed member")
	}
	if _, err := s.Commit(timeout(t), Write{Key: placement(5), Value: []byte("x"), Expect: 0}); err != nil {
		t.Errorf("write during the handover: %v", err)
	}
}

// TestReadsDuringHandoversSucceed makes one member after the other lead, while all of them are read. For some
// milliseconds each time, they know of no leader. (A write that is on its way to the previous leader then may be lost.)
func TestReadsDuringHandoversSucceed(t *testing.T) {
	stores := openPeers(t, peers(t, 3))
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for i, s := range stores {
		readers.Go(func() {
			for n := 0; backoff.Wait(ctx, time.Millisecond); n++ {
				if _, err := s.Revision(timeout(t)); err != nil {
					t.Errorf("read %d through %d: %v", n, i, err)
				}
			}
		})
	}
	for range 6 {
		i := slices.IndexFunc(stores, func(s *Store) bool { return s.etcd.server.Leader() == s.etcd.server.MemberID() })
		if i < 0 {
			t.Error("no member leads")
			break
		}
		if err := moveLeader(timeout(t), stores[i].etcd.server, stores[(i+1)%3].etcd.server.MemberID()); err != nil {
			t.Error(err)
		}
		eventually.True(t, "all know the new leader", func() bool {
			leader := stores[(i+1)%3].etcd.server.MemberID()
			return !slices.ContainsFunc(stores, func(s *Store) bool { return s.etcd.server.Leader() != leader })
		})
	}
	stop()
	readers.Wait()
}

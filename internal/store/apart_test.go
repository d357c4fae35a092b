package store

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// patientPeers opens the stores of three servers whose requests wait for a leader of the members for as long as a busy
// machine needs.
func patientPeers(t *testing.T) []*Store {
	t.Helper()
	options := peers(t, 3)
	for i := range options {
		options[i].RequestTimeout, options[i].Patience, options[i].leaderGap = storetest.Patience, storetest.Patience, storetest.Patience
	}
	return openPeers(t, options)
}

// leadingMember returns the index of the store whose member leads the members.
func leadingMember(t *testing.T, stores []*Store) (leader int) {
	t.Helper()
	eventually.True(t, "a member leads", func() bool {
		leader = slices.IndexFunc(stores, func(s *Store) bool { return s.member.Server.Leader() == s.member.Server.MemberID() })
		return leader >= 0
	})
	return leader
}

// moveMembers makes the member of a store lead the members.
func moveMembers(t *testing.T, stores []*Store, to *Store) {
	t.Helper()
	eventually.True(t, "the member leads", func() bool {
		from := stores[leadingMember(t, stores)].member.Server
		return from == to.member.Server || moveLeader(timeout(t), from, to.member.Server.MemberID()) == nil
	})
}

// TestLeadingServerDoesNotLeadTheMembers makes the member of the leading server lead the members, again and again.
func TestLeadingServerDoesNotLeadTheMembers(t *testing.T) {
	stores := patientPeers(t)
	term := lead(t, stores[0])
	campaign(t, stores[1], 1)
	campaign(t, stores[2], 2)
	own := stores[0].member.Server
	apart := func() {
		t.Helper()
		eventually.True(t, "another member leads", func() bool {
			leader := own.Leader()
			return leader != 0 && leader != own.MemberID()
		})
	}
	apart()
	for range 2 {
		moveMembers(t, stores, stores[0])
		apart()
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
	stores := patientPeers(t)
	leader := leadingMember(t, stores)
	s, other := stores[leader], stores[(leader+1)%3]
	closeStore(t, other)
	fill(t, s, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := moveLeader(ctx, s.member.Server, other.member.Server.MemberID()); err == nil {
		t.Fatal("the leadership was moved to a closed member")
	}
	if _, err := s.Commit(timeout(t), Write{Key: placement(5), Value: []byte("x"), Expect: 0}); err != nil {
		t.Errorf("write during the handover: %v", err)
	}
}

// TestReadsDuringHandoversSucceed makes one member after the other lead, while all of them are read. For some
// milliseconds each time, they know of no leader. (A write that is on its way to the previous leader then may be lost.)
func TestReadsDuringHandoversSucceed(t *testing.T) {
	stores := patientPeers(t)
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
		moveMembers(t, stores, stores[(leadingMember(t, stores)+1)%3])
		eventually.True(t, "all know the same leader", func() bool {
			leader := stores[0].member.Server.Leader()
			return leader != 0 && !slices.ContainsFunc(stores, func(s *Store) bool { return s.member.Server.Leader() != leader })
		})
	}
	stop()
	readers.Wait()
}

package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// Leases of servers. A busy machine renews neither too late. Where a test revokes a lease, it is brief: its owner
// notices that within a third of it.
const lease, briefLease = time.Minute, 9 * time.Second

// onCluster opens a server on a cluster.
func onCluster(t *testing.T, address, name string) *Store {
	t.Helper()
	return onClusterFor(t, address, name, lease)
}

// onClusterFor is onCluster with another lease.
func onClusterFor(t *testing.T, address, name string, lease time.Duration) *Store {
	t.Helper()
	return open(t, func(o *Options) {
		o.DataDir, o.Endpoints, o.LeaseTTL, o.Candidate = "", []string{address}, lease, func() Candidate { return Candidate{Name: name, URL: "https://" + name} }
	})
}

// campaign starts a store's candidacy, and returns when it is queued.
func campaign(t *testing.T, s *Store, before int) <-chan *Term {
	t.Helper()
	terms := make(chan *Term, 1)
	go func() {
		defer close(terms)
		if term, err := s.Campaign(t.Context()); err == nil {
			terms <- term
		}
	}()
	eventually.True(t, "the candidate is in the queue", func() bool {
		list, err := s.Candidates(t.Context())
		return err == nil && len(list) == before+1
	})
	return terms
}

func names(t *testing.T, s *Store) (names []string, leader string) {
	t.Helper()
	list, err := s.Candidates(timeout(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if names = append(names, c.Name); c.Leader {
			leader = c.Name
		}
	}
	return names, leader
}

// pair is two servers on a cluster with some objects. The first leads, the second is next.
type pair struct {
	first, second *Store
	term          *Term        // of the first server
	terms         <-chan *Term // of the second server
	revisions     []int64      // of the objects
}

func leaderAndNext(t *testing.T) pair {
	t.Helper()
	return leaderAndNextFor(t, lease, lease)
}

// leaderAndNextFor is leaderAndNext with other leases.
func leaderAndNextFor(t *testing.T, first, second time.Duration) pair {
	t.Helper()
	address := cluster(t)
	p := pair{first: onClusterFor(t, address, "first", first), second: onClusterFor(t, address, "second", second)}
	p.revisions = fill(t, p.first, 3)
	p.term = lead(t, p.first)
	p.terms = campaign(t, p.second, 1)
	return p
}

// TestNextCandidateLeads checks that a server that stops hands over leadership at once, and decides nothing afterwards.
func TestNextCandidateLeads(t *testing.T) {
	address := cluster(t)
	first, second, third := onCluster(t, address, "first"), onCluster(t, address, "second"), onCluster(t, address, "third")
	ctx := timeout(t)
	revisions := fill(t, first, 3)
	term := lead(t, first)
	terms := campaign(t, second, 1)
	campaign(t, third, 2)
	if list, leader := names(t, third); !slices.Equal(list, []string{"first", "second", "third"}) || leader != "first" {
		t.Fatalf("candidates %v, leader %s", list, leader)
	}
	if _, err := first.Derive(ctx, statuses(revisions, "first")); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Derive(ctx, statuses(revisions, "early")); !errors.Is(err, ErrFenced) {
		t.Fatalf("a waiting candidate decides: %v", err)
	}
	term.Resign()
	next := <-terms
	if next == nil {
		t.Fatal("the second candidate did not become the leader")
	}
	if _, err := first.Derive(ctx, statuses(revisions, "late")); !errors.Is(err, ErrFenced) {
		t.Fatalf("a leader that resigned decides: %v", err)
	}
	if _, err := second.Derive(ctx, statuses(revisions, "second")); err != nil {
		t.Fatal(err)
	}
	if list, leader := names(t, first); !slices.Equal(list, []string{"second", "third"}) || leader != "second" {
		t.Fatalf("candidates %v, leader %s", list, leader)
	}
	if _, status, err := third.Read(ctx, placement(0)); err != nil || string(status.Value) != "second" {
		t.Fatalf("status %v, error %v, want second", status, err)
	}
}

// TestALeaderThatIsNoLongerHeardOfIsReplaced: its lease ends, it knows, and what it
// writes all the same is refused by its fence.
func TestALeaderThatIsNoLongerHeardOfIsReplaced(t *testing.T) {
	p := leaderAndNextFor(t, briefLease, lease)
	first, second, term, terms, revisions := p.first, p.second, p.term, p.terms, p.revisions
	ctx := timeout(t)
	// What the end of a lease does, without the wait.
	if _, err := second.client.Revoke(ctx, first.candidacy.Load().lease); err != nil {
		t.Fatal(err)
	}
	if <-terms == nil {
		t.Fatal("the second candidate did not become the leader")
	}
	if _, err := second.Derive(ctx, statuses(revisions, "second")); err != nil {
		t.Fatal(err)
	}
	// It may consider itself the leader until its next keep-alive.
	if _, err := first.Derive(ctx, statuses(revisions, "late")); !errors.Is(err, ErrFenced) {
		t.Fatalf("error %v, want ErrFenced", err)
	}
	<-term.Context().Done()
	if _, status, err := second.Read(ctx, placement(0)); err != nil || string(status.Value) != "second" {
		t.Fatalf("status %v, error %v, want second", status, err)
	}
	// It becomes a candidate again, behind the other.
	campaign(t, first, 1)
	if list, leader := names(t, first); !slices.Equal(list, []string{"second", "first"}) || leader != "second" {
		t.Fatalf("candidates %v, leader %s", list, leader)
	}
}

// TestExpiredLeaseDoesNotLead covers a server whose key in the election is gone, while etcd's election library reports
// that it leads.
func TestExpiredLeaseDoesNotLead(t *testing.T) {
	t.Parallel()
	p := leaderAndNextFor(t, lease, briefLease)
	first, second, term, terms, revisions := p.first, p.second, p.term, p.terms, p.revisions
	ctx := timeout(t)
	before := second.candidacy.Load().lease
	if _, err := first.client.Revoke(ctx, before); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the candidate waits again with another lease", func() bool { return second.candidacy.Load().lease != before })
	eventually.True(t, "the candidate is in the queue", func() bool { list, _ := names(t, first); return len(list) == 2 })
	if _, err := second.Derive(ctx, statuses(revisions, "early")); !errors.Is(err, ErrFenced) {
		t.Fatalf("error %v, want ErrFenced", err)
	}
	term.Resign()
	if <-terms == nil {
		t.Fatal("the second candidate did not become the leader")
	}
	if _, err := second.Derive(ctx, statuses(revisions, "second")); err != nil {
		t.Fatal(err)
	}
}

// TestCanceledCandidateLeavesTheElection checks that a canceled candidate does not block the others.
func TestCanceledCandidateLeavesTheElection(t *testing.T) {
	address := cluster(t)
	first, second, third := onCluster(t, address, "first"), onCluster(t, address, "second"), onCluster(t, address, "third")
	term := lead(t, first)
	ctx, giveUp := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := second.Campaign(ctx)
		gaveUp <- err
	}()
	eventually.True(t, "the candidate is in the queue", func() bool { list, _ := names(t, first); return len(list) == 2 })
	terms := campaign(t, third, 2)
	giveUp()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want Canceled", err)
	}
	if list, _ := names(t, first); !slices.Equal(list, []string{"first", "third"}) {
		t.Fatalf("candidates %v, want first and third", list)
	}
	term.Resign()
	if <-terms == nil {
		t.Fatal("the third candidate did not become the leader")
	}
}

// TestTheEmbeddedMemberLeads checks that a single server leads until another process opens its store.
func TestTheEmbeddedMemberLeads(t *testing.T) {
	s := open(t)
	term := lead(t, s)
	if _, err := s.client.Put(timeout(t), epochKey, "somebody else"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Derive(timeout(t), statuses(fill(t, s, 1), "late")); !errors.Is(err, ErrFenced) {
		t.Fatalf("error %v, want ErrFenced", err)
	}
	<-term.Context().Done()
	if _, err := s.Campaign(timeout(t)); !errors.Is(err, ErrFenced) {
		t.Fatalf("error %v, want ErrFenced", err)
	}
}

// TestABackupWhileAServerLeadsIsSound: what lives only as long as its server is no
// damage, and a restored store goes on without it.
func TestABackupWhileAServerLeadsIsSound(t *testing.T) {
	s := onCluster(t, cluster(t), "first")
	fill(t, s, 3)
	lead(t, s)
	var archive bytes.Buffer
	if err := s.Backup(timeout(t), &archive, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup.tar")
	if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Check(path)
	if err != nil || len(report.Findings) > 0 {
		t.Fatalf("findings %v, error %v, want none", report.Findings, err)
	}
	dir := t.TempDir()
	if err := Restore(timeout(t), &archive, dir); err != nil {
		t.Fatal(err)
	}
	restored := open(t, func(o *Options) { o.DataDir = dir })
	lead(t, restored)
	if spec, _, err := restored.Read(timeout(t), placement(1)); err != nil || spec == nil {
		t.Fatalf("read %v, %v", spec, err)
	}
}

// TestCandidateStopsWithoutTheStore: etcd's election library first resigns, and waits for a store that does not respond
// as long as its client exists.
func TestCandidateStopsWithoutTheStore(t *testing.T) {
	t.Parallel()
	for _, cut := range []func(*proxytest.Proxy){
		func(p *proxytest.Proxy) { p.Stall(proxytest.ToServer, proxytest.ToClient) },
		func(p *proxytest.Proxy) { p.Stall(proxytest.ToClient) },
		func(p *proxytest.Proxy) { p.Down(t) },
	} {
		address := cluster(t)
		lead(t, onCluster(t, address, "first"))
		p := proxytest.Start(t, address)
		second := onCluster(t, p.Address(), "second")
		ctx, giveUp := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() {
			_, err := second.Campaign(ctx)
			gaveUp <- err
		}()
		eventually.True(t, "the candidate is in the queue", func() bool {
			list, err := second.Candidates(t.Context())
			return err == nil && len(list) == 2
		})
		cut(p)
		giveUp()
		select {
		case err := <-gaveUp:
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v, want Canceled", err)
			}
		case <-time.After(eventually.Limit):
			t.Fatal("Campaign waits for a store that does not respond")
		}
	}
}

// TestAServerDoesNotWaitForItsOwnLease: one that leads and loses the store cannot say that it leads no longer. Once it
// reaches the store again, it need not wait until that lease expires.
func TestAServerDoesNotWaitForItsOwnLease(t *testing.T) {
	t.Parallel()
	p := proxytest.Start(t, cluster(t))
	s := onClusterFor(t, p.Address(), "first", time.Hour)
	term := lead(t, s)
	p.Down(t)
	term.Resign()
	if left := s.abandoned.take(); len(left) != 1 {
		t.Fatalf("abandoned leases %v, want one", left)
	} else {
		s.abandoned.add(left[0])
	}
	p.Up(t)
	if lead(t, s) == nil {
		t.Fatal("it does not lead again")
	}
	if list, leader := names(t, s); len(list) != 1 || leader != "first" {
		t.Errorf("candidates %v, leader %s, want the server once", list, leader)
	}
}

// lateKV delays the next transaction until late is called, long after the sender has given up.
type lateKV struct {
	clientv3.KV
	late func() bool // nil = nothing is delayed
}

type lateTxn struct {
	clientv3.Txn
	kv *lateKV
}

func (k *lateKV) Txn(context.Context) clientv3.Txn {
	return &lateTxn{k.KV.Txn(context.Background()), k}
}

func (t *lateTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { t.Txn = t.Txn.If(cs...); return t }
func (t *lateTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }
func (t *lateTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *lateTxn) Commit() (*clientv3.TxnResponse, error) {
	t.kv.late = func() bool {
		resp, err := t.Txn.Commit()
		return err == nil && resp.Succeeded
	}
	return nil, context.DeadlineExceeded
}

// TestALateDecisionIsRefused has a derived write arrive at etcd after a newer one of the
// same leader: a member that stood still, or the network, had held it up.
func TestALateDecisionIsRefused(t *testing.T) {
	s := onCluster(t, cluster(t), "first")
	lead(t, s)
	ctx := timeout(t)
	revisions := fill(t, s, 3)
	late, sound := interpose(t, s, func(kv clientv3.KV) *lateKV { return &lateKV{KV: kv} })
	if _, err := s.Derive(ctx, statuses(revisions, "older")); !errors.Is(err, ErrUncertain) {
		t.Fatalf("write without an answer: error %v, want ErrUncertain", err)
	}
	sound()
	if late.late == nil {
		t.Fatal("no write is delayed")
	}
	if _, err := s.Derive(ctx, statuses(revisions, "newer")); err != nil {
		t.Fatal(err)
	}
	if late.late() {
		t.Error("a delayed decision overwrites a later one")
	}
	if _, err := s.Derive(ctx, statuses(revisions, "newest")); err != nil {
		t.Errorf("decisions are no longer written afterwards: %v", err)
	}
	// The write of the sequence number may be late itself, after it was written again.
	_, sound = interpose(t, s, func(clientv3.KV) *lateKV { return late })
	if _, err := s.Derive(ctx, statuses(revisions, "lost")); !errors.Is(err, ErrUncertain) {
		t.Fatalf("write without an answer: error %v, want ErrUncertain", err)
	}
	if _, err := s.Derive(ctx, statuses(revisions, "lost, too")); !errors.Is(err, ErrUncertain) {
		t.Fatalf("write of the sequence number without an answer: error %v, want ErrUncertain", err)
	}
	sound()
	if _, err := s.Derive(ctx, statuses(revisions, "done")); err != nil {
		t.Fatal(err)
	}
	if !late.late() {
		t.Error("the sequence number was not written late")
	}
	if _, err := s.Derive(ctx, statuses(revisions, "done again")); err != nil {
		t.Errorf("decisions are no longer written after a late sequence number: %v", err)
	}
}

// TestTheLeaderCompacts checks that, of several servers on a cluster, only the leader compacts the history.
func TestTheLeaderCompacts(t *testing.T) {
	address := cluster(t)
	var stores []*Store
	var terms []<-chan *Term
	for i := range 2 {
		stores = append(stores, open(t, func(o *Options) {
			o.DataDir, o.Endpoints, o.LeaseTTL = "", []string{address}, lease
			o.KeepRevisions, o.CompactInterval = 5, 10*time.Millisecond
		}))
		terms = append(terms, campaign(t, stores[i], i))
	}
	compactions := func(s *Store) int {
		var m dto.Metric
		if err := s.metrics.compactions.Write(&m); err != nil {
			t.Fatal(err)
		}
		return int(m.GetCounter().GetValue())
	}
	for i, s := range stores {
		before := compactions(s)
		term := <-terms[i]
		for n := range 20 {
			for range 10 {
				put(t, stores[n%2], placement(1), "v")
			}
			eventually.True(t, "the leader compacts", func() bool { return compactions(s) > before+n })
		}
		if i == 0 {
			if n := compactions(stores[1]); n > 0 {
				t.Errorf("a server that is not the leader compacted %d times", n)
			}
		}
		term.Resign()
	}
}

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// Candidate is a server on the store, as it describes itself.
type Candidate struct {
	// ID identifies the server process: it changes with each start.
	ID string `json:"id"`
	// Name is the server's display name.
	Name string `json:"name"`
	// URL is the address of its API for other servers and clients.
	URL string `json:"url"`
	// Version is the version of its program.
	Version string `json:"version"`
	// SealKey identifies the key with which it encrypts secrets. It is empty if the server does not
	// report it.
	SealKey string `json:"seal_key,omitempty"`
	// Format is the newest store format that its program reads.
	Format int `json:"format"`
	// Revision is the revision that it last reported.
	Revision int64 `json:"revision"`

	// Leader says whether it leads.
	Leader bool `json:"-"`
}

// maxHandOver limits how long a stopping server tries to hand over. If it cannot, its lease
// expires.
const maxHandOver = 2 * time.Second

// campaignAgain is the backoff for campaigning again after a failure.
var campaignAgain = backoff.Backoff{First: 50 * time.Millisecond, Most: 2 * time.Second}

// Campaign waits until this process leads, and returns its term. With a single embedded member it
// always leads, until somebody else opens the same store; the error is then ErrFenced. Otherwise
// the error is that of ctx. Servers lead in the order in which they began to campaign. It must not
// be called concurrently.
func (s *Store) Campaign(ctx context.Context) (*Term, error) {
	if s.options.alone() {
		if term := s.term.Load(); !term.isOver() {
			return term, nil
		}
		return nil, ErrFenced
	}
	for failures := 1; ; failures++ {
		began := s.guard.clock.now()
		term, err := s.campaign(ctx)
		switch {
		case err == nil:
			s.term.Store(term)
			return term, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("wait for the leadership: %w", ctx.Err())
		}
		if time.Duration(s.guard.clock.now()-began) > campaignAgain.Most {
			failures = 1 // it was a candidate in the meantime
		}
		s.options.Logger.Warn("this server could not take part in the election; retrying", "error", classify(err, false))
		backoff.Wait(ctx, campaignAgain.After(failures))
	}
}

// errLeaseLost says that the lease expired while its server campaigned.
var errLeaseLost = errors.New("its lease has ended")

// campaign campaigns once, with its own lease.
func (s *Store) campaign(ctx context.Context) (_ *Term, err error) {
	if err := s.revokeAbandoned(ctx); err != nil {
		return nil, err
	}
	// A canceled election resigns before it returns, using the context of its client: without the
	// store it would never return.
	patience, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	client := clientv3.NewCtxClient(patience)
	client.KV, client.Lease, client.Watcher = s.client.KV, s.client.Lease, s.client.Watcher
	session, end, err := s.newSession(ctx, client)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(waiting, func() { time.AfterFunc(maxHandOver, giveUp) })()
	go func() {
		select {
		case <-session.Done():
			stop(errLeaseLost)
		case <-waiting.Done():
		}
	}()
	election := concurrency.NewElection(session, strings.TrimSuffix(candidatePrefix, "/"))
	value, err := json.Marshal(s.candidate())
	if err != nil {
		return nil, err
	}
	s.candidacy.Store(&candidacy{fmt.Sprintf("%s%x", candidatePrefix, session.Lease()), session.Lease()})
	if err := election.Campaign(waiting, string(value)); err != nil {
		return nil, cmp.Or(context.Cause(waiting), err)
	}
	s.handOverCluster(ctx) // before anybody waits for what this server decides
	// Campaign also returns if the lease has expired and its key is gone.
	f := fence{key: election.Key(), revision: election.Rev(), created: true}
	bounded, cancel := s.requestContext(ctx)
	defer cancel()
	resp, err := s.client.Txn(bounded).If(f.intact()).Then(s.putOrder()).Commit()
	if err != nil {
		return nil, err
	}
	if !resp.Succeeded {
		return nil, errLeaseLost
	}
	s.sawRevision(resp.Header.Revision)
	term := newTerm(f, resp.Header.Revision, resp.Header.Revision, end)
	go func() {
		<-session.Done()
		term.end()
	}()
	return term, nil
}

// newSession grants a lease and keeps it alive until end is called.
func (s *Store) newSession(ctx context.Context, client *clientv3.Client) (_ *concurrency.Session, end func(), err error) {
	// The lease outlives ctx: it is revoked explicitly, so that nobody waits for its expiry.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	session, err := concurrency.NewSession(client, concurrency.WithContext(own), concurrency.WithTTL(int(s.options.LeaseTTL/time.Second)))
	if !stop() || err != nil {
		cancel()
		return nil, nil, cmp.Or(err, ctx.Err())
	}
	return session, func() {
		defer cancel()
		bounded, done := context.WithTimeout(own, maxHandOver)
		defer done()
		if _, err := s.client.Revoke(bounded, session.Lease()); err != nil {
			s.options.Logger.Warn("the other servers could not be notified that this one no longer leads or wants to; they wait until its lease expires, or it can be reached again",
				"lease", s.options.LeaseTTL.String(), "error", classify(err, true))
			s.abandoned.add(session.Lease())
		}
		session.Orphan()
	}, nil
}

// leases are those of earlier candidacies of this process that could not be revoked when these ended. As long as they
// live, every candidate waits for them, this process included.
type leases struct {
	mu  sync.Mutex
	all []clientv3.LeaseID
}

func (l *leases) add(lease clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, lease)
}

func (l *leases) take() []clientv3.LeaseID {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// revokeAbandoned revokes the leases of earlier candidacies.
func (s *Store) revokeAbandoned(ctx context.Context) error {
	all := s.abandoned.take()
	for i, lease := range all {
		bounded, done := context.WithTimeout(ctx, maxHandOver)
		_, err := s.client.Revoke(bounded, lease)
		done()
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			for _, left := range all[i:] {
				s.abandoned.add(left)
			}
			return err
		}
	}
	return nil
}

// candidacy is the candidacy of this process.
type candidacy struct {
	key   string
	lease clientv3.LeaseID
}

// candidate returns the current description of this server.
func (s *Store) candidate() Candidate {
	c := s.options.Candidate()
	c.ID, c.Format, c.Revision = s.id, formatVersion, s.watched.Load()
	return c
}

// Is reports whether a candidate is this server.
func (s *Store) Is(c Candidate) bool { return c.ID == s.id }

// progressInterval is how often a server reports its revision.
const progressInterval = 2 * time.Second

// tellProgress reports this server's revision as long as it is a candidate.
func (s *Store) tellProgress() {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	last := int64(0)
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		c := s.candidacy.Load()
		if c == nil {
			continue
		}
		now := s.candidate()
		if now.Revision == last {
			continue
		}
		value, err := json.Marshal(now)
		if err != nil {
			continue
		}
		ctx, cancel := s.requestContext(s.ctx)
		// Without the key the server is no longer a candidate, and must not become one here.
		resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(c.key), ">", 0)).
			Then(clientv3.OpPut(c.key, string(value), clientv3.WithLease(c.lease))).Commit()
		cancel()
		if err == nil && resp.Succeeded {
			last = now.Revision
		}
	}
}

// Candidates returns the servers on the store in the order in which they lead. It is empty with a
// single embedded member.
func (s *Store) Candidates(ctx context.Context) ([]Candidate, error) {
	if s.options.alone() {
		return nil, nil
	}
	resp, err := s.get(ctx, s.options.RequestTimeout, candidatePrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read which servers there are: %w", err)
	}
	return parseCandidates(resp.Kvs), nil
}

// parseCandidates sorts the servers in the order in which they lead.
func parseCandidates(kvs []*mvccpb.KeyValue) []Candidate {
	slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
	list := make([]Candidate, 0, len(kvs))
	for i, kv := range kvs {
		var c Candidate
		if err := json.Unmarshal(kv.Value, &c); err != nil {
			c.Name = string(kv.Key) // a server of another version, with another encoding
		}
		c.Leader = i == 0
		list = append(list, c)
	}
	return list
}

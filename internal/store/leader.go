package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// Candidate is a server on the store, as it says itself.
type Candidate struct {
	// ID tells the servers apart: it is another one after each start.
	ID string `json:"id"`
	// Name is what people call the server.
	Name string `json:"name"`
	// URL is where other servers and clients reach its API.
	URL string `json:"url"`
	// Version is that of its program.
	Version string `json:"version"`
	// SealKey tells apart which key it seals secrets with. It is empty for a server that
	// does not say so.
	SealKey string `json:"seal_key,omitempty"`
	// Format is the newest format of the store that its program reads.
	Format int `json:"format,omitempty"`
	// Revision is how far it had come when it last said so.
	Revision int64 `json:"revision"`

	// Leader says that it leads.
	Leader bool `json:"-"`
}

// maxHandOver is how long a server that stops takes at most to say so to the
// others. Where it cannot, its lease ends by itself.
const maxHandOver = 2 * time.Second

// campaignAgain is when a server waits in the line again after it could not.
var campaignAgain = backoff.Backoff{First: 50 * time.Millisecond, Most: 2 * time.Second}

// Campaign waits until this process leads, and returns its term. With an embedded
// member alone it always leads, until somebody else opens the same store: the error is then
// ErrFenced. Otherwise the error is that of ctx. Servers lead in the order in which
// they began to wait. Only one call at a time.
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
			failures = 1 // it had waited in the line meanwhile
		}
		s.options.Logger.Warn("this server could not take part in the election; retrying", "error", classify(err, false))
		backoff.Wait(ctx, campaignAgain.After(failures))
	}
}

// errLeaseLost says that the lease ended while its server waited to lead.
var errLeaseLost = errors.New("its lease has ended")

// campaign waits in the line once, with a lease of its own.
func (s *Store) campaign(ctx context.Context) (_ *Term, err error) {
	// An election that is cut short gives its place up before it returns, with the
	// context of its client: without the store it would never return.
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
	// Campaign also returns where the lease has ended and the key gone with it.
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

// newSession takes a lease, and keeps it until end is called.
func (s *Store) newSession(ctx context.Context, client *clientv3.Client) (_ *concurrency.Session, end func(), err error) {
	// The lease outlives ctx: it is given back, so that nobody waits for its end.
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
			s.options.Logger.Warn("the other servers could not be notified that this one stops; they wait until its lease expires", "lease", s.options.LeaseTTL.String(), "error", classify(err, true))
		}
		session.Orphan()
	}, nil
}

// candidacy is the place of this process in the line.
type candidacy struct {
	key   string
	lease clientv3.LeaseID
}

// candidate is this server as it stands now.
func (s *Store) candidate() Candidate {
	c := s.options.Candidate()
	c.ID, c.Format, c.Revision = s.id, formatVersion, s.watched.Load()
	return c
}

// Is reports whether a candidate is this server.
func (s *Store) Is(c Candidate) bool { return c.ID == s.id }

// progressInterval is how often a server says how far it has come.
const progressInterval = 2 * time.Second

// tellProgress says how far this server has come, for as long as it stands in the
// line.
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
		// Without the key the server is no candidate: it must not become one here.
		resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(c.key), ">", 0)).
			Then(clientv3.OpPut(c.key, string(value), clientv3.WithLease(c.lease))).Commit()
		cancel()
		if err == nil && resp.Succeeded {
			last = now.Revision
		}
	}
}

// Candidates are the servers on the store, in the order in which they lead. It is
// empty with the embedded member, which has one server alone.
func (s *Store) Candidates(ctx context.Context) ([]Candidate, error) {
	if s.options.alone() {
		return nil, nil
	}
	if err := s.answers(); err != nil {
		return nil, fmt.Errorf("read which servers there are: %w", err)
	}
	ctx, cancel := s.requestContext(ctx)
	defer cancel()
	asked := s.revision.Load()
	resp, err := s.client.Get(ctx, candidatePrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read which servers there are: %w", classify(err, false))
	}
	if err := s.answered(asked, resp.Header); err != nil {
		return nil, fmt.Errorf("read which servers there are: %w", err)
	}
	return parseCandidates(resp.Kvs), nil
}

// unsaidFormat is the newest format of programs that do not say which they read.
const unsaidFormat = 2

// parseCandidates brings the servers into the order in which they lead.
func parseCandidates(kvs []*mvccpb.KeyValue) []Candidate {
	slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
	list := make([]Candidate, 0, len(kvs))
	for i, kv := range kvs {
		var c Candidate
		if err := json.Unmarshal(kv.Value, &c); err != nil {
			c.Name = string(kv.Key) // a server of another version says it in another way
		}
		c.Leader, c.Format = i == 0, cmp.Or(c.Format, unsaidFormat)
		list = append(list, c)
	}
	return list
}

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
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
	Format int `json:"format,omitempty"`
	// Revision is the revision that it last reported.
	Revision int64 `json:"revision"`

	// Leader says whether it leads.
	Leader bool `json:"-"`
}

// leadership is whether this process leads, and which others could.
type leadership struct {
	etcd      *connection
	envelopes *envelopes
	watcher   *watcher
	options   *Options
	clock     clock

	id        string               // of this process
	term      atomic.Pointer[Term] // the last one; nil before the first
	candidacy atomic.Pointer[candidacy]
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
func (l *leadership) Campaign(ctx context.Context) (*Term, error) {
	if l.options.alone() {
		if term := l.term.Load(); !term.isOver() {
			return term, nil
		}
		return nil, ErrFenced
	}
	for failures := 1; ; failures++ {
		began := l.clock.now()
		term, err := l.campaign(ctx)
		switch {
		case err == nil:
			l.term.Store(term)
			return term, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("wait for the leadership: %w", ctx.Err())
		}
		if time.Duration(l.clock.now()-began) > campaignAgain.Most {
			failures = 1 // it was a candidate in the meantime
		}
		l.options.Logger.Warn("this server could not take part in the election; retrying", "error", classify(err, false))
		backoff.Wait(ctx, campaignAgain.After(failures))
	}
}

// errLeaseLost says that the lease expired while its server campaigned.
var errLeaseLost = errors.New("its lease has ended")

// campaign campaigns once, with its own lease.
func (l *leadership) campaign(ctx context.Context) (_ *Term, err error) {
	// A canceled election resigns before it returns, using the context of its client: without the
	// store it would never return.
	patience, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	client := clientv3.NewCtxClient(patience)
	client.KV, client.Lease, client.Watcher = l.etcd.client.KV, l.etcd.client.Lease, l.etcd.client.Watcher
	session, end, err := l.newSession(ctx, client)
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
	value, err := json.Marshal(l.candidate())
	if err != nil {
		return nil, err
	}
	l.candidacy.Store(&candidacy{fmt.Sprintf("%s%x", candidatePrefix, session.Lease()), session.Lease()})
	if err := election.Campaign(waiting, string(value)); err != nil {
		return nil, cmp.Or(context.Cause(waiting), err)
	}
	l.handOverCluster(ctx) // before anybody waits for what this server decides
	// Campaign also returns if the lease has expired and its key is gone.
	f := fence{key: election.Key(), revision: election.Rev(), created: true}
	bounded, cancel := l.etcd.requestContext(ctx)
	defer cancel()
	history, err := l.begins(bounded)
	if err != nil {
		return nil, err
	}
	resp, err := l.etcd.client.Txn(bounded).If(f.intact()).Then(append(history, l.envelopes.put(orderKey, []byte(l.id)))...).Commit()
	if err != nil {
		return nil, err
	}
	if !resp.Succeeded {
		return nil, errLeaseLost
	}
	l.etcd.sawRevision(resp.Header.Revision)
	term := newTerm(f, resp.Header.Revision, resp.Header.Revision, end)
	go func() {
		<-session.Done()
		term.end()
	}()
	return term, nil
}

// newSession grants a lease and keeps it alive until end is called.
func (l *leadership) newSession(ctx context.Context, client *clientv3.Client) (_ *concurrency.Session, end func(), err error) {
	// The lease outlives ctx: it is revoked explicitly, so that nobody waits for its expiry.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	session, err := concurrency.NewSession(client, concurrency.WithContext(own), concurrency.WithTTL(int(l.options.LeaseTTL/time.Second)))
	if !stop() || err != nil {
		cancel()
		return nil, nil, cmp.Or(err, ctx.Err())
	}
	return session, func() {
		defer cancel()
		bounded, done := context.WithTimeout(own, maxHandOver)
		defer done()
		if _, err := l.etcd.client.Revoke(bounded, session.Lease()); err != nil {
			l.options.Logger.Warn("the other servers could not be notified that this one stops; they wait until its lease expires", "lease", l.options.LeaseTTL.String(), "error", classify(err, true))
		}
		session.Orphan()
	}, nil
}

// candidacy is the candidacy of this process.
type candidacy struct {
	key   string
	lease clientv3.LeaseID
}

// candidate returns the current description of this server.
func (l *leadership) candidate() Candidate {
	c := l.options.Candidate()
	c.ID, c.Format, c.Revision = l.id, formatVersion, l.watcher.watched.Load()
	return c
}

// Is reports whether a candidate is this server.
func (l *leadership) Is(c Candidate) bool { return c.ID == l.id }

// progressInterval is how often a server reports its revision.
const progressInterval = 2 * time.Second

// putOrder returns the write of orderKey within a term.
func (l *leadership) putOrder() []clientv3.Op {
	ops := []clientv3.Op{l.envelopes.put(orderKey, []byte(l.id))}
	if l.options.records() {
		ops = append(ops, l.putLed())
	}
	return ops
}

// tellProgress reports this server's revision until ctx is done, as long as it is a candidate.
func (l *leadership) tellProgress(ctx context.Context) {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	last := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c := l.candidacy.Load()
		if c == nil {
			continue
		}
		now := l.candidate()
		if now.Revision == last {
			continue
		}
		value, err := json.Marshal(now)
		if err != nil {
			continue
		}
		bounded, cancel := l.etcd.requestContext(ctx)
		// Without the key the server is no longer a candidate, and must not become one here.
		resp, err := l.etcd.client.Txn(bounded).If(clientv3.Compare(clientv3.CreateRevision(c.key), ">", 0)).
			Then(clientv3.OpPut(c.key, string(value), clientv3.WithLease(c.lease))).Commit()
		cancel()
		if err == nil && resp.Succeeded {
			last = now.Revision
		}
	}
}

// Candidates returns the servers on the store in the order in which they lead. It is empty with a
// single embedded member.
func (l *leadership) Candidates(ctx context.Context) ([]Candidate, error) {
	if l.options.alone() {
		return nil, nil
	}
	resp, err := l.etcd.get(ctx, l.options.RequestTimeout, candidatePrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list the servers: %w", err)
	}
	return parseCandidates(resp.Kvs), nil
}

// unsaidFormat is the newest format of programs that do not report it.
const unsaidFormat = 2

// parseCandidates sorts the servers in the order in which they lead.
func parseCandidates(kvs []*mvccpb.KeyValue) []Candidate {
	slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
	list := make([]Candidate, 0, len(kvs))
	for i, kv := range kvs {
		var c Candidate
		if err := json.Unmarshal(kv.Value, &c); err != nil {
			c.Name = string(kv.Key) // a server of another version, with another encoding
		}
		c.Leader, c.Format = i == 0, cmp.Or(c.Format, unsaidFormat)
		list = append(list, c)
	}
	return list
}

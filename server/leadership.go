package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/runner"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// duties are the parts that only the leader has: it alone reads metrics, probes clusters and
// replaces pods. Each term has its own, so that none starts with outdated data.
type duties struct {
	signals *signal.Runner
	spot    *runner.Runner
	// term is done when the term ends, which may be long before its parts have stopped.
	term context.Context
}

// collectors returns the metrics of the duties.
func (d *duties) collectors() []prometheus.Collector {
	return slices.Concat(d.signals.Collectors(), d.spot.Collectors())
}

// leadership is this server's role among those on one store. With a single embedded store, it
// always leads.
type leadership struct {
	server    *server
	transport http.RoundTripper
	// current is nil while another server leads.
	current atomic.Pointer[duties]
	// standby admits pods in that case; nil while this server leads.
	standby atomic.Pointer[standby]
	// led is closed once some server is known to lead.
	led     chan struct{}
	ledOnce sync.Once

	// reading is held while the candidates are read.
	reading *semaphore.Weighted

	mu      sync.Mutex
	servers []store.Candidate // guarded by mu; as of at
	at      time.Time         // guarded by mu
}

func newLeadership(s *server) (*leadership, error) {
	transport, err := s.config.peerTransport(s.tls)
	if err != nil {
		return nil, err
	}
	return &leadership{server: s, transport: tracing.Peer(transport), led: make(chan struct{}), reading: semaphore.NewWeighted(1)}, nil
}

// others reports whether other servers may share the store.
func (l *leadership) others() bool { return l.server.config.severalServers() }

// name returns the display name of this server.
func (l *leadership) name() string {
	if !l.others() {
		return ""
	}
	return l.server.candidate().Name
}

// forAPI returns the leadership for the API, or nil if there are no other servers.
func (l *leadership) forAPI() httpapi.Leader {
	if !l.others() {
		return nil
	}
	return l
}

// run leads whenever it is this server's turn, until ctx is done.
func (l *leadership) run(ctx context.Context) error {
	if !l.others() {
		return l.takeTurns(ctx)
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return l.awaitLeader(ctx) })
	both.Go(func() error { return l.takeTurns(ctx) })
	return both.Wait()
}

// takeTurns leads whenever it is this server's turn.
func (l *leadership) takeTurns(ctx context.Context) error {
	for {
		admitting := l.standBy(ctx)
		l.standby.Store(admitting)
		term, err := l.server.store.Campaign(ctx)
		if err == nil {
			err = l.lead(ctx, term)
		}
		admitting.stop()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // canceled, not failed
		}
		if err != nil {
			return err
		}
		l.server.logger.Warn("this server is no longer the leader")
	}
}

// awaitLeader records when another server leads: from then on requests can be answered. It fails if
// this server must not run along with the others.
func (l *leadership) awaitLeader(ctx context.Context) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		if list, err := l.candidates(ctx); err == nil {
			if err := l.sealsAlike(list); err != nil {
				return err
			}
			// Until it is a candidate, its own list of servers would not include it.
			if slices.ContainsFunc(list, l.server.store.Is) && !l.server.store.Is(list[0]) {
				l.ledOnce.Do(func() { close(l.led) })
			}
		}
		select {
		case <-l.led:
			return nil
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// sealsAlike fails if an earlier server encrypts secrets with another key: neither could read what
// the other writes.
func (l *leadership) sealsAlike(list []store.Candidate) error {
	own := l.server.candidate().SealKey
	for _, c := range list {
		if l.server.store.Is(c) {
			return nil
		}
		if c.SealKey != "" && c.SealKey != own {
			return fmt.Errorf("key-file: %s contains the key with ID %s, but the server %q at %s uses the key with ID %s: use the same key file for all servers",
				l.server.config.sealFile(), own, c.Name, c.URL, c.SealKey)
		}
	}
	return nil
}

// lead performs the leader's duties for a term.
func (l *leadership) lead(ctx context.Context, term *store.Term) error {
	defer term.Resign()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(term.Context(), cancel)() //nolint:contextcheck // the end of the term cancels it as well
	d := l.server.newDuties(term.Context())           //nolint:contextcheck // the duties end with the term
	defer l.current.Store(nil)
	return runInOrder(ctx, []component{
		{"leading", func(ctx context.Context) error {
			l.server.decider.Lead(ctx, term.Began, func() { l.begin(d, term.Began) })
			return nil
		}},
		l.server.supervised("signals", d.signals.Run),
		l.server.supervised("spot", d.spot.Run),
	})
}

// begin is called before this server starts to make decisions.
func (l *leadership) begin(d *duties, revision int64) {
	l.current.Store(d)
	if admitting := l.standby.Swap(nil); admitting != nil {
		admitting.end()
	}
	l.ledOnce.Do(func() { close(l.led) })
	if l.others() {
		l.server.logger.Info("this server is now the leader", "revision", revision)
	}
}

// Leads implements httpapi.Leader.
func (l *leadership) Leads() bool {
	d := l.current.Load()
	return d != nil && d.term.Err() == nil
}

// Revision implements httpapi.Leader.
func (l *leadership) Revision(ctx context.Context) (int64, error) {
	return l.server.store.Revision(ctx)
}

// Transport implements httpapi.Leader.
func (l *leadership) Transport() http.RoundTripper { return l.transport }

// errNoLeader says that no server leads.
var errNoLeader = errors.New("the servers are electing one")

// URL implements httpapi.Leader.
func (l *leadership) URL(ctx context.Context) (*url.URL, error) {
	list, err := l.candidates(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || l.server.store.Is(list[0]) {
		return nil, errNoLeader
	}
	return url.Parse(list[0].URL)
}

// Servers implements httpapi.Leader. While the store does not respond, it returns the last known
// servers.
func (l *leadership) Servers(ctx context.Context) []api.ServerMember {
	list, _ := l.candidates(ctx)
	members := make([]api.ServerMember, len(list))
	for i, c := range list {
		members[i] = api.ServerMember{ID: c.ID, Name: c.Name, URL: c.URL, Version: c.Version, Leader: c.Leader, NewestFormat: c.Format, Revision: c.Revision}
	}
	return members
}

// candidatesFresh is how long the list of candidates is cached, so that it is not read for every
// request.
const candidatesFresh = 250 * time.Millisecond

// candidates returns the servers on the store. If they cannot be read, it returns the last known
// ones with the error. All who ask at the same time share one read, for no longer than they want to
// wait.
func (l *leadership) candidates(ctx context.Context) ([]store.Candidate, error) {
	last, fresh := l.lastCandidates()
	if fresh {
		return last, nil
	}
	if err := l.reading.Acquire(ctx, 1); err != nil {
		return last, err
	}
	defer l.reading.Release(1)
	if last, fresh = l.lastCandidates(); fresh {
		return last, nil
	}
	list, err := l.server.store.Candidates(ctx)
	if err != nil {
		return last, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers, l.at = list, time.Now()
	return list, nil
}

// lastCandidates returns the servers as last read, and whether that was a moment ago.
func (l *leadership) lastCandidates() (list []store.Candidate, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.servers, time.Since(l.at) < candidatesFresh
}

// Describe implements prometheus.Collector. The metrics differ between terms, so none are
// described.
func (l *leadership) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (l *leadership) Collect(to chan<- prometheus.Metric) {
	d := l.current.Load()
	if d == nil {
		return
	}
	for _, c := range d.collectors() {
		c.Collect(to)
	}
}

// leastLease is the minimum lease: etcd grants no shorter ones.
const leastLease = 2 * time.Second

// checkLeadership validates the settings of several servers on one store.
func (c *config) checkLeadership(wrong func(format string, args ...any)) {
	if c.Lease < leastLease {
		wrong("lease: %s must be at least %s", c.Lease, leastLease)
	}
	if c.AdvertiseURL == "" {
		return
	}
	if !isBaseURL(strings.TrimSuffix(c.AdvertiseURL, "/"), "https", "http") {
		wrong("advertise-url: %q is not an address of the form https://host:port", c.AdvertiseURL)
	}
}

// isBaseURL reports whether a text is only the base URL of a server with one of the schemes.
func isBaseURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Hostname() != "" && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == ""
}

// candidate returns what this server reports to the others.
func (s *server) candidate() store.Candidate {
	c := s.config
	host, _ := os.Hostname() // only used for the address of this server, which has a flag
	address := s.listener.Addr().String()
	if h, port, err := net.SplitHostPort(address); err == nil {
		if ip := net.ParseIP(h); ip != nil && ip.IsUnspecified() {
			address = net.JoinHostPort(host, port)
		}
	}
	scheme := "http"
	if c.tls() {
		scheme = "https"
	}
	return store.Candidate{Name: c.serverName(), URL: cmp.Or(c.AdvertiseURL, scheme+"://"+address), Version: version, SealKey: s.codec.KeyID()}
}

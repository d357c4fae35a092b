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

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/runner"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// duties are the parts that only the server that leads has: it alone reads metrics,
// probes clusters and replaces pods. Each term has its own, so that none begins with
// what was known an hour ago.
type duties struct {
	signals *signal.Runner
	spot    *runner.Runner
}

// leadership is the server's place among those on one store. With the embedded store
// there is no other, and it always leads.
type leadership struct {
	server    *server
	transport http.RoundTripper
	// current is nil while another server leads.
	current atomic.Pointer[duties]
	// standby admits pods meanwhile; nil while this one leads.
	standby atomic.Pointer[standby]
	// led is closed once a server is known to lead, this one or another.
	led     chan struct{}
	ledOnce sync.Once

	mu      sync.Mutex
	servers []store.Candidate // guarded by mu, as they were at
	at      time.Time         // guarded by mu
}

func newLeadership(s *server) (*leadership, error) {
	transport, err := s.config.peerTransport()
	if err != nil {
		return nil, err
	}
	return &leadership{server: s, transport: transport, led: make(chan struct{})}, nil
}

// others reports whether there may be other servers on the store.
func (l *leadership) others() bool { return l.server.config.severalServers() }

// name is what people call this server among several.
func (l *leadership) name() string {
	if !l.others() {
		return ""
	}
	return l.server.candidate().Name
}

// forAPI is the leadership as the API takes it, nil where there is no other server.
func (l *leadership) forAPI() httpapi.Leader {
	if !l.others() {
		return nil
	}
	return l
}

// run leads whenever it is this server's turn, until ctx ends.
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
			return nil //nolint:nilerr // that it was told to stop is no failure
		}
		if err != nil {
			return err
		}
		l.server.logger.Warn("this server is no longer the leader")
	}
}

// awaitLeader notes when another server leads: from then on requests can be answered.
// It returns an error where this server must not be one of them.
func (l *leadership) awaitLeader(ctx context.Context) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		if list, err := l.candidates(ctx); err == nil {
			if err := l.sealsAlike(list); err != nil {
				return err
			}
			// Before it stands in the line it would not name itself among the servers.
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

// sealsAlike returns an error where a server that was there earlier seals secrets with
// another key: neither could read what the other one writes.
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

// lead does what the server that leads does, for a term.
func (l *leadership) lead(ctx context.Context, term *store.Term) error {
	defer term.Resign()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(term.Context(), cancel)() //nolint:contextcheck // the term ends it as well
	d := l.server.newDuties()
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

// begin is called when decisions are about to be made by this server.
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
func (l *leadership) Leads() bool { return l.current.Load() != nil }

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

// Servers implements httpapi.Leader. While the store does not answer they are as they
// were last.
func (l *leadership) Servers(ctx context.Context) []api.ServerMember {
	list, _ := l.candidates(ctx)
	members := make([]api.ServerMember, len(list))
	for i, c := range list {
		members[i] = api.ServerMember{ID: c.ID, Name: c.Name, URL: c.URL, Version: c.Version, Leader: c.Leader, NewestFormat: c.Format, Revision: c.Revision}
	}
	return members
}

// candidatesFresh is how long it may go unnoticed that another server leads: nobody is
// asked for each request.
const candidatesFresh = 250 * time.Millisecond

// candidates are the servers there are; where the error says that they cannot be asked
// for, those that there were.
func (l *leadership) candidates(ctx context.Context) ([]store.Candidate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) < candidatesFresh {
		return l.servers, nil
	}
	list, err := l.server.store.Candidates(ctx)
	if err != nil {
		return l.servers, err
	}
	l.servers, l.at = list, time.Now()
	return list, nil
}

// Describe implements prometheus.Collector. What there is to collect is another thing
// in each term, so nothing is promised.
func (l *leadership) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (l *leadership) Collect(to chan<- prometheus.Metric) {
	d := l.current.Load()
	if d == nil {
		return
	}
	for _, c := range append(d.signals.Collectors(), d.spot.Collectors()...) {
		c.Collect(to)
	}
}

// leastLease is how long a lease lasts at least: etcd grants none for less.
const leastLease = 2 * time.Second

// checkLeadership checks the settings of several servers on one store.
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

// isBaseURL reports whether a text is the address of a server, by one of some schemes,
// and nothing else.
func isBaseURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Hostname() != "" && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == ""
}

// candidate is what this server says of itself to the others.
func (s *server) candidate() store.Candidate {
	c := s.config
	host, _ := os.Hostname() // it only says where others reach this one, which has a flag
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

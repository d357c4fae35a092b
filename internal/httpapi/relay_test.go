package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/lastseen"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// countedSignals counts heartbeats and does nothing else with them.
type countedSignals struct {
	Signals
	taken atomic.Int64
}

func (c *countedSignals) Heartbeat(context.Context, string, api.Heartbeat) (int64, error) {
	c.taken.Add(1)
	return 0, nil
}

// tappedLeader is a leader at an address, with somebody on the way who records every request.
type tappedLeader struct {
	Leader
	url      *url.URL
	recorded []string
}

func (l *tappedLeader) Leads() bool { return false }

func (l *tappedLeader) URL(context.Context) (*url.URL, error) { return l.url, nil }

func (l *tappedLeader) Transport() http.RoundTripper { return l }

func (l *tappedLeader) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	l.recorded = append(l.recorded, string(body))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(r)
}

// follower is a server that hands heartbeats to this one, over a connection that is tapped.
func (s *testServer) follower() (*relay, *tappedLeader) {
	s.t.Helper()
	to, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	l := &tappedLeader{url: to}
	w := &decisionWaiter{stopping: s.t.Context()}
	w.leader = &leaderClient{others: l, waiter: w, codec: s.codec, maxBody: 1 << 20}
	return &relay{leading: w.leader, beats: &lastseen.Times{}, codec: s.codec, faults: recovery.New(slog.New(slog.DiscardHandler)).Component("heartbeats")}, l
}

// TestRelayedHeartbeatsAreAcceptedOnce: a request between servers that somebody recorded is of no
// use to them.
func TestRelayedHeartbeatsAreAcceptedOnce(t *testing.T) {
	t.Parallel()
	began, later := time.Now(), atomic.Int64{}
	signals := &countedSignals{}
	s := startServer(t, func(o *Options) {
		signals.Signals, o.Signals = o.Signals, signals
		o.Now = func() time.Time { return began.Add(time.Duration(later.Load())) }
	})
	taken := func(want int64) {
		t.Helper()
		if got := signals.taken.Load(); got != want {
			t.Fatalf("%d heartbeats were accepted, want %d", got, want)
		}
	}
	refused := func(to *testServer, sealed string) {
		t.Helper()
		if a := to.do(http.MethodPost, relayPath, sealed); a.StatusCode != http.StatusForbidden {
			t.Errorf("answered with %s %s, want 403", a.Status, a.body)
		}
	}
	// again expects an answer that asks to repeat the request, and tells nothing else.
	again := func(to *testServer, sealed string) {
		t.Helper()
		a := to.do(http.MethodPost, relayPath, sealed)
		var response relayResponse
		if err := json.Unmarshal(a.body, &response); err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("answered with %s %s, %v", a.Status, a.body, err)
		}
		if response.Clock = 0; !response.Again || string(operation.EncodeJSON(response)) != string(operation.EncodeJSON(relayResponse{Leader: to.relay.id, Again: true})) {
			t.Errorf("unexpected answer %s", a.body)
		}
	}
	follower, tap := s.follower()
	exchange := func() {
		t.Helper()
		answers, err := follower.exchange(t.Context(), []*relayed{{Cluster: "berlin"}})
		if err != nil || len(answers) != 1 || answers[0].Problem != nil {
			t.Fatalf("answers %+v, error %v", answers, err)
		}
	}
	s.options.Beats.Note("berlin", lastseen.Beat{UID: "u", At: time.Now()})
	exchange()
	taken(1)
	if len(tap.recorded) != 2 {
		t.Fatalf("%d requests, want one for the name and clock of the leader, and one with the heartbeats", len(tap.recorded))
	}
	introduction, accepted := tap.recorded[0], tap.recorded[1]
	again(s, introduction)
	refused(s, accepted)
	refused(s, accepted)
	taken(1)

	seal := func(nonce string) string {
		return s.codec.Seal(relaySeal, "request", string(operation.EncodeJSON(relayRequest{
			Leader: follower.leader, Clock: follower.clock, Nonce: nonce, Heartbeats: []*relayed{{Cluster: "berlin"}},
		})))
	}
	refused(s, seal(""))
	// In another order each is still accepted once.
	first, second := seal(rand.Text()), seal(rand.Text())
	for _, sealed := range []string{second, first} {
		if a := s.do(http.MethodPost, relayPath, sealed); a.StatusCode != http.StatusOK {
			t.Errorf("answered with %s %s, want 200", a.Status, a.body)
		}
	}
	taken(3)
	refused(s, first)
	refused(s, second)
	taken(3)

	// Another server with the same key leads.
	elsewhere := &countedSignals{}
	other := startServer(t, func(o *Options) { elsewhere.Signals, o.Signals = o.Signals, elsewhere })
	again(other, accepted)
	again(other, seal(rand.Text()))
	if got := elsewhere.taken.Load(); got != 0 {
		t.Errorf("another server accepted %d heartbeats", got)
	}

	// At the end of the window a nonce is still known, and after it nothing of that age is accepted.
	delayed := seal(rand.Text())
	later.Store(int64(relayWindow))
	exchange()
	taken(4)
	refused(s, accepted)
	later.Store(int64(relayWindow + 1))
	again(s, accepted)
	again(s, delayed)
	taken(4)
	// A server that was away for longer asks for the clock, and goes on.
	later.Store(int64(4 * relayWindow))
	exchange()
	exchange()
	taken(6)
	if known := len(s.relay.nonces.recent) + len(s.relay.nonces.before); known > 6 {
		t.Errorf("%d nonces are remembered, want at most 6", known)
	}
}

// A heartbeat that another server hands over for a cluster that is being deleted, or created again, is not an internal
// error.
func TestRelayedHeartbeatDuringADeletion(t *testing.T) {
	s := startServer(t, func(o *Options) { o.Signals = late{o.Signals} })
	follower, _ := s.follower()
	answers, err := follower.exchange(t.Context(), []*relayed{{Cluster: "berlin"}})
	if err != nil || len(answers) != 1 || answers[0].Problem == nil || answers[0].Problem.Status != http.StatusNotFound {
		t.Errorf("answers %+v, error %v, want 404", answers, err)
	}
}

// Only servers can say that a request was forwarded: whoever else says so is served like everybody.
func TestForgedForwardingMeansNothing(t *testing.T) {
	s := startServer(t)
	_, to := s.follower()
	l := &leaderClient{others: to, codec: s.codec} // without patience
	ask := func(value string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/clusters", nil)
		r.Header.Set(forwardedHeader, value)
		w := httptest.NewRecorder()
		if !l.elsewhere(w, r, true) {
			t.Fatalf("%q: the request was not forwarded", value)
		}
		return w
	}
	for _, value := range []string{"true", "1", s.codec.Seal(relaySeal, "request", "x")} {
		if w := ask(value); w.Code != http.StatusOK {
			t.Errorf("%q: got %d %s", value, w.Code, w.Body)
		}
	}
	if w := ask(s.codec.Seal(forwardedSeal, "request", "x")); w.Code != http.StatusServiceUnavailable {
		t.Errorf("forwarded twice: got %d %s", w.Code, w.Body)
	}
}

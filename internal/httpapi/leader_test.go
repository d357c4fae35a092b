package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// heldLeader is a leader that takes every request and never responds, until another one leads.
type heldLeader struct {
	Leader
	t     *testing.T
	held  *url.URL
	asked chan struct{} // a request has arrived at the one that never responds
	now   atomic.Pointer[url.URL]
	leads atomic.Bool
}

// hold makes a follower follow a leader that never responds.
func hold(t *testing.T, tap *relay) *heldLeader {
	t.Helper()
	l := &heldLeader{t: t, asked: make(chan struct{}, 100)}
	paused := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is noticed after the body
		l.asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(paused.Close)
	var err error
	if l.held, err = url.Parse(paused.URL); err != nil {
		t.Fatal(err)
	}
	l.now.Store(l.held)
	tap.leading.others, tap.leading.patience = l, time.Hour
	return l
}

func (l *heldLeader) Leads() bool { return l.leads.Load() }

func (l *heldLeader) URL(context.Context) (*url.URL, error) { return l.now.Load(), nil }

func (l *heldLeader) Transport() http.RoundTripper { return http.DefaultTransport }

// succeed waits until a request has arrived at the leader that never responds, and makes the server at an address lead.
func (l *heldLeader) succeed(address string) {
	l.t.Helper()
	<-l.asked
	next, err := url.Parse(address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.now.Store(next)
}

// notYet responds like a server that is next but does not lead yet, to the first requests, and then passes them on.
func notYet(t *testing.T, s *testServer) (address string) {
	t.Helper()
	var before atomic.Int64
	next := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before.Add(1) <= 3 {
			notLeading(w)
			return
		}
		s.handler.ServeHTTP(w, r)
	}))
	t.Cleanup(next.Close)
	return next.URL
}

// TestTheNextLeaderAnswersWhoWaitsForOneThatIsPaused: what waits for a leader that never responds is given up as soon as
// another one leads, and sent to that one. The limits of the requests are an hour.
func TestTheNextLeaderAnswersWhoWaitsForOneThatIsPaused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.mustPut("/v1/clusters/berlin", `{}`)
	for name, ask := range map[string]func(t *testing.T, follower *relay) error{
		"decisions": func(t *testing.T, follower *relay) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			_, err := follower.leading.settle(ctx, 1)
			return err
		},
		"heartbeats": func(t *testing.T, follower *relay) error {
			one := &relayed{"berlin", nil, make(chan relayAnswer, 1)}
			follower.handSome([]*relayed{one})
			if answer := <-one.answer; answer.Problem != nil {
				return answer.Problem
			}
			return nil
		},
		"forwarded requests": func(t *testing.T, follower *relay) error {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/clusters/berlin/heartbeat", strings.NewReader(`{"capacity":{"cpu":"8"}}`))
			w := httptest.NewRecorder()
			if !follower.leading.elsewhere(w, r, true) || w.Code != http.StatusOK {
				return fmt.Errorf("%d %s", w.Code, w.Body)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			follower, _ := s.follower()
			leader := hold(t, follower)
			answered := make(chan error, 1)
			go func() { answered <- ask(t, follower) }()
			leader.succeed(notYet(t, s))
			if err := <-answered; err != nil {
				t.Error(err)
			}
		})
	}
}

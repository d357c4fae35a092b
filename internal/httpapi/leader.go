package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// Leader determines which of several servers on one store decides.
type Leader interface {
	// Leads reports whether this server leads.
	Leads() bool
	// URL returns the address of the leader. The error says why it is unknown.
	URL(ctx context.Context) (*url.URL, error)
	// Servers returns all servers in the order in which they lead, as far as known.
	Servers(ctx context.Context) []api.ServerMember
	// Revision returns the current revision of the store, whoever wrote it.
	Revision(ctx context.Context) (int64, error)
	// Transport connects to the other servers.
	Transport() http.RoundTripper
}

// forwardedHeader is set on requests that another server forwarded, so that they are not forwarded
// again. Its value is encrypted with the servers' key: in a request of anybody else it means
// nothing.
const forwardedHeader = "Scheduler-Forwarded"

// forwardedSeal is what the value of forwardedHeader is bound to.
var forwardedSeal = api.Key{Kind: "forwarded"}

// isForwarded reports whether another server forwarded a request.
func isForwarded(codec Codec, r *http.Request) bool {
	value := r.Header.Get(forwardedHeader)
	if value == "" {
		return false
	}
	_, err := codec.Unseal(forwardedSeal, "request", value)
	return err == nil
}

const settledPath = "/v1/settled"

// leaderClient implements what a server does for and through the leader. A single server leads itself.
type leaderClient struct {
	others   Leader // nil if there are no other servers
	waiter   *decisionWaiter
	sessions *auth.Sessions
	codec    Codec
	logger   *slog.Logger
	maxBody  int64
	// patience is how long a request that nobody answers is sent again.
	patience time.Duration
	// together are requests that catch up together instead of each asking the store.
	together gather[chan<- struct{}]
}

func newLeaderClient(o Options, w *decisionWaiter, sessions *auth.Sessions) *leaderClient {
	l := &leaderClient{others: o.Leader, waiter: w, sessions: sessions, codec: o.Codec, logger: o.Logger, maxBody: o.MaxBodyBytes, patience: relayTime}
	faults := o.Faults.Component("heartbeats")
	l.together.moment = relayMoment
	l.together.hand = func(all []chan<- struct{}) {
		faults.Go("", func() { l.catchUp(w.stopping) })
		for _, done := range all {
			close(done)
		}
	}
	return l
}

func (l *leaderClient) leads() bool { return l.others == nil || l.others.Leads() }

// elsewhere forwards a request that only the leader can serve, and reports whether it has done so
// or has responded with an error. While there is no leader it waits for one, which may be this
// server. repeatable says that the request may be sent to the next leader, too, if the one that got
// it has not responded.
func (l *leaderClient) elsewhere(w http.ResponseWriter, r *http.Request, repeatable bool) bool {
	if l.leads() {
		return false
	}
	if isForwarded(l.codec, r) {
		notLeading(w)
		return true
	}
	var body []byte
	if r.ContentLength != 0 {
		var err error
		if body, err = operation.ReadBody(w, r, l.maxBody); err != nil {
			problem.Write(w, problem.Of(err))
			return true
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	note := requestOf(r.Context())
	id, here := note.id, false
	proxy := &httputil.ReverseProxy{
		Transport: &delivery{l, body, repeatable},
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.Header.Set(forwardedHeader, l.codec.Seal(forwardedSeal, "request", id))
			p.Out.Header.Set("X-Request-Id", id)
		},
		ModifyResponse: func(answer *http.Response) error {
			answer.Header.Del("X-Request-Id") // already set
			note.server, note.lastContact = "", time.Time{}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if here = errors.Is(err, errLeadsItself); !here {
				problem.Write(w, noLeader(err))
			}
		},
		ErrorLog: log.New(io.Discard, "", 0), // reported by the error handler
	}
	proxy.ServeHTTP(w, r)
	if here && body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return !here
}

var (
	// errSucceeded says that a request was given up because the server that it was sent to no longer
	// leads.
	errSucceeded = errors.New("another server leads by now")
	// errLeadsItself says that this server leads by now.
	errLeadsItself = errors.New("this server leads by now")
	// errNotLeading is the response of a server that does not lead.
	errNotLeading = errors.New("another server considered this one the leader")
)

// notLeading responds to another server that this one does not lead. It marks the response: nothing
// was done.
func notLeading(w http.ResponseWriter) {
	w.Header().Set(forwardedHeader, "not leading")
	problem.Write(w, noLeader(errNotLeading))
}

// delivery sends one request to the leader, and again to the next one if it is not answered.
type delivery struct {
	leading    *leaderClient
	body       []byte
	repeatable bool
}

// RoundTrip implements http.RoundTripper.
func (d *delivery) RoundTrip(r *http.Request) (*http.Response, error) {
	patience, cancel := context.WithTimeout(r.Context(), d.leading.patience)
	defer cancel()
	for {
		response, sent, err := d.try(r)
		if err == nil || sent && !d.repeatable || !backoff.Wait(patience, again) {
			return response, err
		}
		if d.leading.leads() {
			return nil, errLeadsItself
		}
	}
}

// try sends the request to the present leader. sent says that it may have been served although
// there is an error.
func (d *delivery) try(r *http.Request) (_ *http.Response, sent bool, err error) {
	to, err := d.leading.others.URL(r.Context())
	if err != nil {
		return nil, false, err
	}
	ctx, done := d.leading.whileLeads(r.Context(), to)
	defer done()
	out := r.Clone(ctx)
	(&httputil.ProxyRequest{Out: out}).SetURL(to)
	if d.body != nil {
		out.Body = io.NopCloser(bytes.NewReader(d.body))
	}
	response, err := d.leading.others.Transport().RoundTrip(out)
	if err != nil {
		return nil, true, fmt.Errorf("the leader at %s does not respond: %w", to.Redacted(), err)
	}
	defer response.Body.Close()
	if response.Header.Get(forwardedHeader) != "" {
		return nil, false, errNotLeading
	}
	content, err := io.ReadAll(response.Body) // a leader may stop in the middle of it
	if err != nil {
		return nil, true, fmt.Errorf("the response of the leader at %s cannot be read: %w", to.Redacted(), err)
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	return response, true, nil
}

// whileLeads returns a context that is done when the server at an address is known not to lead
// anymore: one that is paused or cut off never responds.
func (l *leaderClient) whileLeads(ctx context.Context, at *url.URL) (context.Context, context.CancelFunc) {
	return l.until(ctx, func(ctx context.Context) bool {
		now, err := l.others.URL(ctx)
		return l.leads() || err == nil && *now != *at
	})
}

// whileLeading returns a context that is done when this server does not lead anymore.
func (l *leaderClient) whileLeading(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.others == nil {
		return ctx, func() {}
	}
	return l.until(ctx, func(context.Context) bool { return !l.leads() })
}

// until returns a context that is done, with errSucceeded, when another server leads.
func (l *leaderClient) until(ctx context.Context, succeeded func(context.Context) bool) (context.Context, context.CancelFunc) {
	ctx, giveUp := context.WithCancelCause(ctx)
	go func() {
		for backoff.Wait(ctx, again) {
			if succeeded(ctx) {
				giveUp(errSucceeded)
			}
		}
	}()
	return ctx, func() { giveUp(context.Canceled) }
}

// noLeader returns the problem if only the leader could respond.
func noLeader(err error) *problem.Problem {
	return problem.Unavailable(fmt.Sprintf("there is no leader at the moment (%s): repeat the request", err))
}

// credentialsKey is the context key of a request's credentials, which this server uses to ask the
// leader on its behalf.
type credentialsKey struct{}

// keepCredentials stores the credentials of every request in its context, for settle.
func (l *leaderClient) keepCredentials(next http.Handler) http.Handler {
	if l.others == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), credentialsKey{}, r.Header.Get("Authorization"))))
	})
}

// settled is the response of settledPath.
type settled struct {
	// ResourceVersion is a store revision that shows all resulting decisions.
	ResourceVersion string `json:"resource_version"`
}

// awaitSettled serves other servers on behalf of whoever wrote through one of them: everybody with
// access to anything may ask how far decisions have come. It is not part of the API.
func (l *leaderClient) awaitSettled(a *operation.API) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shown, err := l.shownSettled(r)
		if err != nil {
			problem.Write(w, a.Problem(r.Context(), err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(operation.EncodeJSON(settled{strconv.FormatInt(shown, 10)})) // fails if the client has gone away
	}
}

func (l *leaderClient) shownSettled(r *http.Request) (int64, error) {
	wait, err := operation.ParseWait(r.URL.Query().Get("wait"), operation.DefaultWait)
	if err != nil {
		return 0, err
	}
	revision, err := operation.ParseRevision("resource_version", r.URL.Query().Get("resource_version"))
	if err != nil {
		return 0, err
	}
	if !l.leads() {
		return 0, noLeader(errNotLeading)
	}
	l.waiter.tracer.Caused(r.Context(), revision)
	bounded, cancel := l.waiter.bounded(r.Context(), wait)
	defer cancel()
	if err := l.waiter.settle(bounded, revision); err != nil {
		return 0, problem.Unavailable(fmt.Sprintf("the decisions that follow from revision %d have not been made yet: %s", revision, err))
	}
	return l.waiter.fleet.Snapshot().Revision(), nil
}

// again is the delay before asking the leader again if it does not respond, and before looking who
// leads while it has not responded yet.
const again = 100 * time.Millisecond

// settle waits until the leader has decided what follows from a revision, and returns the revision
// that shows it. The error is that of ctx, with the reason why nobody responded.
func (l *leaderClient) settle(ctx context.Context, revision int64) (int64, error) {
	for {
		shown, err := l.askSettled(ctx, revision)
		if err == nil {
			return shown, nil
		}
		if !backoff.Wait(ctx, again) {
			return 0, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		if l.leads() { // this server leads by now
			return revision, l.waiter.settle(ctx, revision)
		}
	}
}

func (l *leaderClient) askSettled(ctx context.Context, revision int64) (int64, error) {
	wait := operation.DefaultWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline)
	}
	target := url.URL{Path: settledPath, RawQuery: url.Values{"resource_version": {strconv.FormatInt(revision, 10)}, "wait": {wait.Round(time.Millisecond).String()}}.Encode()}
	header := http.Header{}
	if credentials, ok := ctx.Value(credentialsKey{}).(string); ok && credentials != "" {
		header.Set("Authorization", credentials)
	}
	var answer settled
	if err := l.ask(ctx, http.MethodGet, target, header, nil, &answer); err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer.ResourceVersion, 10, 64)
}

// ask sends a request to the leader, and decodes its response.
func (l *leaderClient) ask(ctx context.Context, method string, target url.URL, header http.Header, body io.Reader, answer any) error {
	leader, err := l.others.URL(ctx)
	if err != nil {
		return err
	}
	to := leader.JoinPath(target.Path)
	to.RawQuery = target.RawQuery
	ctx, done := l.whileLeads(ctx, leader)
	defer done()
	request, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return err
	}
	request.Header = header
	response, err := l.others.Transport().RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", to.Redacted(), response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("the response of %s cannot be read: %w", to.Redacted(), err)
	}
	return nil
}

// currentWait is the maximum time that a request waits for what was written before it through any
// server. Without the store, it reads what is in memory; the response contains its age.
const currentWait = 3 * time.Second

// current makes a request see everything that was acknowledged before it began, by any server.
func (l *leaderClient) current(next http.Handler) http.Handler {
	if l.others == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOpen(r.URL.Path) {
			if isHeartbeat(r) {
				l.catchUpTogether(r.Context())
			} else {
				l.catchUp(r.Context())
			}
			// The token may just have been revoked through another server.
			if err := l.sessions.Check(r.Context()); err != nil {
				problem.Write(w, problem.Unauthorized(err.Error()))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// behind catches up if other servers may have written something that is not known here, and reports
// whether they may have.
func (l *leaderClient) behind(ctx context.Context) bool {
	if l.others == nil {
		return false
	}
	l.catchUp(ctx)
	return true
}

// catchUpTogether is catchUp for a request that can wait a moment for others.
func (l *leaderClient) catchUpTogether(ctx context.Context) {
	done := make(chan struct{})
	l.together.add(done)
	select {
	case <-done:
		l.waiter.freshen(ctx)
	case <-ctx.Done():
	}
}

func (l *leaderClient) catchUp(ctx context.Context) {
	bounded, cancel := l.waiter.bounded(ctx, currentWait)
	defer cancel()
	revision, err := l.others.Revision(bounded)
	if err == nil {
		_, err = l.waiter.fleet.WaitRevision(bounded, revision)
	}
	if err != nil {
		l.logger.LogAttrs(ctx, slog.LevelDebug, "a request reads possibly outdated data", slog.String("request_id", requestOf(ctx).id), slog.Any("error", err))
		return
	}
	l.waiter.freshen(ctx)
}
